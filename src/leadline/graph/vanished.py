"""What has become of passages that a recorded run found and that are not found now.

Knows where to look: in the catalog for the chunk and its document, in the content store for the text under its id.
"""

from collections.abc import Sequence

from leadline.errors import RecordError, TextMissing
from leadline.graph.differences import Kind
from leadline.graph.recorded import Recorded, RecordedRow
from leadline.knowledge import Library
from leadline.knowledge.identity import hash_of
from leadline.knowledge.lookup import live_passages, states_of
from leadline.records import ContextRow
from leadline.stores.base import Hit
from leadline.stores.catalog_lookup import SourceState


async def absences(
    recorded: Recorded, rows: Sequence[ContextRow], library: Library, collection: str
) -> dict[str, tuple[Kind, str]]:
    """chunk_id → kind and the rest of a sentence about its file, of the recorded chunks that are not in `rows`."""
    found = {row["chunk_id"] for row in rows}
    lost = [row for row in recorded.context if row.chunk_id not in found and row.source_type != "web"]
    if not lost:
        return {}
    live = list(await live_passages(library, collection, [row.chunk_id for row in lost]))
    hashes = await _text_hashes(library, collection, live)
    states = await states_of(library, [row.doc_id for row in lost])
    elsewhere = {row["content_hash"]: row["file_name"] for row in reversed(rows)}
    absent: dict[str, tuple[Kind, str]] = {}
    for row in lost:
        if row.chunk_id not in live:
            twin = elsewhere.get(row.content_hash)
            also = f"; the same text is now found in {twin}" if twin else ""
            absent[row.chunk_id] = ("gone", f"{_gone(row, recorded, states.get(row.doc_id), collection)}{also}")
        elif row.chunk_id not in hashes:
            absent[row.chunk_id] = ("changed", "has lost its text: `leadline verify` says how to bring it back")
        elif hashes[row.chunk_id] != row.content_hash:
            absent[row.chunk_id] = ("changed", "has another text under the same id, and is not found any more")
        else:
            absent[row.chunk_id] = ("not_found", "is still there, but not among what is found")
    return absent


async def check_library(recorded: Recorded, library: Library) -> list[str]:
    """A note where the record is of another library. Raises RecordError where that has none of the record's documents:
    nothing could be compared."""
    sources = recorded.record.sources
    if recorded.record.library == await library.identity():
        return []
    here = await states_of(library, sorted(sources))
    if sources and not here:
        raise RecordError(
            f"The record is of another library: none of its {len(sources)} documents is here.",
            hint="Give the data folder that it was made with: --data-dir.",
        )
    return [f"The record is of another library; {len(here)} of its {len(sources)} documents are here too."]


async def replaced_files(recorded: Recorded, rows: Sequence[ContextRow], library: Library) -> list[str]:
    """Notes on the files that have other bytes now although all that was found of them is still found."""
    found = {row["chunk_id"] for row in rows}
    untouched = {row.doc_id for row in recorded.context} - {
        row.doc_id for row in recorded.context if row.chunk_id not in found
    }
    states = await states_of(library, sorted(untouched))
    return [
        f"{was.file_name} was replaced since; what was found of it is in it unchanged."
        for doc_id, was in recorded.record.sources.items()
        if doc_id in untouched and doc_id in states and states[doc_id].file_hash != was.file_hash
    ]


def _gone(row: RecordedRow, recorded: Recorded, state: SourceState | None, collection: str) -> str:
    if state is None or state.state == "being_removed":
        return "is not in the documents any more"
    if state.collection != collection:
        return f"is not in this collection, but in {state.collection}"
    if state.state == "not_ready":
        return "is not ready: it is just being put in, or that was interrupted"
    was = recorded.record.sources.get(row.doc_id)
    if was is not None and was.file_hash == state.file_hash:
        return "is cut into other passages now; this one is not among them"
    return "was replaced, and this passage is not in it any more"


async def _text_hashes(library: Library, collection: str, ids: Sequence[str]) -> dict[str, str]:
    """chunk_id → the hash of its text, of those that have one."""
    if not ids:
        return {}
    base = await library.collection(collection)
    try:
        documents = await base.hydrate([Hit(chunk_id, 0.0, rank) for rank, chunk_id in enumerate(ids)], "replay")
    except TextMissing:
        return {}
    return {document["metadata"]["chunk_id"]: hash_of(document["content"]) for document in documents}
