"""What the legs found, pass after pass, kept without the text: the trail that a passage leaves in a run.

Pure. Knows how a candidate looks when a leg has found it; doesn't know what becomes of it.
"""

from collections.abc import Mapping, Sequence

from leadline.knowledge.identity import hash_of
from leadline.state import Document, Leg, Sighting


def sightings(candidates: Mapping[Leg, Sequence[Document]], *, in_pass: int) -> list[Sighting]:
    """One for each chunk of each leg, in the order found. `in_pass` counts from 1."""
    return [
        _sighting(document, leg, place, in_pass)
        for leg, documents in candidates.items()
        for place, document in enumerate(documents)
    ]


def _sighting(document: Document, leg: Leg, place: int, in_pass: int) -> Sighting:
    metadata = document["metadata"]
    found = metadata.get("found_by", {}).get(leg, {})
    return Sighting(
        in_pass=in_pass,
        leg=leg,
        rank=found.get("rank", place),
        score=found.get("score", document["score"]),
        chunk_id=metadata["chunk_id"],
        doc_id=metadata["doc_id"],
        file_name=metadata["file_name"],
        file_hash=metadata["file_hash"],
        chunk_index=metadata["chunk_index"],
        page=metadata.get("page"),
        source_type=metadata["source_type"],
        content_hash=hash_of(document["content"]),
    )
