"""The searches of a run made again, by the graph's own nodes, without an LLM and without the web.

Knows which part of the graph is retrieval. What the web gave stands in by its ranks and logits, so that the documents
compete with what they competed with then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.graph.build import Dependencies, search_nodes
from leadline.nodes.aggregator import aggregator
from leadline.state import Document, Found, Pass, RAGState, RAGUpdate


@dataclass(frozen=True, slots=True)
class Ghost:
    """A passage of the web as a run found it: where, at which rank, with which logit; without its text."""

    metadata: Mapping[str, Any]
    found: Found
    logit: float
    in_pass: int


@dataclass(frozen=True, slots=True)
class Searched:
    """What the searches gave: the state after the reranker, and what failed in them, part → why."""

    state: RAGState
    failed: dict[str, str] = field(default_factory=dict)


async def search_again(
    deps: Dependencies,
    context: RunContext,
    passes: Sequence[Pass],
    judged_by: Sequence[str],
    ghosts: Sequence[Ghost] = (),
) -> Searched:
    """The passes in their order, united as the run unites them, and ranked against the questions `judged_by`.

    Raises as the nodes do: StoreError where the collection can't be opened, InvalidFilter, RerankerRefused.
    """
    failed: dict[str, str] = {}

    def note(event: Mapping[str, Any]) -> None:
        if event.get("type") == "degraded":
            failed[str(event["part"])] = str(event["reason"])

    runtime = Runtime(context=context, stream_writer=note)
    hybrid, reranker = search_nodes(deps)
    state: RAGState = {"question": judged_by[0] if judged_by else "", "queries": list(judged_by), "degraded": []}
    for number, search in enumerate(passes, start=1):
        now: RAGUpdate = {"query": search["query"], "width": search["width"], "passes": list(passes[:number])}
        state = _with(state, now)
        found = await hybrid(state, runtime) if "documents" in search["sources"] else RAGUpdate(candidates={})
        web = [_document(ghost) for ghost in ghosts if ghost.in_pass == number]
        candidates = {**found.get("candidates", {}), **({"web": web} if web else {})}
        state = _with(state, {**found, "candidates": candidates})
        state = _with(state, await aggregator(state, runtime))
    state = _with(state, {"scores": {query: _logits(ghosts) for query in judged_by}})
    return Searched(_with(state, await reranker(state, runtime)), failed)


def _with(state: RAGState, update: RAGUpdate) -> RAGState:
    return cast(RAGState, {**state, **update})


def _logits(ghosts: Sequence[Ghost]) -> dict[str, float]:
    return {str(ghost.metadata["chunk_id"]): ghost.logit for ghost in ghosts}


def _document(ghost: Ghost) -> Document:
    return Document(
        content="",
        metadata={**ghost.metadata, "found_by": {"web": ghost.found}},
        score=ghost.found["score"],
        source="web",
        rerank_score=0.0,
    )
