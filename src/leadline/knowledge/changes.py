"""Brings the indexes and the texts in step with the catalog: applies what the outbox says they are owed.

Every step can be repeated. An index that fails is a named degrade: what it could not take is reported for exactly the
versions concerned, and stays owed where it must not be forgotten.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from leadline.errors import LeaseLost, StoreError
from leadline.knowledge.opened import Opened
from leadline.stores.base import ChunkRecord, Store
from leadline.stores.catalog_outbox import (
    CONTENT,
    BareRecord,
    Part,
    read_owed,
    read_records,
    settle,
    unused_ids,
    version_sizes,
)
from leadline.stores.catalog_versions import abandon, pending_versions, publish, retired_sources, sweep
from leadline.stores.uploads import drop_unused, kept_of

log = logging.getLogger(__name__)

PAGE: Final = 1000  # chunks given to an index at once


@dataclass(slots=True)
class Deleted:
    """Leg → chunks that were there and are gone; leg → why it could not follow."""

    counts: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def pages(sizes: Mapping[int, int], limit: int = PAGE) -> Iterable[list[Part]]:
    """The chunks of all versions, in order, cut into pages of at most `limit` chunks."""
    page: list[Part] = []
    room = limit
    for version, size in sizes.items():
        start = 0
        while start < size:
            stop = min(size, start + room)
            page.append(Part(version, start, stop, size))
            room -= stop - start
            start = stop
            if room == 0:
                yield page
                page, room = [], limit
    if page:
        yield page


async def apply_new(opened: Opened, texts: Mapping[int, Sequence[ChunkRecord]]) -> dict[int, str]:
    """Stores the texts of new versions, then gives their chunks to every leg. Version → what failed.

    If the texts can't be stored, that is no one version's fault: all of them failed.
    """
    opened.lease.ensure_held()
    everything = [record for of_version in texts.values() for record in of_version]
    why = await _attempt(opened.content, CONTENT, everything)
    if why is not None:
        return dict.fromkeys(texts, why)
    known = {record.chunk_id: record.text for record in everything}
    return await apply_upserts(opened, [*texts], opened.leg_names, known)


async def apply_upserts(
    opened: Opened,
    versions: Sequence[int],
    legs: Collection[str],
    known: Mapping[str, str] | None = None,
    only: Collection[str] | None = None,
) -> dict[int, str]:
    """Gives the chunks of the versions, or `only` those of them, to the legs. Version → what failed, if a leg refused.

    A version with a chunk whose text is missing failed too; the legs are given its others. Texts that are not `known`
    are fetched. Raises StoreError if they can't be.
    """
    failed: dict[int, str] = {}
    for page in pages(await asyncio.to_thread(version_sizes, opened.catalog, versions)):
        records, incomplete = await _read_whole(opened, page, known or {})
        failed |= incomplete
        if only is not None:
            records = {version: [each for each in of if each.chunk_id in only] for version, of in records.items()}
        given = (_give(opened, leg, records) for leg in opened.without_twins(legs))
        for outcome in await asyncio.gather(*given):
            failed |= outcome
    return failed


async def _read_whole(
    opened: Opened, page: Sequence[Part], known: Mapping[str, str]
) -> tuple[dict[int, list[ChunkRecord]], dict[int, str]]:
    """The records with their texts, fetched in one batch, and the versions that lack some."""
    found = await asyncio.to_thread(read_records, opened.catalog, opened.embedder.name, page)
    unknown = [each.chunk_id for bare in found.values() for each in bare if each.chunk_id not in known]
    texts = {**known, **await opened.content.fetch(unknown)} if unknown else known
    whole = {version: _with_texts(bare, texts) for version, bare in found.items()}
    lacking = {version: len(bare) - len(whole[version]) for version, bare in found.items()}
    return whole, {v: f"{CONTENT}: the text of {n} chunks is missing" for v, n in lacking.items() if n}


def _with_texts(bare: Sequence[BareRecord], texts: Mapping[str, str]) -> list[ChunkRecord]:
    return [each.with_text(texts[each.chunk_id]) for each in bare if each.chunk_id in texts]


async def _give(opened: Opened, leg: str, records: Mapping[int, Sequence[ChunkRecord]]) -> dict[int, str]:
    """All at once; if that fails version by version, to find out which one it is."""
    store = opened.stores[leg]
    opened.lease.ensure_held()
    everything = [record for of_version in records.values() for record in of_version]
    if await _attempt(store, leg, everything) is None:
        return {}
    outcomes = {version: await _attempt(store, leg, of_version) for version, of_version in records.items()}
    return {version: why for version, why in outcomes.items() if why is not None}


async def _attempt(store: Store, leg: str, records: Sequence[ChunkRecord]) -> str | None:
    try:
        await store.upsert(records)
    except LeaseLost:
        raise
    except Exception as error:  # noqa: BLE001 - named degrade: one leg's failure is reported for the file it hit
        log.warning("%s did not take %d chunks: %s", leg, len(records), error)
        return f"{leg}: {error}"
    return None


async def apply_deletes(opened: Opened) -> Deleted:
    """Removes from each leg, and then the texts, what it is owed to lose and no version has."""
    owed = [row for row in await asyncio.to_thread(read_owed, opened.catalog, opened.name) if row.version is None]
    done = Deleted()
    for leg, store in opened.followers.items():
        rows = [row for row in owed if row.leg == leg]
        ids = list(dict.fromkeys(chunk_id for row in rows for chunk_id in row.chunk_ids))
        doomed = await asyncio.to_thread(unused_ids, opened.catalog, ids)
        opened.lease.ensure_held()
        try:
            done.counts[leg] = sum([await store.delete(doomed[i : i + PAGE]) for i in range(0, len(doomed), PAGE)])
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - named degrade: stays owed, and is reported
            log.warning("%s did not remove %d chunks: %s", leg, len(doomed), error)
            done.failed[leg] = str(error)
            continue
        await asyncio.to_thread(settle, opened.catalog, [row.id for row in rows])
    if opened.legs.joint and {"vector", "bm25"} <= done.counts.keys():  # the second found nothing to delete any more
        done.counts["vector"] = done.counts["bm25"] = max(done.counts["vector"], done.counts["bm25"])
    return done


async def publish_applied(opened: Opened, versions: Sequence[int], failed: Mapping[int, str]) -> None:
    """Makes the versions live that every leg took; the others are given up, and the legs go back to what was."""
    ready = [version for version in versions if version not in failed]
    if ready:
        await asyncio.to_thread(publish, opened.catalog, opened.name, ready, opened.leg_names)
    for version in failed:
        await asyncio.to_thread(abandon, opened.catalog, opened.name, version, opened.leg_names)


async def settle_all(opened: Opened, lacking: Mapping[str, Collection[str]] | None = None) -> Deleted:
    """Applies all that is owed but pending versions, and sweeps what nobody needs any more.

    Where it is known what each leg is `lacking`, it is given no more than that.
    """
    await _apply_owed_upserts(opened, lacking or {})
    deleted = await apply_deletes(opened)
    retired = await asyncio.to_thread(retired_sources, opened.catalog, opened.name)
    if retired:
        uploaded = await asyncio.to_thread(kept_of, opened.catalog, retired)
        await asyncio.to_thread(sweep, opened.catalog, retired)
        await asyncio.to_thread(drop_unused, opened.catalog, uploaded)
    opened.without_text.clear()  # the next search that misses one says so again
    return deleted


async def replay(opened: Opened) -> None:
    """Finishes what an interrupted process left.

    Pending versions whose texts were all stored go live. The others are given up: nobody was told that they are in.
    """
    pending = await asyncio.to_thread(pending_versions, opened.catalog, opened.name)
    if pending:
        await publish_applied(opened, pending, await apply_upserts(opened, pending, opened.leg_names))
    await settle_all(opened)


async def _apply_owed_upserts(opened: Opened, lacking: Mapping[str, Collection[str]]) -> None:
    owed = [row for row in await asyncio.to_thread(read_owed, opened.catalog, opened.name) if row.version is not None]
    unread: set[int] = set()
    for leg in dict.fromkeys(row.leg for row in owed):
        rows = [row for row in owed if row.leg == leg]
        ids = [row.version for row in rows if row.version is not None]
        if unread.issuperset(ids):  # their texts can't be had now: another leg waited for them in vain
            continue
        try:
            failed = await apply_upserts(opened, ids, [leg], only=lacking.get(leg))
        except LeaseLost:
            raise
        except StoreError as error:  # named degrade: without the texts all of it stays owed, and the rest goes on
            log.warning("%s was not given what it is owed: %s", leg, error)
            unread.update(ids)
            continue
        await asyncio.to_thread(settle, opened.catalog, [row.id for row in rows if row.version not in failed])
