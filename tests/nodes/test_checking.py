"""The check of a draft: what comes out was checked as it stands, within the budgets, whatever the LLM says."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.runtime import Runtime

from leadline.citations import check_answer
from leadline.config import RunContext
from leadline.models.base import ChatDelta, ChatLimits, ChatUsage
from leadline.nodes.checking import check_draft
from leadline.nodes.critic import Judgement

TEXT = "The fee is 20 EUR. Fire is covered. Water damage is not covered. Acme signed it in 2019."
SENTENCES = [
    "The fee is 20 EUR [1].",
    "The fee is 30 EUR [1].",
    "Fire is covered [1].",
    "Water damage is covered [1].",
    "It was signed by Bolt [1].",
    "Acme signed it in 2019.",
    "Nothing is said of hail.",
]
LINES = [
    "1: The fee is 20 EUR [1].",
    "1: DROP",
    "2: Fire is covered [1].",
    "1: Bolt did it [1].",
    "prose",
    "3) NO_ANSWER",
    "",
]


class Replies:
    """An LLM with one reply for the rewriting and one judgement; counts its calls."""

    name = "replies"

    def __init__(self, lines: Sequence[str], judged: Sequence[bool]) -> None:
        self.lines, self.judged, self.calls = lines, judged, 0

    async def limits(self) -> ChatLimits:
        """As much as anybody wants."""
        return ChatLimits()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words as tokens."""
        return [len(text.split()) for text in texts]

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """The lines."""
        self.calls += 1
        yield ChatDelta("\n".join(self.lines))
        yield ChatDelta(finish_reason="stop", usage=ChatUsage(10, 5, 0.01))

    async def structured(self, messages: Any, schema: Any, *, max_tokens: int | None = None) -> Any:
        """A judgement of some sentences, maybe not of all."""
        self.calls += 1
        rows = [{"n": n, "supported": yes, "reason": ""} for n, yes in enumerate(self.judged, start=1)]
        return Judgement.model_validate({"sentences": rows}), ChatUsage(10, 5, 0.01)


class Words:
    """Above zero for every sentence about the fee."""

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """One for the fee."""
        return [1.0 if "fee" in sentence else -1.0 for sentence in sentences]


def state_of(answer: str) -> Any:
    """A run with this draft from one passage."""
    bounds = [(0, 18), (19, 35), (36, 64), (65, 88)]
    metadata = {"chunk_id": "a", "doc_id": "d", "file_name": "f.md", "start_char": 0}
    document = {"content": TEXT, "metadata": metadata, "score": 1.0, "source": "bm25", "rerank_score": 1.0}
    block = {"n": 1, "chunk_id": "a", "sentences": [(a, b, TEXT[a:b]) for a, b in bounds], "document": document}
    return {"question": "What is the fee?", "answer": answer, "evidence": [block], "draft_status": "complete"}


def checked(answer: str, model: Replies, **knobs: Any) -> Any:
    """The draft after its check."""

    async def chat(name: str) -> Any:
        return model

    async def scorer() -> Words:
        return Words()

    runtime = Runtime(context=RunContext(llm="x", **knobs), stream_writer=lambda event: None)
    done = check_draft(state_of(answer), runtime, check=check_answer, chat=chat, sentence_scorer=scorer)
    return asyncio.run(done)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5).map(" ".join),
    st.lists(st.sampled_from(LINES), max_size=4),
    st.lists(st.booleans(), max_size=4),
    st.booleans(),
    st.integers(0, 4),
)
def test_what_comes_out_is_supported_and_paid_for(
    answer: str, lines: list[str], judged: list[bool], critic: bool, calls: int
) -> None:
    """Grounded means that a fresh check of that very text finds nothing wrong; no call goes over the budget."""
    model = Replies(lines, judged)
    done = checked(answer, model, critic=critic, budgets={"llm_calls": calls})
    evidence = state_of(answer)["evidence"]
    fresh = check_answer(done.check.text, evidence, "What is the fee?")
    if done.grounding == "grounded":
        assert fresh.grounding == "grounded"
        assert all(citation["verified"] for citation in done.check.citations)
    if done.grounding == "unverified":
        assert done.degraded == ["critic"]
    assert model.calls <= calls
    assert done.usage.get("llm_calls", 0) == model.calls
    if done.changes:
        assert done.grounding in ("grounded", "unverified")
        assert done.check.text != answer
    elif done.grounding == "grounded":
        assert {claim.text for claim in done.check.claims} == {
            claim.text for claim in check_answer(answer, evidence, "").claims
        }


def test_a_line_without_a_sentence_takes_none_of_the_next() -> None:
    """`1:` with nothing behind it leaves sentence 1 as it is; sentence 2 is rewritten, with all its signs."""
    model = Replies(["1:", '2: "Fire is covered" [1].'], [])
    done = checked("The fee is 30 EUR [1]. Fire is not covered [1]. The fee is 20 EUR [1].", model)
    assert (done.grounding, done.check.text) == ("grounded", '"Fire is covered" [1]. The fee is 20 EUR [1].')


def test_a_critic_never_turns_a_fault_into_support() -> None:
    """What the rules find wrong stays wrong, whatever the critic says of the rest."""
    done = checked("The fee is 30 EUR [1].", Replies(["no"], [True]), critic=True)
    assert done.grounding == "ungrounded"
