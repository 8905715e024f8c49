"""Compares a collection's catalog with its indexes and its texts, id by id, and repairs the indexes from those two."""

import asyncio
from collections.abc import Mapping

from leadline.knowledge.changes import settle_all
from leadline.knowledge.opened import Opened, embed_missing
from leadline.knowledge.reports import LegReport, RepairReport, VerifyReport
from leadline.knowledge.texts import altered_texts, missing_in_sample, problems_of_texts, unembedded_texts
from leadline.stores.catalog_outbox import CONTENT, owe_removal, owe_versions, read_owed
from leadline.stores.catalog_sources import expected_ids, list_sources
from leadline.stores.catalog_versions import pending_versions


async def expected_in(opened: Opened, leg: str) -> dict[str, int]:
    """chunk_id → version, of what the leg should hold."""
    model = opened.embedder.name if leg == "vector" and not opened.legs.joint else None
    return await asyncio.to_thread(expected_ids, opened.catalog, opened.name, with_vector=model)


async def count_differences(opened: Opened) -> list[str]:
    """The cheap comparison made on opening: how many chunks each index holds and should, and whether there are texts.

    Texts are looked up for a few chunks only: counting them may take as long as reading them.
    """
    problems = []
    for leg, store in opened.stores.items():
        expected, found = len(await expected_in(opened, leg)), await store.count()
        if expected != found:
            problems.append(f"the {leg} index holds {found} chunks, the catalog {expected}")
    return problems + await missing_in_sample(opened, sorted(await expected_in(opened, CONTENT)))


async def verify(opened: Opened) -> VerifyReport:
    """The full comparison. Reads every id of every index, every text, and the whole catalog file."""
    legs = {leg: await _compare(opened, leg) for leg in opened.leg_names}
    texts = await _compare_texts(opened)
    pending = len(await asyncio.to_thread(pending_versions, opened.catalog, opened.name))
    owed = len(await asyncio.to_thread(read_owed, opened.catalog, opened.name))
    sources = await asyncio.to_thread(list_sources, opened.catalog, opened.name)
    problems = await asyncio.to_thread(opened.catalog.integrity_problems)
    problems += [problem for leg, report in legs.items() for problem in _problems_of(leg, report)]
    problems += await problems_of_texts(opened, texts)
    if pending:
        problems.append(f"{pending} sources were never finished")
    if owed:
        problems.append(f"{owed} changes have not been carried out everywhere yet")
    return VerifyReport(
        collection=opened.name,
        sources=len(sources),
        chunks=sum(source.chunks for source in sources),
        legs={**legs, CONTENT: texts},
        pending=pending,
        owed=owed,
        problems=tuple(problems),
    )


async def repair(opened: Opened, *, dry_run: bool) -> RepairReport:
    """Gives each index what it lacks, from the catalog and the texts, and takes from all what the catalog doesn't have.

    The catalog is never changed to fit an index, and a text that is missing can't be made again. A healthy collection
    stays as it is.
    """
    before = await verify(opened)
    added = {leg: len(report.missing) for leg, report in before.legs.items() if leg != CONTENT}
    removed = {leg: len(report.extra) for leg, report in before.legs.items()}
    after = before
    if not dry_run and not before.ok:
        await _repair(opened, before.legs)
        after = await verify(opened)
    return RepairReport(added=added, removed=removed, dry_run=dry_run, before=before, after=after)


async def _repair(opened: Opened, legs: Mapping[str, LegReport]) -> None:
    lacking = await unembedded_texts(opened.catalog, opened.content, opened.name, opened.embedder.name)
    await embed_missing(opened, lacking)
    await _remove_altered(opened, legs[CONTENT])
    owed: dict[str, set[int]] = {}
    for leg, report in legs.items():
        if leg != CONTENT:
            expected = await expected_in(opened, leg)
            owed[leg] = {expected[chunk_id] for chunk_id in report.missing if chunk_id in expected}
        if report.extra:
            await asyncio.to_thread(owe_removal, opened.catalog, opened.name, leg, list(report.extra))
    await settle_all(opened)
    await asyncio.to_thread(owe_versions, opened.catalog, opened.name, owed)
    await settle_all(opened, {leg: set(report.missing) for leg, report in legs.items()})


async def _remove_altered(opened: Opened, report: LegReport) -> None:
    """Texts that aren't what was put in are shown to nobody again; putting in their files brings the right ones."""
    opened.lease.ensure_held()
    await opened.content.delete(report.missing)


async def _compare(opened: Opened, leg: str) -> LegReport:
    expected = (await expected_in(opened, leg)).keys()
    found = await opened.followers[leg].all_ids()
    return LegReport(
        expected=len(expected),
        found=len(found),
        missing=tuple(sorted(expected - found)),
        extra=tuple(sorted(found - expected)),
    )


async def _compare_texts(opened: Opened) -> LegReport:
    report = await _compare(opened, CONTENT)
    there = sorted((await expected_in(opened, CONTENT)).keys() - set(report.missing))
    altered = await altered_texts(opened, there)
    return LegReport(report.expected, report.found, tuple(sorted({*report.missing, *altered})), report.extra)


def _problems_of(leg: str, report: LegReport) -> list[str]:
    problems = []
    if report.missing:
        problems.append(f"the {leg} index lacks {len(report.missing)} of {report.expected} chunks")
    if report.extra:
        problems.append(f"the {leg} index holds {len(report.extra)} chunks that the catalog doesn't have")
    return problems
