"""The forks of the graph."""

from typing import Any

import pytest
from langgraph.graph import END

from leadline.decision import Remedies
from leadline.graph.routing import after_planner, after_reflection, after_reranker

BOTH, NONE = Remedies(retry=True, escalate=True), Remedies(retry=False, escalate=False)


def scored(*scores: float) -> Any:
    """A state whose context has these logits."""
    return {"context": [{"metadata": {"chunk_id": f"c{i}"}, "rerank_score": s} for i, s in enumerate(scores)]}


@pytest.mark.parametrize(
    ("route", "sources", "nodes"),
    [
        ("direct", None, ["reasoning"]),
        ("search", ["documents"], ["hybrid"]),
        ("search", ["documents", "web"], ["hybrid", "web"]),
    ],
)
def test_after_the_planner(route: str, sources: Any, nodes: list[str]) -> None:
    """Small talk to the reply, questions to the documents, and to the web where that was planned."""
    state: Any = {"route": route, "passes": [{"query": "q", "width": 1, "sources": sources}] if sources else []}
    assert after_planner(state) == nodes


@pytest.mark.parametrize(
    ("scores", "left", "node"),
    [
        ([1.0, -1.0], BOTH, "compressor"),
        ([-1.0, 0.0], BOTH, "reflection"),
        ([], BOTH, "reflection"),
        ([-1.0], NONE, "compressor"),
        ([], NONE, "compressor"),
        ([0.0, 0.0], BOTH, "compressor"),
    ],
)
def test_after_the_reranker(scores: list[float], left: Remedies, node: str) -> None:
    """No answer from what is known to be irrelevant while a remedy is left; unranked passages are tried."""
    assert after_reranker(scored(*scores), left) == node


def test_nothing_is_written_twice_from_the_same_passages() -> None:
    """A pass that brought the same context as the rejected draft's goes straight to the decision."""
    state = scored(1.0, 0.5)
    evidence = [{"n": n, "chunk_id": f"c{n}", "sentences": [(0, 1, "x")], "document": {}} for n in (0, 1)]
    assert after_reranker({**state, "evidence": evidence}, BOTH) == "reflection"
    assert after_reranker({**state, "evidence": evidence[:1]}, BOTH) == "compressor"


@pytest.mark.parametrize(
    ("action", "node"), [("retry", "hybrid"), ("escalate", "web"), ("finish", END), ("abstain", END)]
)
def test_after_reflection(action: Any, node: str) -> None:
    """Only a remedy goes back."""
    verdict: Any = {"evidence": "nothing", "grounding": "no_answer", "action": action, "reason": ""}
    assert after_reflection({"verdict": verdict}) == node
