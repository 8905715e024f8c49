"""The content store held against the catalog: texts that are missing, aren't what was put in, or are no longer needed.

Knows that a text is told by the hash the catalog has of it, and that a lost one comes back only with its source.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from leadline.drafts import SourceDraft, embedded_text
from leadline.errors import TextMissing
from leadline.knowledge.identity import hash_of
from leadline.knowledge.opened import Opened
from leadline.knowledge.reports import LegReport
from leadline.stores.base import ChunkRecord, ChunkStore
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_drafts import read_draft
from leadline.stores.catalog_pending import NewVersion
from leadline.stores.catalog_sources import content_hashes, live_chunks
from leadline.stores.catalog_vectors import chunks_without_vector

PAGE: Final = 1000  # texts in memory at once
SAMPLE: Final = 20  # chunks looked up on opening
MOST_NAMES: Final = 5


def texts_of(new: NewVersion) -> list[ChunkRecord]:
    """What the content store is given of a version: the passages as they are shown."""
    return [ChunkRecord(chunk.chunk_id, new.doc_id, chunk.draft.text) for chunk in new.chunks]


async def restore_texts(opened: Opened, same: Sequence[NewVersion]) -> dict[str, list[str]]:
    """Stores the texts that are missing of live versions once more. doc_id → notes. Raises StoreError."""
    records = {new.doc_id: texts_of(new) for new in same}
    there = await opened.content.existing_ids([each.chunk_id for of_source in records.values() for each in of_source])
    lacking = {doc_id: [each for each in r if each.chunk_id not in there] for doc_id, r in records.items()}
    if missing := [record for of_source in lacking.values() for record in of_source]:
        opened.lease.ensure_held()
        await opened.content.upsert(missing)
    note = "the text of {} chunks was missing and was stored again"
    return {doc_id: [note.format(len(found))] if found else [] for doc_id, found in lacking.items()}


async def missing_in_sample(opened: Opened, ids: Sequence[str]) -> list[str]:
    """In words, if the texts of some of a few chunks, spread over all of `ids`, are missing."""
    sample = ids[:: max(1, len(ids) // SAMPLE)]
    there = await opened.content.existing_ids(sample)
    lacking = len(sample) - len(there)
    return [f"of {len(sample)} chunks looked up, {lacking} have no text"] if lacking else []


async def altered_texts(opened: Opened, ids: Sequence[str]) -> list[str]:
    """Those of `ids` whose text isn't the one that was put in, or has gone since. Reads all of them."""
    wrong: list[str] = []
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        texts = await opened.content.fetch(page)
        wanted = await asyncio.to_thread(content_hashes, opened.catalog, page)
        wrong += await asyncio.to_thread(_not_as_put, page, texts, wanted)
    return wrong


def _not_as_put(ids: Sequence[str], texts: dict[str, str], wanted: dict[str, tuple[str, str]]) -> list[str]:
    return [
        chunk_id
        for chunk_id, (prefix, wanted_hash) in ((each, wanted[each]) for each in ids if each in wanted)
        if chunk_id not in texts or hash_of(embedded_text(prefix, texts[chunk_id])) != wanted_hash
    ]


async def problems_of_texts(opened: Opened, report: LegReport) -> list[str]:
    """Every difference in words, and what to do about it."""
    problems = []
    if report.missing:
        names = await _file_names(opened, report.missing)
        problems.append(
            f"{len(report.missing)} of {report.expected} texts are missing or not what was put in; they come back when"
            f" these files are ingested again: {names}"
        )
    if report.extra:
        problems.append(f"there are {len(report.extra)} texts that the catalog doesn't have")
    return problems


async def _file_names(opened: Opened, ids: Sequence[str]) -> str:
    found = await asyncio.to_thread(live_chunks, opened.catalog, opened.name, ids)
    names = sorted({metadata["file_name"] for metadata in found.values()})
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


async def unembedded_texts(catalog: Catalog, content: ChunkStore, collection: str, model: str) -> dict[str, str]:
    """Content hash → embedded text, of the texts of the collection that are there and not in the vector cache."""
    lacking = await asyncio.to_thread(chunks_without_vector, catalog, collection, model)
    texts = await content.fetch([chunk.chunk_id for chunk in lacking.values()])
    return {
        key: embedded_text(chunk.prefix, texts[chunk.chunk_id])
        for key, chunk in lacking.items()
        if chunk.chunk_id in texts
    }


async def whole_drafts(catalog: Catalog, content: ChunkStore, versions: Sequence[int]) -> list[tuple[SourceDraft, str]]:
    """The drafts of stored versions as they were put in, and the folder each came from. Raises TextMissing."""
    found = await asyncio.to_thread(lambda: [read_draft(catalog, version) for version in versions])
    texts = await content.fetch([chunk_id for _, _, ids in found for chunk_id in ids])
    return [(_with_text(draft, ids, texts), root) for draft, root, ids in found]


def _with_text(draft: SourceDraft, ids: Sequence[str], texts: Mapping[str, str]) -> SourceDraft:
    if lacking := sum(chunk_id not in texts for chunk_id in ids):
        raise TextMissing(
            f"The text of {lacking} chunks of {draft.file_name} is missing.", hint="Ingest the file again, then retry."
        )
    chunks = (replace(chunk, text=texts[chunk_id]) for chunk, chunk_id in zip(draft.chunks, ids, strict=True))
    return replace(draft, chunks=tuple(chunks))
