"""The reasoning node: quoted or written, streamed, and never without evidence."""

from typing import Any

import pytest

from leadline.config import Budgets
from leadline.errors import ChatFailed, ChatInterrupted, ContextTooLong, ModelUnavailable
from leadline.models.base import ChatDelta, ChatLimits, ChatUsage
from leadline.nodes.asking import REPLY_TOKENS
from leadline.nodes.compressor import compressor
from leadline.nodes.reasoning import reasoning

QUESTION = "What is the vault code?"


def opens(model: Any) -> Any:
    """Opens `model`, whatever its name."""

    async def open_chat(name: str) -> Any:
        return model

    return open_chat


def scorer(model: Any) -> Any:
    """Loads `model`, or raises it."""

    async def load() -> Any:
        if isinstance(model, Exception):
            raise model
        return model

    return load


@pytest.fixture
async def state(bench: Any, passage: Any, applied: Any) -> Any:
    """A state with two numbered passages."""
    context = [
        passage("Tomatoes like the sun. Is there a vault code? The vault code is 7719.[5] It was set in May.", "a"),
        passage("The vault code is 7719. Nobody knows why.", "b"),
    ]
    given: Any = {"question": QUESTION, "route": "search", "context": context}
    update = await compressor(given, bench.runtime(), count_tokens=lambda text: len(text.split()))
    return applied(given, update)


def said(bench: Any) -> str:
    """What was streamed, joined."""
    return "".join(event["text"] for event in bench.of("token"))


async def test_quotes_the_sentence_that_answers(bench: Any, state: Any, words: Any, applied: Any) -> None:
    """Word for word, with its number, once; questions, weak sentences and the document's own marks are left out."""
    after = applied(state, await reasoning(state, bench.runtime(), chat=opens(None), sentence_scorer=scorer(words)))
    assert after["answer"] == said(bench) == "The vault code is 7719. [1]"
    assert after["draft_status"] == "complete"
    assert len(words.calls) == 1


async def test_nothing_positive_is_no_answer(bench: Any, state: Any, words: Any, applied: Any) -> None:
    """No sentence above zero: an empty draft, no token."""
    asked = {**state, "question": "What colour does France paint bridges?"}
    after = applied(asked, await reasoning(asked, bench.runtime(), chat=opens(None), sentence_scorer=scorer(words)))
    assert (after["answer"], said(bench)) == ("", "")


@pytest.mark.parametrize("llm", [None, "x"])
async def test_without_evidence_nobody_is_asked(
    bench: Any, words: Any, scripted: Any, applied: Any, llm: str | None
) -> None:
    """An LLM never answers from memory."""
    model = scripted(["Paris."])
    empty: Any = {"question": "Capital of France?", "route": "search", "evidence": []}
    update = await reasoning(empty, bench.runtime(llm=llm), chat=opens(model), sentence_scorer=scorer(words))
    after = applied(empty, update)
    assert (after["answer"], model.seen, words.calls) == ("", [], [])


async def test_an_llm_streams_and_unknown_numbers_never_show(
    bench: Any, state: Any, words: Any, scripted: Any, applied: Any
) -> None:
    """Pieces pass on as they come; a number of no passage is left out; the call is counted."""
    model = scripted(["The code ", "is 7719 [", "1]", "[9]."])
    runtime = bench.runtime(llm="x", show_prompts=True)
    after = applied(state, await reasoning(state, runtime, chat=opens(model), sentence_scorer=scorer(words)))
    assert after["answer"] == said(bench) == "The code is 7719 [1]."
    assert len(bench.of("token")) > 1
    assert after["usage"] == {"llm_calls": 1, "prompt_tokens": 10, "completion_tokens": 5, "cost": 0.01}
    assert bench.of("prompt")[0]["node"] == "reasoning"


async def test_saying_that_there_is_no_answer_is_an_empty_draft(
    bench: Any, state: Any, words: Any, scripted: Any, applied: Any
) -> None:
    """The token that the prompt asks for is a sign for the run, not text for a person."""
    model = scripted(["NO", "_ANS", "WER"])
    update = await reasoning(state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    assert (applied(state, update)["answer"], said(bench)) == ("", "")


async def test_a_broken_stream_is_interrupted(bench: Any, state: Any, words: Any, scripted: Any, applied: Any) -> None:
    """What came is kept as a draft that is no answer."""
    model = scripted(["The code "], error=ChatInterrupted("closed"))
    update = await reasoning(state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    after = applied(state, update)
    assert (after["draft_status"], after["degraded"]) == ("interrupted", ["llm"])


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_reply_cut_short_is_interrupted(
    bench: Any, state: Any, words: Any, scripted: Any, applied: Any, reason: str
) -> None:
    """A reply that its provider cut off is not a whole answer."""
    model = scripted(["The vault code is 7719 [1]. It was"], finish_reason=reason)
    update = await reasoning(state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    assert applied(state, update)["draft_status"] == "interrupted"


async def test_a_failing_llm_is_stood_in_for_by_quotes(
    bench: Any, state: Any, words: Any, scripted: Any, applied: Any
) -> None:
    """The answer is quoted, what was shown before is retracted, and `degraded` says that the LLM failed."""
    model = scripted(["Half"], error=ChatFailed("500"))
    update = await reasoning(state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    after = applied(state, update)
    assert after["answer"] == "The vault code is 7719. [1]"
    assert after["degraded"] == ["llm"]
    assert len(bench.of("retract")) == 1


async def test_a_spent_budget_is_stood_in_for_by_quotes(
    bench: Any, state: Any, words: Any, scripted: Any, applied: Any
) -> None:
    """No call is made that the budget has no room for."""
    model = scripted(["The code"])
    runtime = bench.runtime(llm="x", budgets=Budgets(llm_calls=0))
    after = applied(state, await reasoning(state, runtime, chat=opens(model), sentence_scorer=scorer(words)))
    assert (after["answer"], model.seen) == ("The vault code is 7719. [1]", [])
    assert (after["degraded"], after["limits"]) == (["llm"], ["llm_calls"])


async def test_what_fails_beside_a_spent_budget_is_named_too(bench: Any, state: Any, applied: Any) -> None:
    """No LLM, and nobody to choose quotes."""
    runtime, gone = bench.runtime(llm="x", budgets=Budgets(llm_calls=0)), scorer(ModelUnavailable("gone"))
    after = applied(state, await reasoning(state, runtime, chat=opens(None), sentence_scorer=gone))
    assert (after["draft_status"], after["degraded"]) == ("failed", ["llm", "reranker"])


async def test_without_a_scorer_nothing_is_quoted(bench: Any, state: Any, applied: Any) -> None:
    """No guess which sentence answers."""
    gone = scorer(ModelUnavailable("gone"))
    after = applied(state, await reasoning(state, bench.runtime(), chat=opens(None), sentence_scorer=gone))
    assert (after["answer"], after["draft_status"], after["degraded"]) == ("", "failed", ["reranker"])


async def test_small_talk_is_answered_by_rule(bench: Any, words: Any, applied: Any) -> None:
    """The direct route says the fixed reply."""
    state: Any = {"question": "Hello!", "route": "direct"}
    after = applied(state, await reasoning(state, bench.runtime(), chat=opens(None), sentence_scorer=scorer(words)))
    assert after["answer"] == said(bench) != ""


class Narrow:
    """An LLM that refuses prompts of more than so many characters; `says_so` beforehand, else only when it is asked."""

    name = "narrow"

    def __init__(self, room: int, *, says_so: bool) -> None:
        self.room, self.says_so = room, says_so
        self.seen: list[Any] = []

    async def limits(self) -> ChatLimits:
        """Its window, a reply's share added, or nothing."""
        return ChatLimits(context=self.room + REPLY_TOKENS if self.says_so else None)

    async def count_tokens(self, texts: Any) -> list[int]:
        """A token a character."""
        return [len(text) for text in texts]

    async def stream(self, messages: Any, *, max_tokens: int | None = None) -> Any:
        """Answers from the first passage, or refuses."""
        self.seen.append(messages)
        if sum(len(message["content"]) for message in messages) > self.room:
            raise ContextTooLong("too long")
        yield ChatDelta("The vault code is 7719 [1].")
        yield ChatDelta(finish_reason="stop", usage=ChatUsage(10, 5))


@pytest.fixture
async def long_state(bench: Any, passage: Any, applied: Any) -> Any:
    """A state with three passages of twenty sentences."""
    context = [
        passage("The vault code is 7719. " + " ".join(f"Line {p}-{n} of the log." for n in range(19)), f"c{p}")
        for p in range(3)
    ]
    given: Any = {"question": QUESTION, "route": "search", "context": context}
    update = await compressor(given, bench.runtime(), count_tokens=lambda text: len(text.split()))
    return applied(given, update)


@pytest.mark.parametrize("says_so", [True, False])
async def test_evidence_that_proves_too_long_is_halved(
    bench: Any, long_state: Any, words: Any, applied: Any, says_so: bool
) -> None:
    """The better half is shown instead, every number kept, and what was dropped is counted in the evidence."""
    model = Narrow(2200, says_so=says_so)
    update = await reasoning(long_state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    after = applied(long_state, update)
    assert after["answer"] == "The vault code is 7719 [1]."
    assert "degraded" not in update
    assert [block["n"] for block in after["evidence"]] == [1, 2, 3]
    shown = [len(block["sentences"]) for block in after["evidence"]]
    assert shown[0] > 0
    assert shown[2] == 0
    assert [block["dropped"] for block in after["evidence"]] == [20 - number for number in shown]
    prompt = model.seen[-1][1]["content"]
    assert all(text in prompt for block in after["evidence"] for _, _, text in block["sentences"])


async def test_a_prompt_that_never_fits_is_stood_in_for_by_quotes(
    bench: Any, long_state: Any, words: Any, applied: Any
) -> None:
    """Bounded tries, then the answer is quoted from all of the evidence, and `degraded` names the LLM."""
    model = Narrow(100, says_so=False)
    update = await reasoning(long_state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    after = applied(long_state, update)
    assert after["answer"].startswith("The vault code is 7719.")
    assert after["degraded"] == ["llm"]
    assert len(model.seen) == 4
    assert after["evidence"] == long_state["evidence"]


async def test_thinking_that_was_shown_is_taken_back(bench: Any, state: Any, words: Any, applied: Any) -> None:
    """The draft is what came after it, and its marks are read from there on."""

    class Thinker(Narrow):
        async def stream(self, messages: Any, *, max_tokens: int | None = None) -> Any:
            """Thinks aloud, then answers."""
            for text in ("Code? 9999 [", "2]. "):
                yield ChatDelta(text)
            yield ChatDelta("The code is 7719 [1].", restart=True)
            yield ChatDelta(finish_reason="stop", usage=ChatUsage(10, 5))

    model = Thinker(10_000, says_so=False)
    after = applied(
        state, await reasoning(state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    )
    assert after["answer"] == "The code is 7719 [1]."
    kinds = [event["type"] for event in bench.events]
    assert kinds.index("retract") == kinds.index("token") + kinds[: kinds.index("retract")].count("token")
    assert "".join(e["text"] for e in bench.events[kinds.index("retract") :] if e["type"] == "token") == after["answer"]


@pytest.mark.parametrize("error", [ChatInterrupted, ChatFailed])
async def test_what_a_failed_call_spent_is_counted(
    bench: Any, state: Any, words: Any, scripted: Any, applied: Any, error: Any
) -> None:
    """Tokens and money of a call that broke off count as those of any other."""
    spent = {"llm_calls": 1, "prompt_tokens": 40, "completion_tokens": 3, "cost": 0.02}
    model = scripted(["The code "], error=error("broke", usage=spent))
    after = applied(
        state, await reasoning(state, bench.runtime(llm="x"), chat=opens(model), sentence_scorer=scorer(words))
    )
    assert after["usage"] == spent
