"""What became of each candidate of a run: who found it, how it was ranked, and why it was used or not.

Pure functions over the state. Rows hold no text of a passage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.citations.markers import parse_markers
from leadline.knowledge.identity import hash_of
from leadline.ranking import evidence_sign, is_scored, unite
from leadline.records import Fate, SentenceCounts
from leadline.state import Citation, ContextRow, Document, EvidenceBlock, Found, Leg, RAGState, Sighting


def context_rows(state: RAGState, citations: Sequence[Citation]) -> list[ContextRow]:
    """A row for every candidate of every pass: those given to the writer first, then the others as they were ranked,
    then those whose text another one has, and those that were cut when the legs were joined.

    `citations` are those of the last draft, confirmed or not.
    """
    trail = _Trail.of(state.get("sightings", []))
    documents = state.get("documents", [])
    run = _Run(state, citations)
    ranked = [_ranked_row(document, run, trail) for document in documents]
    ranked.sort(key=lambda row: not row["kept"])  # stable: best first within each
    twins = [row for document in documents for row in _twin_rows(document, trail)]
    known = {row["chunk_id"] for row in (*ranked, *twins)}
    return [*ranked, *twins, *trail.cut(known)]


@dataclass(frozen=True, slots=True)
class _Trail:
    """The sightings by chunk, in the order first seen."""

    by_chunk: Mapping[str, Sequence[Sighting]]

    @classmethod
    def of(cls, sightings: Sequence[Sighting]) -> "_Trail":
        by_chunk: dict[str, list[Sighting]] = {}
        for sighting in sightings:
            by_chunk.setdefault(sighting["chunk_id"], []).append(sighting)
        return cls(by_chunk)

    def found_by(self, chunk_id: str, stored: Mapping[Leg, Found] | None = None) -> dict[Leg, Found]:
        """Leg → its best rank of all passes, and in which it was. `stored` is what the document itself says."""
        best: dict[Leg, Found] = {}
        for seen in self.by_chunk.get(chunk_id, ()):
            if seen["leg"] not in best or seen["rank"] < best[seen["leg"]]["rank"]:
                best[seen["leg"]] = Found(rank=seen["rank"], score=seen["score"], in_pass=seen["in_pass"])
        return dict(sorted({**(stored or {}), **best}.items()))

    def cut(self, known: set[str]) -> list[ContextRow]:
        """Rows of the chunks that a leg found and that nothing else is known of, best rank first."""
        lost = [min(seen, key=lambda s: s["rank"]) for chunk, seen in self.by_chunk.items() if chunk not in known]
        return [self._cut_row(seen) for seen in sorted(lost, key=lambda s: (s["rank"], s["chunk_id"]))]

    def _cut_row(self, seen: Sighting) -> ContextRow:
        why = "found, but cut when the legs were joined"
        return _row(seen, self.found_by(seen["chunk_id"]), seen["content_hash"], fate="fusion", why=why)


class _Run:
    """What the run did with its ranked documents."""

    def __init__(self, state: RAGState, citations: Sequence[Citation]) -> None:
        documents = state.get("documents", [])
        self.count = len(documents)
        self.rank = {_id(document): place for place, document in enumerate(documents)}
        self.fused = {_id(document): place for place, document in enumerate(unite(documents, []))}
        self.context = [_id(document) for document in state.get("context", [])]
        self.blocks = {block["chunk_id"]: block for block in state.get("evidence", [])}
        self.cited = [(citation["chunk_id"], citation["verified"]) for citation in citations]
        self.drafted = {n for marker in parse_markers(state.get("answer", "")) for n in marker.numbers}
        self.hopeless = evidence_sign(documents) == "irrelevant"

    def fate(self, document: Document) -> tuple[Fate, str]:
        """What became of a ranked document, and why, in words."""
        chunk_id, place = _id(document), f"ranked {self.rank[_id(document)] + 1} of {self.count}"
        block = self.blocks.get(chunk_id)
        if block is not None and block["sentences"]:
            return self._shown(document, block, place)
        if chunk_id not in self.context:
            return "beyond_top", f"{place}: only the best {len(self.context)} go to the writer{_below(document)}"
        if block is not None:
            return _withheld(block, place)
        if self.hopeless:
            return "below_zero", f"{place}: below zero ({document['rerank_score']:+.2f}), as every passage is"
        return "not_written", f"{place}: no answer was written from it"

    def _shown(self, document: Document, block: EvidenceBlock, place: str) -> tuple[Fate, str]:
        number, part = f"[{block['n']}]", _part(block)
        confirmed = [verified for chunk_id, verified in self.cited if chunk_id == block["chunk_id"]]
        if any(confirmed):
            return "cited", f"cited as {number}{part}"
        if confirmed:
            return "check_failed", f"cited as {number}, but the check doesn't confirm the sentence{part}"
        if block["n"] in self.drafted:
            return "check_failed", f"the draft cited it as {number} in a sentence that the check doesn't confirm{part}"
        if self.hopeless and not any(verified for _, verified in self.cited):
            return "below_zero", f"{place}: below zero ({document['rerank_score']:+.2f}), as every passage is{part}"
        return "not_cited", f"shown to the writer as {number}, not cited{_below(document)}{part}"


def _withheld(block: EvidenceBlock, place: str) -> tuple[Fate, str]:
    counts = sentences_of(block)
    if counts["orders"] and not counts["no_room"]:
        return "orders", f"{place}: all of its sentences give orders to a model, so none is shown to one"
    return "no_room", f"{place}: no room for it in the evidence's token budget"


def _part(block: EvidenceBlock) -> str:
    """How much of a passage was left out, and why; empty where the whole of it was shown."""
    counts = sentences_of(block)
    why = [f"{counts['orders']} gave orders to a model"] if counts["orders"] else []
    if counts["no_room"]:
        why.append(f"{counts['no_room']} had no room in the token budget")
    whole = sum((counts["shown"], counts["no_room"], counts["orders"]))
    return f"; {counts['shown']} of its {whole} sentences are shown: {', '.join(why)}" if why else ""


def _below(document: Document) -> str:
    logit = document["rerank_score"]
    return f"; it is below zero ({logit:+.2f})" if is_scored(logit) and logit < 0 else ""


def sentences_of(block: EvidenceBlock) -> SentenceCounts:
    """How many of its sentences the writer was shown, and why it wasn't the others."""
    orders = block.get("orders", 0)
    no_room = max(0, block.get("dropped", 0) - orders)
    return SentenceCounts(shown=len(block["sentences"]), no_room=no_room, orders=orders)


def _ranked_row(document: Document, run: _Run, trail: _Trail) -> ContextRow:
    metadata, chunk_id = document["metadata"], _id(document)
    fate, why = run.fate(document)
    row = _row(
        metadata,
        trail.found_by(chunk_id, metadata.get("found_by", {})),
        hash_of(document["content"]),
        fate=fate,
        why=why,
    )
    block = run.blocks.get(chunk_id)
    if led_by := metadata.get("led_by"):
        row["led_by"] = led_by["name"]
        row["why"] += f"; the name {led_by['name']} in another passage led to it"
    row["rerank_score"] = document["rerank_score"]
    row["rank"], row["fused_rank"] = run.rank[chunk_id], run.fused[chunk_id]
    if block is not None:
        row["kept"] = bool(block["sentences"])
        row["n"] = block["n"]
        row["sentences"] = sentences_of(block)
    return row


def _twin_rows(document: Document, trail: _Trail) -> list[ContextRow]:
    """Rows of the candidates whose text this document has too."""
    metadata = document["metadata"]
    why = f"the same text as a passage of {metadata['file_name']}, which stands for it"
    rows = []
    for place in metadata.get("also_in", ()):
        seen = trail.by_chunk.get(place["chunk_id"], [None])[0]
        index = None if seen is None else seen["chunk_index"]
        described = {"source_type": metadata["source_type"], "chunk_index": index, **place}
        found = trail.found_by(place["chunk_id"])
        row = _row(described, found, hash_of(document["content"]), fate="same_text", why=why)
        rows.append(ContextRow({**row, "same_as": _id(document)}))
    return rows


def _row(
    place: Mapping[str, Any], found_by: dict[Leg, Found], content_hash: str, *, fate: Fate, why: str
) -> ContextRow:
    return ContextRow(
        chunk_id=place["chunk_id"],
        file_name=place["file_name"],
        rerank_score=0.0,
        found_by=found_by,
        kept=False,
        why=why,
        fate=fate,
        doc_id=place["doc_id"],
        chunk_index=place.get("chunk_index"),
        page=place.get("page"),
        source_type=place["source_type"],
        content_hash=content_hash,
        fused_rank=None,
        rank=None,
        n=None,
        sentences=None,
        same_as=None,
        led_by=None,
    )


def _id(document: Document) -> str:
    return str(document["metadata"]["chunk_id"])
