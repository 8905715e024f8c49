"""How one search of the documents differs from another, chunk by chunk and setting by setting. Pure.

Logits are the same within TOLERANCE: another processor or number of threads rounds them otherwise. Ranks are exact. The
legs' own scores are not compared: they may change where no rank does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from leadline.graph.recorded import RecordedRow
from leadline.records import ContextRow, Found

TOLERANCE: Final = 0.01  # of a logit

Kind = Literal[
    "record",  # it is not as it was written
    "collection",
    "setting",
    "model",
    "zero_point",
    "part",  # a leg or the reranker failed in one of them only
    "evidence",  # the sign of the passages says something else
    "gone",  # the passage isn't in the collection any more
    "changed",  # it is another text, under the same id
    "not_found",  # it is there, but no leg finds it among its best
    "new",  # found now, and not then
    "moved",  # another rank after the reranker
    "rescored",  # another logit
    "legs",  # another rank in a leg
]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was. `text` is a sentence for people; of a chunk `was` and `now` hold its ranks."""

    kind: Kind
    text: str
    was: Any = None
    now: Any = None
    chunk_id: str | None = None
    file_name: str | None = None
    used: bool = False  # the writer was shown the passage

    def to_json(self) -> dict[str, Any]:
        """All that is known of it."""
        known = {name: getattr(self, name) for name in ("kind", "text", "was", "now")}
        chunk = {name: getattr(self, name) for name in ("chunk_id", "file_name", "used")}
        return {**known, **(chunk if self.chunk_id is not None else {})}


def chunk_differences(
    then: Sequence[RecordedRow], now: Sequence[ContextRow], absent: Mapping[str, tuple[Kind, str]]
) -> list[Difference]:
    """What is different of the passages of documents: those that the writer saw first, then as they were ranked.

    `absent` says of those that are not among the candidates now what has become of them: `gone`, `changed` or
    `not_found`, and the rest of a sentence that begins with their file's name.
    """
    known = {row["chunk_id"]: row for row in now if row["source_type"] != "web"}
    found = [difference for row in then if row.source_type != "web" for difference in _of_row(row, known, absent)]
    before = {row.chunk_id for row in then}
    return [*found, *(_new(row) for chunk_id, row in known.items() if chunk_id not in before)]


def _of_row(
    row: RecordedRow, known: Mapping[str, ContextRow], absent: Mapping[str, tuple[Kind, str]]
) -> Iterator[Difference]:
    now = known.get(row.chunk_id)
    if now is not None:
        changes = list(_changes(row, now))
        if changes:
            text = "; ".join(text for _, text in changes)
            yield _difference(row, changes[0][0], text, _ranks_now(now))
    else:
        kind, text = absent.get(row.chunk_id, ("gone", "is not found any more"))
        yield _difference(row, kind, text, None)


def _changes(row: RecordedRow, now: ContextRow) -> Iterator[tuple[Kind, str]]:
    if row.content_hash != now["content_hash"]:
        yield "changed", "has another text under the same id"
    if row.rank != now["rank"]:
        yield "moved", f"is ranked {_place(now['rank'])} instead of {_place(row.rank)}"
    if abs(row.rerank_score - now["rerank_score"]) > TOLERANCE:
        yield "rescored", f"has the logit {_logit(now['rerank_score'])} instead of {_logit(row.rerank_score)}"
    legs = [
        f"{leg} {_leg_place(now['found_by'].get(leg))} instead of {_leg_place(row.found().get(leg))}"
        for leg in sorted({*row.found_by, *now["found_by"]} - {"web"})
        if _leg_rank(row.found().get(leg)) != _leg_rank(now["found_by"].get(leg))
    ]
    if legs:
        yield "legs", f"has other ranks in the legs ({', '.join(legs)})"


def _new(row: ContextRow) -> Difference:
    place = row["why"] if row["rank"] is None else f"ranked {_place(row['rank'])}, {_logit(row['rerank_score'])}"
    text = f"is found now and was not ({place})"
    return Difference(
        "new",
        f"{passage_label(row['file_name'], row['chunk_index'], row['page'])} {text}.",
        now=_ranks_now(row),
        chunk_id=row["chunk_id"],
        file_name=row["file_name"],
    )


def _difference(row: RecordedRow, kind: Kind, text: str, now: Any) -> Difference:
    return Difference(
        kind,
        f"{passage_label(row.file_name, row.chunk_index, row.page)} {text}.",
        was={"rank": row.rank, "rerank_score": row.rerank_score, "legs": _legs(row.found())},
        now=now,
        chunk_id=row.chunk_id,
        file_name=row.file_name,
        used=row.kept,
    )


def _ranks_now(row: ContextRow) -> dict[str, Any]:
    return {"rank": row["rank"], "rerank_score": row["rerank_score"], "legs": _legs(row["found_by"])}


def _legs(found_by: Mapping[str, Found]) -> dict[str, int]:
    return {leg: found["rank"] for leg, found in found_by.items()}


def passage_label(file_name: str, chunk_index: int | None, page: int | None) -> str:
    """How people are told of a passage: its file, page and number in the file, as far as known."""
    place = f", page {page}" if page is not None else ""
    return f"{file_name}{place}{f', passage {chunk_index + 1}' if chunk_index is not None else ''}"


def _place(rank: int | None) -> str:
    return "nowhere" if rank is None else str(rank + 1)


def _leg_rank(found: Found | None) -> int | None:
    return None if found is None else found["rank"]


def _leg_place(found: Found | None) -> str:
    return "not found" if found is None else str(found["rank"] + 1)


def _logit(rerank_score: float) -> str:
    return f"{rerank_score:+.2f}" if rerank_score else "not scored"
