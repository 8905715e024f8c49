"""A question whose answer takes two passages, of which the second shares no word with it."""

from collections.abc import Sequence
from typing import Any

import pytest

QUESTION = "Where was the director of Alpha Station born?"
NOTES = {
    "film.md": "Alpha Station is a film. The director of Alpha Station is Dana Fox, they say.",
    "fox.md": "Dana Fox came into the world in Oslo.",
    **{f"noise{n}.md": f"The station number {n} is where the director of trains works." for n in range(12)},
}


class JointScorer:
    """Scores by names: a passage that has only others' is below zero, until it is read with its bridge."""

    name = "joint"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Above zero for what names Alpha Station."""
        return [1.0 if "Alpha Station" in text else -3.0 if "Dana Fox" in text else -1.0 for text in passages]

    score_sentences = score


@pytest.fixture
def deps(over: Any, toy: Any) -> Any:
    """One leg over the notes, narrow enough that the second passage is not found by the question."""

    async def load() -> JointScorer:
        return JointScorer()

    return over(toy(NOTES), reranker=load, sentence_scorer=load)


async def test_what_the_best_passage_names_is_looked_up_before_anything_is_written(ask: Any, deps: Any) -> None:
    """The second pass brings the passage about the name; both are given to the writer, in that order."""
    run = await ask(deps, QUESTION, web="never", top_k=3)
    assert run.result["queries"] == [QUESTION, "Dana Fox"]
    kept = [row["file_name"] for row in run.result["context"] if row["kept"]]
    assert kept[:2] == ["film.md", "fox.md"]
    assert run.ended.count("reasoning") == 1
    assert "Dana Fox" in run.of("retry")[0]["reason"]
    assert next(row for row in run.result["context"] if row["file_name"] == "fox.md")["rerank_score"] < 0


async def test_without_retries_there_is_one_pass(ask: Any, deps: Any) -> None:
    """A hop is a retry: a run that may make none has none."""
    run = await ask(deps, QUESTION, web="never", top_k=3, max_retries=0)
    assert run.result["queries"] == [QUESTION]
    assert run.of("retry") == []


async def test_a_hop_never_makes_evidence_relevant(ask: Any, over: Any, toy: Any) -> None:
    """The joint logit orders only: a run whose passages are all below zero by themselves abstains."""

    class Below(JointScorer):
        def score(self, question: str, passages: Sequence[str]) -> list[float]:
            return [2.0 if "\n" in text and "Dana" in text else -1.0 for text in passages]

        score_sentences = score

    async def load() -> Below:
        return Below()

    notes = {**NOTES, "film.md": NOTES["film.md"]}
    run = await ask(over(toy(notes), reranker=load, sentence_scorer=load), QUESTION, web="never", top_k=3)
    assert run.result["status"] == "abstained"
    assert all(row["rerank_score"] <= 0 for row in run.result["context"])
