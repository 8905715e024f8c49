"""The whole graph over toy legs: its ways, its loops, and what it tells on them."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import TypeAdapter

from leadline.config import Budgets
from leadline.errors import ChatInterrupted, ModelUnavailable, StoreError
from leadline.events import RunEvent
from leadline.state import Result
from leadline.web import WebResult

QUESTION = "When are roses pruned?"
ANSWER = "Roses are pruned in early spring."
PARIS = WebResult(
    title="France", url="https://example.org", snippet="Paris is the capital of France.", retrieved_at="2026-01-01"
)


@dataclass
class Engine:
    """A web with one page."""

    asked: list[str] = field(default_factory=list)

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        self.asked.append(query)
        return [PARIS]


async def test_a_toy_stores_chunk_is_in_the_answer(ask: Any, over: Any, garden: Any) -> None:
    """A leg that nothing in the product knows of is searched, fused, ranked, quoted and cited."""
    run = await ask(over(garden), QUESTION)
    assert run.result["status"] == "answered"
    assert run.result["answer"].startswith(ANSWER)
    [citation] = run.result["citations"]
    assert (citation["chunk_id"], citation["file_name"]) == ("chunk of roses.md", "roses.md")
    assert list(run.result["context"][0]["found_by"]) == ["toy"]
    TypeAdapter(Result).validate_python(run.result)


async def test_every_node_starts_once_and_ends_once(ask: Any, over: Any, garden: Any) -> None:
    """Events are of the one model, each start has exactly one end, and tokens come from reasoning alone."""
    run = await ask(over(garden), QUESTION)
    events = [TypeAdapter(RunEvent).validate_python(event) for event in run.events]
    assert [event.model_dump(mode="json") for event in events] == run.events
    assert run.ended == ["planner", "hybrid", "aggregator", "reranker", "compressor", "reasoning", "reflection"]
    assert [event["node"] for event in run.of("step") if event["phase"] == "start"] == run.ended
    order = [event.get("node") or event["type"] for event in run.events]
    assert order.index("token") > order.index("reasoning")
    assert "".join(event["text"] for event in run.of("token")) == run.result["answer"]


async def test_what_the_documents_do_not_hold_is_abstained(ask: Any, over: Any, garden: Any) -> None:
    """Garden notes say nothing of France: two changed searches, then the nearest files, and no token at all."""
    run = await ask(over(garden), "What is the capital of France?")
    assert run.result["status"] == "abstained"
    assert run.result["citations"] == []
    assert run.of("token") == []
    assert len(run.of("retry")) == 2
    assert len(set(garden.asked)) == 3
    assert any(name in run.result["answer"] for name in garden.texts)


async def test_an_llm_is_not_asked_about_irrelevant_passages(ask: Any, over: Any, garden: Any, scripted: Any) -> None:
    """General knowledge is no source: what an LLM says of nothing is not taken."""
    chat = scripted(["Paris is the capital."])
    run = await ask(over(garden, llm=chat), "What is the capital of France?", llm="x")
    assert run.result["status"] == "abstained"
    assert "Paris" not in run.result["answer"]


@pytest.mark.parametrize("pieces", [[], ["Roses are pruned in autumn by 700 gardeners [1]."]], ids=["empty", "wrong"])
async def test_an_llm_that_never_gets_it_right_ends(
    ask: Any, over: Any, garden: Any, scripted: Any, pieces: list[str]
) -> None:
    """An empty or unsupported answer loops only as far as the retries go, and never ends as answered."""
    chat = scripted(pieces)
    run = await ask(over(garden, llm=chat), QUESTION, llm="x", max_retries=8)
    assert run.result["status"] == "abstained"
    assert run.state["retry_count"] <= 8
    tried = [tuple(map(str, search.values())) for search in run.state["passes"]]
    assert len(tried) == len(set(tried))
    assert bool(run.of("retract")) == bool(pieces)


async def test_one_leg_failing_is_shown_and_survived(ask: Any, over: Any, garden: Any, toy: Any) -> None:
    """The other leg answers; the result says which is missing."""
    run = await ask(over(garden, toy({}, name="broken", error=StoreError("disk"))), QUESTION)
    assert run.result["status"] == "answered"
    assert run.result["degraded"] == ["broken"]


async def test_all_legs_failing_is_an_error(ask: Any, over: Any, toy: Any) -> None:
    """Not an abstention, and nothing about it in the answer."""
    legs = [toy({}, name=name, error=StoreError("disk")) for name in ("a", "b")]
    run = await ask(over(*legs), QUESTION)
    assert (run.result["status"], run.result["answer"]) == ("error", "")
    assert run.result["error"]["code"] == "store"


async def test_an_empty_store_is_abstained(ask: Any, over: Any, toy: Any) -> None:
    """Nothing found is no failure."""
    run = await ask(over(toy({})), QUESTION)
    assert (run.result["status"], run.result["verdict"]["evidence"]) == ("abstained", "nothing")


async def test_a_missing_reranker_degrades(ask: Any, over: Any, garden: Any) -> None:
    """The fused order stands, and a grounded answer carries the flag."""

    async def gone() -> Any:
        raise ModelUnavailable("no such model")

    run = await ask(over(garden, reranker=gone), QUESTION)
    assert run.result["status"] == "answered"
    assert run.result["flags"] == ["unranked"]
    assert run.result["degraded"] == ["reranker"]
    assert {row["rerank_score"] for row in run.result["context"]} == {0.0}


async def test_the_web_is_asked_with_consent_when_documents_hold_nothing(ask: Any, over: Any, garden: Any) -> None:
    """Reflection escalates, and the answer cites a page by its address."""
    engine = Engine()
    run = await ask(over(garden, search=engine), "What is the capital of France?", web_consent="yes")
    assert engine.asked == ["What is the capital of France?"]
    assert run.result["status"] == "answered"
    assert run.result["citations"][0]["url"] == "https://example.org"
    assert run.result["web_used"]
    assert run.of("retry") == []
    assert len(run.of("escalate")) == 1


async def test_without_anybody_to_ask_the_web_stays_closed(ask: Any, over: Any, garden: Any) -> None:
    """Consent `ask` with nobody there is no: no escalation, no request."""
    engine = Engine()
    run = await ask(over(garden, search=engine), "What is the capital of France?")
    assert engine.asked == []
    assert run.result["status"] == "abstained"
    assert run.of("escalate") == []


async def test_a_person_who_says_no_ends_the_escalation(ask: Any, over: Any, garden: Any) -> None:
    """The run goes on with its retries, then abstains; the person is asked once."""
    engine, asked = Engine(), []

    async def no(query: str) -> bool:
        asked.append(query)
        return False

    run = await ask(over(garden, search=engine, ask_consent=no), "What is the capital of France?")
    assert (engine.asked, asked) == ([], ["What is the capital of France?"])
    assert run.result["status"] == "abstained"
    assert len(run.of("retry")) == 2


async def test_always_searches_the_web_beside_the_documents(ask: Any, over: Any, garden: Any) -> None:
    """Both are searched in the first pass and joined once."""
    engine = Engine()
    run = await ask(over(garden, search=engine), QUESTION, web="always", web_consent="yes")
    assert engine.asked == [QUESTION]
    assert run.ended.count("aggregator") == 1
    assert {leg for row in run.result["context"] for leg in row["found_by"]} == {"toy", "web"}


async def test_no_budget_for_the_web_closes_it(ask: Any, over: Any, garden: Any) -> None:
    """A spent budget takes only what needs it: retries stay."""
    engine = Engine()
    knobs = {"web_consent": "yes", "budgets": Budgets(web_calls=0)}
    run = await ask(over(garden, search=engine), "What is the capital of France?", **knobs)
    assert engine.asked == []
    assert len(run.of("retry")) == 2


async def test_a_broken_stream_is_interrupted(ask: Any, over: Any, garden: Any, scripted: Any) -> None:
    """Not an answer, not cited, not in the conversation."""
    chat = scripted(["Roses are "], error=ChatInterrupted("closed"))
    run = await ask(over(garden, llm=chat), QUESTION, llm="x")
    assert (run.result["status"], run.result["answer"], run.result["citations"]) == ("interrupted", "", [])
    assert [message.type for message in run.state["messages"]] == ["human"]


@pytest.mark.parametrize("reply", [None, {}, "This is grounded: true"], ids=["raises", "empty object", "prose"])
async def test_a_check_that_fails_is_never_grounded(ask: Any, over: Any, garden: Any, reply: Any) -> None:
    """A check that raises or gives nothing usable leaves the answer unverified, and says so."""

    def check(*_: Any) -> Any:
        if reply is None:
            raise RuntimeError("down")
        return reply

    run = await ask(over(garden, check=check), QUESTION)
    assert run.result["verdict"]["grounding"] == "unverified"
    assert run.result["flags"] == ["unverified"]
    assert "critic" in run.result["degraded"]


async def test_tokens_come_one_by_one(over: Any, garden: Any, ask: Any, scripted: Any) -> None:
    """Twenty pieces of an LLM are twenty moments of the stream, not one lump."""
    words = ["Roses ", "are ", "pruned ", "in ", "early ", "spring "]

    class Slow(scripted):  # type: ignore[misc]  # the class comes from a fixture
        async def stream(self, messages: Any, **options: Any) -> Any:
            async for delta in super().stream(messages, **options):
                await asyncio.sleep(0.01)
                yield delta

    run = await ask(over(garden, llm=Slow([*words, "[1]."])), QUESTION, llm="x")
    assert len(run.of("token")) >= len(words)
    assert run.result["status"] == "answered"


async def test_small_talk_skips_the_search(ask: Any, over: Any, garden: Any) -> None:
    """A greeting is answered by two nodes after the planner."""
    run = await ask(over(garden), "Hello!")
    assert run.ended == ["planner", "reasoning", "reflection"]
    assert (run.result["status"], garden.asked) == ("answered", [])


async def test_no_passage_stays_in_the_final_state(ask: Any, over: Any, garden: Any) -> None:
    """Working keys are cleared at the end."""
    run = await ask(over(garden), QUESTION)
    assert not any(run.state[key] for key in ("candidates", "documents", "context", "evidence", "scores"))
    assert "outward bud" not in str(run.state)
