"""The reranker node: one batched call, a cache over passes, and the fused order when it fails."""

import math
import time
from collections.abc import Sequence
from typing import Any

import pytest

from leadline.errors import ModelUnavailable, RerankerRefused
from leadline.nodes.reranker import reranker


def loaded(model: Any) -> Any:
    """A loader of `model`; an exception is raised instead."""

    async def load() -> Any:
        if isinstance(model, Exception):
            raise model
        return model

    return load


class Given:
    """A reranker with the scores it is given."""

    name = "given"

    def __init__(self, scores: Sequence[float], seconds: float = 0.0) -> None:
        self.scores, self.seconds = scores, seconds

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        time.sleep(self.seconds)
        return list(self.scores)


def state_of(passage: Any, count: int = 3) -> Any:
    """A state with so many documents in fused order."""
    return {"question": "q", "queries": ["q"], "documents": [passage(f"text {i}", f"c{i}") for i in range(count)]}


async def test_the_best_come_first_and_all_keep_their_logits(bench: Any, passage: Any, applied: Any) -> None:
    """The context is the best few; the documents keep all logits for the table of the result."""
    state = state_of(passage)
    update = await reranker(state, bench.runtime(rerank_top_k=2), load=loaded(Given([-1.0, 2.0, 0.5])), timeout_s=5)
    after = applied(state, update)
    assert [document["rerank_score"] for document in after["context"]] == [2.0, 0.5]
    assert [document["rerank_score"] for document in after["documents"]] == [2.0, 0.5, -1.0]


async def test_a_chunk_is_scored_once_per_question(bench: Any, passage: Any, applied: Any, words: Any) -> None:
    """A second pass scores only what is new, and a second question everything once; the best score counts."""
    state = state_of(passage, 2)
    state = applied(state, await reranker(state, bench.runtime(), load=loaded(words), timeout_s=5))
    state = {**state, "documents": [*state["documents"], passage("text nine", "c9")], "queries": ["q", "text nine"]}
    state = applied(state, await reranker(state, bench.runtime(), load=loaded(words), timeout_s=5))
    assert [(question, len(texts)) for question, texts in words.calls] == [("q", 2), ("q", 1), ("text nine", 3)]
    assert state["context"][0]["metadata"]["chunk_id"] == "c9"


@pytest.mark.parametrize(
    "model",
    [
        ModelUnavailable("no such model"),
        Given([1.0]),
        Given([math.nan, math.inf, -math.inf]),
        Given([1.0, 2.0, 3.0], seconds=0.3),
    ],
    ids=["unavailable", "partial", "not finite", "too slow"],
)
async def test_a_failing_reranker_leaves_the_fused_order_unscored(
    bench: Any, passage: Any, applied: Any, model: Any
) -> None:
    """Unavailable, partial, not finite or too slow: fused order, every score 0.0, and `degraded` says so."""
    state = state_of(passage)
    after = applied(state, await reranker(state, bench.runtime(), load=loaded(model), timeout_s=0.1))
    assert [document["metadata"]["chunk_id"] for document in after["context"]] == ["c0", "c1", "c2"]
    assert {document["rerank_score"] for document in after["documents"]} == {0.0}
    assert after["degraded"] == ["reranker"]
    assert bench.of("degraded")[0]["reason"]


async def test_one_score_that_is_not_finite_is_unscored(bench: Any, passage: Any, applied: Any) -> None:
    """NaN for one passage says nothing of the others."""
    state = state_of(passage)
    after = applied(state, await reranker(state, bench.runtime(), load=loaded(Given([math.nan, -1, -2])), timeout_s=5))
    assert [document["rerank_score"] for document in after["documents"]] == [-1.0, -2.0, 0.0]


async def test_a_sign_that_cannot_be_trusted_ends_the_run(bench: Any, passage: Any) -> None:
    """A refused reranker is not worked around."""
    with pytest.raises(RerankerRefused):
        await reranker(state_of(passage), bench.runtime(), load=loaded(RerankerRefused("sigmoid")), timeout_s=5)


async def test_headings_are_read_with_the_text(bench: Any, passage: Any, words: Any) -> None:
    """A passage under a heading is scored with it."""
    state = {"question": "q", "queries": ["q"], "documents": [passage("text", headings=["Pumps", "Wear"])]}
    await reranker(state, bench.runtime(), load=loaded(words), timeout_s=5)
    assert words.calls == [("q", ["Pumps\nWear\ntext"])]


async def test_without_documents_there_is_nothing_to_do(bench: Any, words: Any) -> None:
    """No model is loaded for nothing."""
    assert await reranker({"question": "q", "documents": []}, bench.runtime(), load=loaded(words), timeout_s=5) == {}
    assert words.calls == []
