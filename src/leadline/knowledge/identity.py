"""The ids of sources and chunks: hashes of what they are, so that equal input always gets the equal id.

Pure functions.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from leadline.drafts import ChunkDraft, SourceDraft
from leadline.stores.catalog_pending import NewVersion, PlacedChunk


def hash_of(*parts: str | int) -> str:
    """32 hexadecimal digits that depend on each part and on where one ends and the next begins."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = str(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def source_id(collection: str, uri: str) -> str:
    """The id of the source with this URI, whatever it holds."""
    return hash_of("source", collection, uri)


def place_chunks(doc_id: str, chunks: Sequence[ChunkDraft]) -> tuple[PlacedChunk, ...]:
    """The chunks with their ids: hash of source, embedded text (with where its prefix ends), and ordinal among equals.

    A text keeps its id wherever it moves in its source; a changed text gets a new one. An id never stands for two
    texts, so what is kept of a chunk by its id needs no version.
    """
    seen: Counter[tuple[str, int]] = Counter()
    placed = []
    for chunk in chunks:
        content_hash = hash_of(chunk.embedded_text)
        key = (content_hash, len(chunk.prefix))
        placed.append(PlacedChunk(hash_of("chunk", doc_id, *key, seen[key]), content_hash, chunk))
        seen[key] += 1
    return tuple(placed)


def new_version(collection: str, draft: SourceDraft, root: str) -> NewVersion:
    """The draft as it will be stored."""
    doc_id = draft.doc_id or source_id(collection, draft.uri)
    chunks = place_chunks(doc_id, draft.chunks)
    return NewVersion(doc_id, _fingerprint(draft, chunks), draft, chunks, root)


def _fingerprint(draft: SourceDraft, chunks: Sequence[PlacedChunk]) -> str:
    label = (draft.uri, draft.file_name, draft.file_hash, draft.source_type, dict(draft.metadata), draft.notes)
    places = [
        (c.chunk_id, c.draft.prefix, c.draft.page, c.draft.start_char, c.draft.end_char, c.draft.headings)
        for c in chunks
    ]
    return hash_of(json.dumps([label, places], sort_keys=True))
