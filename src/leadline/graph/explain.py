"""What became of one document in a run: which stage lost it, and what it would have taken to use it.

Knows the stages in their order, from the catalog to the check of the answer. Asks the question as any other run does;
only where a passage was not found at all it looks deeper than the run did, and has it scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from leadline.config import RunContext
from leadline.graph.advice import advice, reason
from leadline.graph.deeper import DeepRank, Depths, look_deeper
from leadline.graph.run import App
from leadline.knowledge.lookup import find_document, passages_of, refuse_unknown_fields
from leadline.records import ContextRow, Fate, Result
from leadline.stores.catalog_lookup import PlacedFields, SourceState
from leadline.stores.filters import check, matches

Stage = (
    Fate
    | Literal[
        "not_in_catalog",
        "other_collection",
        "not_ready",
        "filtered_out",  # by the filter of the run
        "not_searched",  # the question was answered directly
        "run_failed",
        "not_found",  # by no leg among its best
    ]
)
# From the best that can become of a passage to the worst.
ORDER: Sequence[Stage] = (
    *("cited", "check_failed", "not_cited", "no_room", "orders", "below_zero", "not_written", "beyond_top"),
    *("same_text", "fusion", "not_found", "filtered_out", "not_searched", "run_failed"),
)


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage of the document. `row` is its row in the result, where a leg found it; else `deep` says at which
    ranks a deeper search has it, and `logit` what the reranker says of it (None: not asked, or not to be had)."""

    chunk_id: str
    chunk_index: int
    page: int | None
    stage: Stage
    why: str
    row: ContextRow | None = None
    deep: tuple[DeepRank, ...] = ()
    logit: float | None = None
    begins: str = ""

    @property
    def place(self) -> tuple[int, int, int]:
        """Orders passages: what became of them, then how well they were ranked, then where they are."""
        if self.row is not None and self.row["rank"] is not None:
            rank = self.row["rank"]
        else:
            rank = min((deep.rank for deep in self.deep if deep.rank is not None), default=10**9)
        return ORDER.index(self.stage), rank, self.chunk_index


@dataclass(frozen=True, slots=True)
class Explanation:
    """`stage` and `why` are those of the best passage, or of the document where none of it came so far. `hint` says
    what would change it; may be empty. `depth` is how deep the deeper searches went."""

    question: str
    wanted: str
    stage: Stage
    why: str
    hint: str = ""
    document: SourceState | None = None
    passages: tuple[Passage, ...] = ()
    result: Result | None = None
    depth: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def used(self) -> bool:
        """Whether the answer cites it."""
        return self.stage == "cited"

    def to_json(self) -> dict[str, Any]:
        """As `leadline explain --json` prints it."""
        document = self.document
        return {
            "question": self.question,
            "wanted": self.wanted,
            "stage": self.stage,
            "used": self.used,
            "why": self.why,
            "hint": self.hint,
            "document": None if document is None else {name: getattr(document, name) for name in SourceState.__slots__},
            "passages": [_as_json(passage) for passage in self.passages],
            "depth": self.depth,
            "run": None if self.result is None else run_json(self.result),
        }


def run_json(result: Result) -> dict[str, Any]:
    """What an explanation says of the run as a whole."""
    record = result.get("record")
    return {
        "status": result["status"],
        "verdict": result["verdict"],
        "passes": record["passes"] if record else [],
        "degraded": result["degraded"],
        "models": result["models"],
        "error": result.get("error"),
    }


async def explain(app: App, question: str, wanted: str, context: RunContext, *, depth: int = 1000) -> Explanation:
    """Why the document that `wanted` names was used for the answer, or which stage lost it.

    `wanted` is an id or its beginning, a path, a file name, or a part of one. `depth` is how many hits a leg is asked
    for where the run's own searches didn't find a passage. Raises StoreError where several documents are meant,
    InvalidFilter, CollectionUnknown.
    """
    check(context.filters)
    await app.library.collection(context.collection)
    await refuse_unknown_fields(app.library, context.collection, context.filters)
    document = await find_document(app.library, wanted, context.collection)
    early = _before_the_run(document, context)
    if document is None or early is not None:
        stage, why = early or ("not_in_catalog", "")
        return _ended(question, wanted, stage, why, document)
    placed = await passages_of(app.library, document.doc_id)
    passing = [each for each in placed if matches(context.filters, each.fields)]
    if not passing:
        return _ended(question, wanted, "filtered_out", "the run's filter leaves all of its passages out", document)
    result = await app.ask(question, context=context)
    if result["status"] == "error" or not (record := result.get("record")):
        return _ended(question, wanted, "run_failed", result["verdict"]["reason"], document, result)
    if not record["passes"]:
        return _ended(question, wanted, "not_searched", "the question was answered directly", document, result)
    rows = {row["chunk_id"]: row for row in result["context"] if row["doc_id"] == document.doc_id}
    unseen = [each.chunk_id for each in passing if each.chunk_id not in rows]
    depths = await look_deeper(app, context, record, unseen, depth=depth)
    passages = sorted((_passage(each, rows, passing, depths, result) for each in placed), key=lambda p: p.place)
    return Explanation(
        question=question,
        wanted=wanted,
        stage=passages[0].stage,
        why=passages[0].why,
        hint=advice(passages[0].row, passages[0].stage, passages[0].deep, passages[0].logit),
        document=document,
        passages=tuple(passages),
        result=result,
        depth=depth,
        failed=depths.failed,
    )


def _before_the_run(document: SourceState | None, context: RunContext) -> tuple[Stage, str] | None:
    """What keeps a document out of any run, if something does."""
    if document is None:
        return "not_in_catalog", "no document of this name was put in"
    if document.collection != context.collection:
        return "other_collection", f"it is in the collection {document.collection}, not in {context.collection}"
    if document.state == "not_ready":
        return "not_ready", "it is being put in, or that was interrupted: searches don't see it yet"
    if document.state == "being_removed":
        return "not_ready", "it is being removed: searches don't see it any more"
    return None


def _ended(
    question: str,
    wanted: str,
    stage: Stage,
    why: str,
    document: SourceState | None,
    result: Result | None = None,
) -> Explanation:
    other = document.collection if document is not None else ""
    hint = advice(None, stage, (), None, collection=other)
    return Explanation(question, wanted, stage, why, hint, document, result=result)


def _passage(
    placed: PlacedFields,
    rows: Mapping[str, ContextRow],
    passing: Sequence[PlacedFields],
    depths: Depths,
    result: Result,
) -> Passage:
    chunk_id = placed.chunk_id
    row = rows.get(chunk_id)
    if row is not None:
        return Passage(chunk_id, placed.chunk_index, placed.page, row["fate"], row["why"], row)
    if placed not in passing:
        why = "the run's filter leaves it out"
        return Passage(chunk_id, placed.chunk_index, placed.page, "filtered_out", why)
    deep = depths.ranks.get(chunk_id, ())
    return Passage(
        chunk_id,
        placed.chunk_index,
        placed.page,
        "not_found",
        reason(deep, depths.legs, result["degraded"]),
        deep=deep,
        logit=depths.logits.get(chunk_id),
        begins=depths.begins.get(chunk_id, ""),
    )


def _as_json(passage: Passage) -> dict[str, Any]:
    row = passage.row
    return {
        "chunk_id": passage.chunk_id,
        "chunk_index": passage.chunk_index,
        "page": passage.page,
        "stage": passage.stage,
        "why": passage.why,
        "rerank_score": passage.logit if row is None else row["rerank_score"],
        "found_by": {} if row is None else row["found_by"],
        "fused_rank": None if row is None else row["fused_rank"],
        "rank": None if row is None else row["rank"],
        "n": None if row is None else row["n"],
        "sentences": None if row is None else row["sentences"],
        "deeper": [{name: getattr(deep, name) for name in DeepRank.__slots__} for deep in passage.deep],
    }
