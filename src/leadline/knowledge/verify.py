"""Compares a collection's catalog with its indexes, id by id, and repairs the indexes from the catalog."""

import asyncio
from collections.abc import Mapping

from leadline.knowledge.changes import settle_all
from leadline.knowledge.opened import Opened, embed_missing
from leadline.knowledge.reports import LegReport, RepairReport, VerifyReport
from leadline.stores.catalog_outbox import owe_removal, owe_versions, read_owed
from leadline.stores.catalog_sources import expected_ids, list_sources
from leadline.stores.catalog_vectors import texts_without_vector
from leadline.stores.catalog_versions import pending_versions


async def expected_in(opened: Opened, leg: str) -> dict[str, int]:
    """chunk_id → version, of what the leg should hold."""
    model = opened.embedder.name if leg == "vector" else None
    return await asyncio.to_thread(expected_ids, opened.catalog, opened.name, with_vector=model)


async def count_differences(opened: Opened) -> list[str]:
    """The cheap comparison made on opening: how many chunks each index holds, and how many it should."""
    problems = []
    for leg, store in opened.stores.items():
        expected, found = len(await expected_in(opened, leg)), await store.count()
        if expected != found:
            problems.append(f"the {leg} index holds {found} chunks, the catalog {expected}")
    return problems


async def verify(opened: Opened) -> VerifyReport:
    """The full comparison. Reads every id of every index, and the whole catalog file."""
    legs = {leg: await _compare(opened, leg) for leg in opened.leg_names}
    pending = len(await asyncio.to_thread(pending_versions, opened.catalog, opened.name))
    owed = len(await asyncio.to_thread(read_owed, opened.catalog, opened.name))
    sources = await asyncio.to_thread(list_sources, opened.catalog, opened.name)
    problems = await asyncio.to_thread(opened.catalog.integrity_problems)
    problems += [problem for leg, report in legs.items() for problem in _problems_of(leg, report)]
    if pending:
        problems.append(f"{pending} sources were never finished")
    if owed:
        problems.append(f"{owed} changes have not reached an index yet")
    return VerifyReport(
        collection=opened.name,
        sources=len(sources),
        chunks=sum(source.chunks for source in sources),
        legs=legs,
        pending=pending,
        owed=owed,
        problems=tuple(problems),
    )


async def repair(opened: Opened, *, dry_run: bool) -> RepairReport:
    """Gives each index what it lacks, from the catalog, and takes from it what the catalog doesn't have.

    The catalog is never changed to fit an index. A healthy collection stays as it is.
    """
    before = await verify(opened)
    added = {leg: len(report.missing) for leg, report in before.legs.items()}
    removed = {leg: len(report.extra) for leg, report in before.legs.items()}
    after = before
    if not dry_run and not before.ok:
        await _repair(opened, before.legs)
        after = await verify(opened)
    return RepairReport(added=added, removed=removed, dry_run=dry_run, before=before, after=after)


async def _repair(opened: Opened, legs: Mapping[str, LegReport]) -> None:
    lacking = await asyncio.to_thread(texts_without_vector, opened.catalog, opened.name, opened.embedder.name)
    await embed_missing(opened, lacking)
    owed: dict[str, set[int]] = {}
    for leg, report in legs.items():
        expected = await expected_in(opened, leg)
        owed[leg] = {expected[chunk_id] for chunk_id in report.missing if chunk_id in expected}
        if report.extra:
            await asyncio.to_thread(owe_removal, opened.catalog, opened.name, leg, list(report.extra))
    await asyncio.to_thread(owe_versions, opened.catalog, opened.name, owed)
    await settle_all(opened)


async def _compare(opened: Opened, leg: str) -> LegReport:
    expected = (await expected_in(opened, leg)).keys()
    found = await opened.stores[leg].all_ids()
    return LegReport(
        expected=len(expected),
        found=len(found),
        missing=tuple(sorted(expected - found)),
        extra=tuple(sorted(found - expected)),
    )


def _problems_of(leg: str, report: LegReport) -> list[str]:
    problems = []
    if report.missing:
        problems.append(f"the {leg} index lacks {len(report.missing)} of {report.expected} chunks")
    if report.extra:
        problems.append(f"the {leg} index holds {len(report.extra)} chunks that the catalog doesn't have")
    return problems
