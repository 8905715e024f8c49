"""Where passages that a run did not find stand in a deeper search, and what the reranker says of them.

Asks the legs the run's own queries with the run's own filter, only for more.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.errors import InvalidFilter, RerankerRefused
from leadline.graph.build import search_nodes
from leadline.graph.run import App
from leadline.knowledge.retrievers import search_all
from leadline.ranking import is_scored
from leadline.records import Document, Pass, RunRecord

SCORED: Final = 10  # passages of one document that the reranker is asked about
BEGINS_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class DeepRank:
    """Where a leg has a passage: its 0-based rank, or None where it isn't among the `searched` hits.

    `exhausted`: the leg had no more than those, so that no depth would show it. `width` is what the run asked for.
    """

    in_pass: int
    leg: str
    rank: int | None
    searched: int
    exhausted: bool
    width: int


@dataclass(frozen=True, slots=True)
class Depths:
    """Of the passages asked about: ranks, the logits of the best of them, and how those begin. `failed`: leg → why."""

    ranks: Mapping[str, tuple[DeepRank, ...]] = field(default_factory=dict)
    logits: Mapping[str, float] = field(default_factory=dict)
    begins: Mapping[str, str] = field(default_factory=dict)
    legs: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


async def look_deeper(
    app: App, context: RunContext, record: RunRecord, chunk_ids: Collection[str], *, depth: int
) -> Depths:
    """Where the chunks stand in each of the run's searches of the documents. Asks nothing where there are no chunks."""
    if not chunk_ids:
        return Depths()
    legs = await app.deps.retrievers(context.collection)
    wanted, failed = set(chunk_ids), dict[str, str]()
    ranks: dict[str, list[DeepRank]] = {chunk_id: [] for chunk_id in chunk_ids}
    texts: dict[str, Document] = {}
    for number, search in enumerate(record["passes"], start=1):
        if not _is_search(search) or _asked_before(search, record["passes"][: number - 1]):
            continue
        outcomes = await search_all(legs, search["query"], k=max(depth, search["width"]), where=context.filters)
        for leg, found in outcomes.items():
            if isinstance(found, InvalidFilter):
                raise found
            if isinstance(found, BaseException):
                failed[leg] = str(found)
                continue
            places = {str(each["metadata"]["chunk_id"]): place for place, each in enumerate(found)}
            texts |= {chunk: found[places[chunk]] for chunk in wanted & places.keys()}
            for chunk_id in chunk_ids:
                ranks[chunk_id].append(_deep(number, leg, places.get(chunk_id), len(found), depth, search["width"]))
    best = sorted(texts.values(), key=lambda d: _best(ranks[d["metadata"]["chunk_id"]]))[:SCORED]
    return Depths(
        ranks={chunk_id: tuple(found) for chunk_id, found in ranks.items()},
        logits=await _logits(app, context, record, best),
        begins={str(d["metadata"]["chunk_id"]): d["content"][:BEGINS_CHARS] for d in best},
        legs=tuple(legs),
        failed=failed,
    )


def _is_search(search: Mapping[str, Any]) -> bool:
    """Whether the documents were searched for its query. For names alone it was each of them, for its best hit only:
    deeper there is nothing that a run could have had."""
    return "documents" in search["sources"] and not (search.get("hops") and search["width"] <= 1)


def _asked_before(search: Pass, earlier: Sequence[Pass]) -> bool:
    """A wider search for the same is no other one once it is made deeper."""
    return any(each["query"] == search["query"] and "documents" in each["sources"] for each in earlier)


def _deep(number: int, leg: str, rank: int | None, searched: int, depth: int, width: int) -> DeepRank:
    exhausted = searched < max(depth, width)
    return DeepRank(in_pass=number, leg=leg, rank=rank, searched=searched, exhausted=exhausted, width=width)


def _best(ranks: Sequence[DeepRank]) -> int:
    return min((deep.rank for deep in ranks if deep.rank is not None), default=10**9)


async def _logits(app: App, context: RunContext, record: RunRecord, documents: Sequence[Document]) -> dict[str, float]:
    """By the run's own reranker and questions; of none where it can't be had."""
    if not documents:
        return {}
    _, reranker = search_nodes(app.deps)
    queries = record["judged_by"]
    runtime: Runtime[RunContext] = Runtime(context=context, stream_writer=_unheard)
    try:
        ranked = await reranker({"question": queries[0], "queries": queries, "documents": [*documents]}, runtime)
    except RerankerRefused:
        return {}
    scored = {str(d["metadata"]["chunk_id"]): d["rerank_score"] for d in ranked.get("documents", [])}
    return {chunk_id: logit for chunk_id, logit in scored.items() if is_scored(logit)}


def _unheard(event: Any) -> None:
    """Nobody is shown the events of what is done beside the run."""
