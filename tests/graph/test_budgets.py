"""Budgets of a run: whatever LLMs, parts and budgets do, none is exceeded, the run ends, and says what stopped it."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.config import Budgets
from leadline.errors import ChatFailed, ChatInterrupted, ModelError, StoreError, WebUnavailable
from leadline.graph.run import recursion_limit
from leadline.models.base import ChatDelta, ChatLimits, ChatUsage
from leadline.web import WebResult

QUESTIONS = ["When are roses pruned?", "Who was Dana Fox's father?", "And tomatoes or roses?", "Hello!"]
REPLIES = [
    "",
    "NO_ANSWER",
    "Roses are pruned in early spring [1].",
    "Roses need 700 gardeners [1].",
    "<think>no</think>",
    "[1] [2] [9]",
    "word " * 300,
]
PROMPT_MARKS = 8  # tokens of a message's role, as the product counts them


class Chaos:
    """An LLM that does what comes next: a reply, an error, a broken stream; each word is a token and has a price."""

    name = "chaos"

    def __init__(self, script: Sequence[str], *, pause_s: float = 0.0) -> None:
        self.script, self.pause_s, self.calls = list(script), pause_s, 0

    async def limits(self) -> ChatLimits:
        """It has prices."""
        return ChatLimits(context=4000, reply=400, prompt_price=0.0001, reply_price=0.0002)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words."""
        return [len(text.split()) for text in texts]

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """The next of the script, over and over."""
        prompt = sum(await self.count_tokens([m["content"] for m in messages])) + PROMPT_MARKS * len(messages)
        turn = self.script[self.calls % len(self.script)]
        self.calls += 1
        if turn == "error":
            raise ChatFailed("scripted")
        words = turn.split(" ")
        said = words if max_tokens is None else words[:max_tokens]
        for word in said:
            await asyncio.sleep(self.pause_s)
            yield ChatDelta(f"{word} ")
        spent = ChatUsage(prompt, len(said), 0.0001 * prompt + 0.0002 * len(said))
        if turn == "broken":
            usage = {"llm_calls": 1, "prompt_tokens": prompt, "completion_tokens": len(said), "cost": spent.cost}
            raise ChatInterrupted("scripted", usage=usage)  # type: ignore[arg-type]
        yield ChatDelta(finish_reason="stop" if len(said) == len(words) else "length", usage=spent)

    async def structured(self, messages: Any, schema: Any, *, max_tokens: int | None = None) -> Any:
        """Never an object."""
        self.calls += 1
        raise ChatFailed("no object", usage={"llm_calls": 2})


class Web:
    """A web that finds something, or fails; it counts what is sent."""

    def __init__(self, *, fails: bool) -> None:
        self.fails, self.sent = fails, 0

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """One result."""
        self.sent += 1
        if self.fails:
            raise WebUnavailable("scripted")
        return [
            WebResult(
                url="http://example.org/r",
                title="Roses",
                snippet="Roses are pruned in March.",
                retrieved_at="2026-01-01T00:00:00+00:00",
            )
        ]


def opens(model: Any) -> Any:
    """Opens this LLM."""

    async def open_chat(name: str) -> Any:
        return model

    return open_chat


class Always:
    """A reranker with one logit for everything; 0.0 stands for one that breaks."""

    name = "always"

    def __init__(self, logit: float) -> None:
        self.logit = logit

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """The logit."""
        if self.logit == 0.0:
            raise ModelError("scripted")
        return [self.logit] * len(passages)

    score_sentences = score


budgets = st.builds(
    Budgets,
    seconds=st.sampled_from([0.000001, 60.0]),
    llm_calls=st.integers(0, 5),
    tokens=st.sampled_from([0, 100, 400, 1000, 60_000]),
    money=st.sampled_from([0.0, 0.02, 0.05, 1.0]),
    web_calls=st.integers(0, 2),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(st.sampled_from([*REPLIES, "error", "broken"]), min_size=1, max_size=6),
    allowed=budgets,
    logit=st.sampled_from([-1.0, 0.0, 1.0]),
    leg_fails=st.booleans(),
    web_fails=st.booleans(),
    question=st.sampled_from(QUESTIONS),
    knobs=st.fixed_dictionaries(
        {
            "max_retries": st.integers(0, 4),
            "web": st.sampled_from(["never", "auto", "always"]),
            "web_consent": st.sampled_from(["yes", "no", "ask"]),
            "llm": st.sampled_from([None, "x"]),
        }
    ),
)
def test_no_budget_is_exceeded_and_every_run_ends(
    script: Any,
    allowed: Any,
    logit: float,
    leg_fails: bool,
    web_fails: bool,
    question: str,
    knobs: Any,
    ask: Any,
    over: Any,
    toy: Any,
    garden: Any,
) -> None:
    """Over LLMs that say anything, legs, rerankers and webs that fail, and budgets of every size."""
    legs = [garden, toy({}, "other", StoreError("scripted"))] if leg_fails else [garden]
    chat, web = Chaos(script), Web(fails=web_fails)

    async def load() -> Always:
        return Always(logit)

    deps = over(*legs, chat=opens(chat), search=web, reranker=load, sentence_scorer=load)
    run = asyncio.run(ask(deps, question, budgets=allowed, **knobs))
    spent, result = run.result["usage"], run.result
    assert spent.get("llm_calls", 0) <= allowed.llm_calls
    assert chat.calls <= spent.get("llm_calls", 0)
    assert spent.get("prompt_tokens", 0) + spent.get("completion_tokens", 0) <= allowed.tokens
    assert spent.get("cost", 0.0) <= allowed.money + 1e-9
    assert web.sent <= spent.get("web_calls", 0) <= allowed.web_calls
    assert result["status"] in ("answered", "abstained", "interrupted", "error")
    assert bool(result["answer"]) is (result["status"] in ("answered", "abstained"))
    assert set(result["limits"]) <= set(Budgets.model_fields)
    searches = run.state["passes"]
    assert all(search not in searches[:place] for place, search in enumerate(searches))


@pytest.mark.parametrize("reply", ["", "NO_ANSWER", "Roses need 700 gardeners [1].", "error"])
@pytest.mark.parametrize("grounding", ["ungrounded", "raises"])
async def test_what_never_succeeds_ends(reply: str, grounding: str, ask: Any, over: Any, garden: Any) -> None:
    """An LLM that says nothing or nonsense, a judge that always says no or breaks: within the steps of the retries."""

    def no(answer: str, evidence: Any, question: str) -> Any:
        if grounding == "raises":
            raise KeyError("grounded")
        from leadline.citations import AnswerCheck

        return AnswerCheck(text=answer, citations=[], grounding="ungrounded", problems=[])

    run = await ask(over(garden, chat=opens(Chaos([reply])), check=no), QUESTIONS[0], llm="x", max_retries=5)
    assert run.result["status"] in ("abstained", "answered")
    assert run.result["verdict"]["grounding"] != "grounded"
    assert run.state["retry_count"] <= 5
    from leadline.config import RunContext

    assert len(run.ended) < recursion_limit(RunContext(max_retries=5))


async def test_the_limit_that_ended_a_run_is_named(ask: Any, over: Any, garden: Any) -> None:
    """In `limits`, and in the reason for people; a run that no budget touched names none."""
    chat = Chaos(["Roses need 700 gardeners [1]."])
    run = await ask(over(garden, chat=opens(chat)), QUESTIONS[0], llm="x", budgets=Budgets(llm_calls=0))
    assert run.result["limits"] == ["llm_calls"]
    assert "budget of llm calls is spent" in run.result["verdict"]["reason"]
    assert run.result["status"] == "answered"  # by quotation
    assert "llm" in run.result["degraded"]
    tokens = await ask(over(garden, chat=opens(chat)), QUESTIONS[0], llm="x", budgets=Budgets(tokens=50))
    assert tokens.result["limits"] == ["tokens"]
    nothing = await ask(over(garden), "Who won in Linares?", web="auto", web_consent="yes")
    assert nothing.result["limits"] == []
    closed = over(garden, search=Web(fails=False))
    web = await ask(closed, "Who won in Linares?", web_consent="yes", budgets=Budgets(web_calls=0))
    assert web.result["limits"] == ["web_calls"]
    assert "budget of web calls is spent" in web.result["verdict"]["reason"]


async def test_an_llm_that_fails_is_no_budget(ask: Any, over: Any, garden: Any) -> None:
    """Its last call was made and failed: nothing was kept from the run, so no limit is named."""
    run = await ask(over(garden, chat=opens(Chaos(["error"]))), QUESTIONS[0], llm="x", budgets=Budgets(llm_calls=1))
    assert (run.result["status"], run.result["degraded"]) == ("answered", ["llm"])
    assert run.result["limits"] == []


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_call_that_could_not_be_made_names_its_limit(calls: int, ask: Any, over: Any, garden: Any) -> None:
    """A bad draft that nobody may rewrite, or a search that nobody may word, for lack of calls: it is said."""
    chat = Chaos(["Roses need 700 gardeners [1]."])
    run = await ask(over(garden, chat=opens(chat)), QUESTIONS[0], llm="x", budgets=Budgets(llm_calls=calls))
    assert run.result["status"] == "abstained"
    assert run.result["limits"] == ["llm_calls"]
    assert "budget of llm calls is spent" in run.result["verdict"]["reason"]
    good = Chaos(["Roses are pruned in early spring [1]."])
    plain = await ask(over(garden, chat=opens(good)), QUESTIONS[0], llm="x", budgets=Budgets(llm_calls=calls))
    assert (plain.result["status"], plain.result["limits"]) == ("answered", [])


@pytest.mark.parametrize("question", [QUESTIONS[0], "Who won in Linares?"])
async def test_a_web_search_that_could_not_be_made_names_its_limit(
    question: str, ask: Any, over: Any, garden: Any
) -> None:
    """Asked for always, and not made since no call was left: it is said, also beside an answer."""
    deps = over(garden, search=Web(fails=False))
    run = await ask(deps, question, web="always", web_consent="yes", budgets=Budgets(web_calls=0))
    assert run.result["limits"] == ["web_calls"]
    assert "budget of web calls is spent" in run.result["verdict"]["reason"]


async def test_a_slow_llm_is_left_when_the_time_is_up(ask: Any, over: Any, garden: Any) -> None:
    """What it had written is taken back, and the passages are quoted."""
    chat = Chaos(["Roses are pruned in early spring and then again " * 50], pause_s=0.1)
    begun = time.perf_counter()
    run = await ask(over(garden, chat=opens(chat)), QUESTIONS[0], llm="x", budgets=Budgets(seconds=3))
    assert time.perf_counter() - begun < 30  # 45 s of talking, on a machine that may be busy
    assert run.result["status"] == "answered"
    assert run.result["answer"].startswith("Roses are pruned in early spring.")
    assert run.result["limits"] == ["seconds"]
    assert len(run.of("retract")) == 1


async def test_what_the_first_pass_found_stands_when_the_second_has_no_time(ask: Any, over: Any, toy: Any) -> None:
    """A search that hangs in a later pass is left: the answer is written from what there is."""

    class Hangs(toy):  # type: ignore[misc]
        async def search(self, query: str, *, k: int, where: Any = None) -> Any:
            if query != "Where is Alpha Station found?":
                await asyncio.sleep(60)
            return await super().search(query, k=k, where=where)

    leg = Hangs({"a.md": "The Alpha Station is where Dana Fox works.", "b.md": "Dana Fox sings."})
    begun = time.perf_counter()
    run = await ask(over(leg), "Where is Alpha Station found?", web="never", budgets=Budgets(seconds=3))
    assert time.perf_counter() - begun < 30
    assert run.result["status"] in ("answered", "abstained")
    assert run.result["limits"] == ["seconds"]
    assert [row["file_name"] for row in run.result["context"]][:1] == ["a.md"]


async def test_no_time_at_all_is_an_abstention(ask: Any, over: Any, garden: Any) -> None:
    """Not a failure of the legs: nothing was searched."""
    run = await ask(over(garden), QUESTIONS[0], budgets=Budgets(seconds=0.000001))
    assert (run.result["status"], run.result["limits"]) == ("abstained", ["seconds"])
