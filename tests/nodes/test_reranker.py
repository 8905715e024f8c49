"""The reranker node: one batched call, a cache over passes, and the fused order when it fails."""

import math
import time
from collections.abc import Sequence
from typing import Any

import pytest

from leadline.calibration import Zero
from leadline.errors import ModelUnavailable, RerankerRefused, StoreError
from leadline.nodes.reranker import ZeroPoints, reranker


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


def zeros(*given: Zero) -> ZeroPoints:
    """Zero points, the next one at each call, the last one from then on; for the collection `c` and the model `given`
    alone."""
    left = list(given)

    async def zero(collection: str, name: str) -> Zero:
        assert (collection, name) == ("c", "given")
        return left.pop(0) if len(left) > 1 else left[0]

    return zero


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
    best = max(state["context"], key=lambda document: document["rerank_score"])
    assert best["metadata"]["chunk_id"] == "c9"


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


async def test_a_zero_point_is_taken_off_every_logit(bench: Any, passage: Any, applied: Any) -> None:
    """Signs are counted from the collection's zero point; the order stays, and an exact zero is scored all the same."""
    model, zero = Given([-1.0, 2.0, 0.5]), zeros(Zero(0.5, "calibrated"))
    runtime = bench.runtime(collection="c")
    update = await reranker(state_of(passage), runtime, load=loaded(model), timeout_s=5, zero_points=zero)
    after = applied(state_of(passage), update)
    assert [document["rerank_score"] for document in after["documents"]] == [1.5, math.ulp(0.0), -1.5]
    assert "degraded" not in update


async def test_what_is_not_scored_stays_so_under_any_zero_point(bench: Any, passage: Any, applied: Any) -> None:
    """A passage without a logit doesn't become irrelevant, nor relevant, by a shift."""
    model, zero = Given([math.nan, -1.0, 2.0]), zeros(Zero(-3.0, "calibrated"))
    runtime = bench.runtime(collection="c")
    after = applied(
        state_of(passage),
        await reranker(state_of(passage), runtime, load=loaded(model), timeout_s=5, zero_points=zero),
    )
    assert [document["rerank_score"] for document in after["documents"]] == [5.0, 2.0, 0.0]


async def test_a_zero_point_that_changes_within_a_run_counts_for_all_passes(
    bench: Any, passage: Any, applied: Any
) -> None:
    """What is remembered are raw logits: a passage scored in an earlier pass is counted from the new zero point too."""
    zero = zeros(Zero(1.0, "calibrated"), Zero(-1.0, "calibrated"))
    state, runtime = state_of(passage, 1), bench.runtime(collection="c")
    state = applied(state, await reranker(state, runtime, load=loaded(Given([0.25])), timeout_s=5, zero_points=zero))
    assert state["context"][0]["rerank_score"] == -0.75
    state = {**state, "documents": [*state["documents"], passage("new", "c9")]}
    state = applied(state, await reranker(state, runtime, load=loaded(Given([0.5])), timeout_s=5, zero_points=zero))
    assert [document["rerank_score"] for document in state["documents"]] == [1.25, 1.5]


async def test_what_was_asked_for_and_is_not_had_is_said_once(bench: Any, passage: Any, applied: Any) -> None:
    """A warning of the zero point makes the run one without calibration; a later pass doesn't say it again."""
    state, zero = state_of(passage), zeros(Zero(0.0, "none", warning="Nothing is known."))
    runtime = bench.runtime(collection="c")
    for _ in range(2):
        update = await reranker(state, runtime, load=loaded(Given([1.0, 2.0, 3.0])), timeout_s=5, zero_points=zero)
        state = applied(state, update)
    assert state["degraded"] == ["calibration"]
    assert [event["reason"] for event in bench.of("degraded")] == ["Nothing is known."]


async def test_a_zero_point_that_cannot_be_read_leaves_the_order_unscored(
    bench: Any, passage: Any, applied: Any
) -> None:
    """No sign is better than one counted from the wrong zero."""

    async def broken(collection: str, name: str) -> Zero:
        raise StoreError("The catalog can't be read.")

    state = state_of(passage)
    update = await reranker(
        state, bench.runtime(), load=loaded(Given([1.0, 2.0, 3.0])), timeout_s=5, zero_points=broken
    )
    after = applied(state, update)
    assert {document["rerank_score"] for document in after["documents"]} == {0.0}
    assert after["degraded"] == ["reranker"]
