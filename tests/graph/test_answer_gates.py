"""Figures of whole answers, and faults that every one of them must show: a gate that nothing trips says nothing."""

import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from leadline.citations import AnswerCheck
from leadline.config import RunContext
from leadline.evaluation.ablation import FULL, VARIANTS, ask_all, compared, without_sign
from leadline.evaluation.answers import Asked, below, figures
from leadline.models.base import ChatDelta, ChatLimits

NOTES = {
    "tomatoes.md": "Tomatoes want six hours of sun. Water them in the morning.",
    "compost.md": "Compost needs air. Turn the heap every second week.",
    "roses.md": "Roses are pruned in early spring. Cut above an outward bud.",
    **{f"other{n}.md": f"Note {n} says that bees like lavender." for n in range(9)},
}
GOLD = {
    "When are roses pruned?": ("roses.md", "early spring"),
    "How many hours of sun do tomatoes want?": ("tomatoes.md", "six hours"),
    "When to turn the compost heap every week?": ("compost.md", "every second week"),
}
NOT_THERE = ["What is the capital of France?", "Who won the chess tournament in Linares?"]
QUESTIONS = [
    *(Asked(q, q, True, (gold,), frozenset({f"doc of {name}"})) for q, (name, gold) in GOLD.items()),
    *(Asked(q, q, False, (), frozenset()) for q in NOT_THERE),
]
LEAST = {"right": 0.9, "cited_rightly": 0.9, "abstained_rightly": 0.9, "failed": 0, "wrong": 0.1, "accuracy": 0.9}


class Constant:
    """An LLM that says one sentence, whatever it is asked."""

    name = "constant"

    async def limits(self) -> ChatLimits:
        """Nobody says."""
        return ChatLimits()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words."""
        return [len(text.split()) for text in texts]

    async def stream(self, messages: Any, *, max_tokens: int | None = None) -> AsyncIterator[ChatDelta]:
        """The sentence."""
        yield ChatDelta("Roses are pruned in early spring [1].")
        yield ChatDelta(finish_reason="stop")


async def measured(deps: Any, **knobs: Any) -> Any:
    """The figures over these dependencies."""
    outcomes = await ask_all(QUESTIONS, deps, RunContext(web="never", top_k=2, **knobs), "", lambda *_: None)
    assert len(outcomes) == len(QUESTIONS)
    return figures(outcomes, seed=1)


class Below:
    """A reranker to which nothing is relevant."""

    name = "below"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Below zero."""
        return [-1.0] * len(passages)

    score_sentences = score


async def below_zero() -> Any:
    """Loads it."""
    return Below()


async def no_index(collection: str) -> Any:
    """Breaks every run."""
    raise RuntimeError("no index")


async def constant(model: str) -> Constant:
    """Opens the LLM of one sentence."""
    return Constant()


def believes(answer: str, evidence: Any, question: str) -> AnswerCheck:
    """A check that any answer passes."""
    return AnswerCheck(text=answer, citations=[], grounding="grounded", problems=[])


def random_leg(toy: Any) -> Any:
    """A leg that finds anything."""

    class RandomLeg(toy):  # type: ignore[misc]
        async def search(self, query: str, *, k: int, where: Any = None) -> Any:
            return random.Random(query).sample(await super().search(query, k=len(NOTES)), k)

    return RandomLeg(NOTES)


def faulty(fault: str, over: Any, toy: Any) -> Any:
    """Dependencies with one seeded fault, and the knobs that go with it."""
    leg = random_leg(toy) if fault == "random retrieval" else toy(NOTES)
    changes: dict[str, Any] = {
        "random retrieval": {},
        "constant answers": {"chat": constant},
        "always abstains": {"reranker": below_zero, "sentence_scorer": below_zero},
        "never abstains": {"chat": constant, "check": believes},
        "broken runs": {"retrievers": no_index},
    }
    deps = over(leg, **changes[fault])
    knobs = {"llm": "x"} if "chat" in changes[fault] else {}
    return (without_sign(deps) if fault == "never abstains" else deps), knobs


async def test_the_graph_passes_its_gates(over: Any, toy: Any) -> None:
    """Every answerable question is answered right and cited rightly, the others are abstained from."""
    found = await measured(over(toy(NOTES)))
    assert below(found, LEAST) == {}
    assert (found["questions"], found["answerable"], found["failed"]) == (5, 3, 0)


@pytest.mark.parametrize(
    ("fault", "tripped"),
    [
        ("random retrieval", {"right", "cited_rightly", "accuracy"}),
        ("constant answers", {"right", "cited_rightly", "accuracy"}),
        ("always abstains", {"right", "cited_rightly", "accuracy"}),
        ("never abstains", {"right", "abstained_rightly", "wrong", "accuracy"}),
        ("broken runs", {"right", "cited_rightly", "abstained_rightly", "failed", "accuracy"}),
    ],
)
async def test_each_fault_trips_its_gates(fault: str, tripped: set[str], over: Any, toy: Any) -> None:
    """A fault that no gate sees would be a gate that can't fail."""
    deps, knobs = faulty(fault, over, toy)
    assert set(below(await measured(deps, **knobs), LEAST)) >= tripped


async def test_a_part_is_switched_off_by_its_variant(over: Any, toy: Any) -> None:
    """Loop off: no retry. Sign off: nothing is irrelevant, the order stays. Web off: its policy is never."""
    by_name = {variant.name: variant for variant in VARIANTS}
    assert by_name["loop off"].knobs == {"max_retries": 0}
    assert by_name["web off"].knobs == {"web": "never"}
    reranker = await by_name["sign off"].change(over(toy(NOTES))).reranker()
    plain = await over(toy(NOTES)).reranker()
    texts = list(NOTES.values())
    signless, scored = reranker.score("bees like", texts), plain.score("bees like", texts)
    assert min(signless) > 0
    assert sorted(texts, key=lambda t: signless[texts.index(t)]) == sorted(texts, key=lambda t: scored[texts.index(t)])


async def test_variants_are_compared_question_by_question(over: Any, toy: Any) -> None:
    """The full graph's gain is over the same questions; against itself it is none."""
    quiet = RunContext(web="never", top_k=2)
    good = await ask_all(QUESTIONS, over(toy(NOTES)), quiet, "", lambda *_: None)
    deps, _ = faulty("always abstains", over, toy)
    bad = await ask_all(QUESTIONS, deps, quiet, "", lambda *_: None)
    found = compared({FULL: good, "bad": bad}, seed=1)
    assert found[FULL]["full_gains"] is None
    gain = found["bad"]["full_gains"]
    assert gain is not None
    assert gain["value"] == pytest.approx(3 / 5)
