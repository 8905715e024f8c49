"""A person in a run: what an answer may look like, what waiting costs, and that nothing is done twice."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from leadline.config import RunContext
from leadline.graph.build import build_graph
from leadline.graph.studio_person import Answer, AtStudio, read_answer
from leadline.web import WebResult

SAID: Mapping[str, tuple[Any, Answer | None]] = {
    "true": (True, Answer(True)),
    "false": (False, Answer(False)),
    "yes": (" Yes ", Answer(True)),
    "no": ("no", Answer(False)),
    "approved": ({"approve": True}, Answer(True)),
    "denied": ({"approve": False}, Answer(False)),
    "edited": ({"query": " roses in spring "}, Answer(True, "roses in spring")),
    "edited and approved": ({"approve": True, "query": "roses"}, Answer(True, "roses")),
    "denied with a query": ({"approve": False, "query": "roses"}, Answer(False, "roses")),
    "denied with an empty one": ({"approve": False, "query": ""}, Answer(False)),
    "nothing": (None, None),
    "an empty object": ({}, None),
    "an empty query": ({"query": "  "}, None),
    "a query of no text": ({"query": 7}, None),
    "a long text": ({"query": "rose " * 400}, None),
    "something else": ({"ok": True}, None),
    "a yes as text": ({"approve": "yes"}, None),
    "one": (1, None),
    "words": ("yes, but only after lunch", None),
    "a list": ([True], None),
}


@pytest.mark.parametrize("name", SAID)
def test_only_what_is_clear_is_an_answer(name: str) -> None:
    """What can't be understood is neither yes nor no: it is asked again."""
    said, answer = SAID[name]
    assert read_answer(said) == answer


class Engine:
    """A search engine that knows one page, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """One hit, whatever is asked."""
        self.asked.append(query)
        text = "Nasturtiums are sown outdoors in April."
        return [WebResult("Nasturtiums", "https://example.org/n", text, "2026-01-01T00:00:00+00:00")][:k]


class Conversation:
    """Runs of one thread with memory, as a server has it."""

    def __init__(self, deps: Any, **knobs: Any) -> None:
        self.graph = build_graph(deps).compile(checkpointer=InMemorySaver())
        self.context = RunContext(ask_person=True, **knobs)
        self.config: RunnableConfig = {"configurable": {"thread_id": "t"}, "recursion_limit": 60}
        self.events: list[dict[str, Any]] = []

    async def run(self, given: Any) -> dict[str, Any]:
        """The values when the run ends or waits."""
        values: dict[str, Any] = {}
        modes: Any = ["custom", "values"]
        parts: Any = self.graph.astream(given, self.config, context=self.context, stream_mode=modes)
        async for mode, part in parts:
            if mode == "custom":
                self.events.append(part)
            else:
                values = part
        return values

    async def ask(self, question: str) -> dict[str, Any]:
        """A new question."""
        return await self.run({"messages": [HumanMessage(question)]})

    async def answer(self, said: Any) -> dict[str, Any]:
        """The answer to what the run asks."""
        return await self.run(Command(resume=said))

    def steps(self, node: str) -> list[str]:
        """The phases of a node, in order."""
        return [event["phase"] for event in self.events if event["type"] == "step" and event["node"] == node]


@pytest.fixture
def engine() -> Engine:
    """The web."""
    return Engine()


@pytest.fixture
def deps(over: Any, garden: Any, engine: Engine) -> Any:
    """Dependencies with a person and a web."""
    return over(garden, person=AtStudio(), search=engine)


SOWN = "When are nasturtiums sown outdoors?"


async def test_each_step_ends_once_and_the_web_is_asked_once(deps: Any, engine: Engine, garden: Any) -> None:
    """A node that waits has begun and been skipped; beside it, what was searched is not searched again."""
    talk = Conversation(deps, web="always", max_retries=0)
    await talk.ask(SOWN)
    assert (talk.steps("web"), engine.asked, len(garden.asked)) == (["start", "skip"], [], 1)
    await talk.answer("what?")
    assert engine.asked == []
    values = await talk.answer(True)
    assert (talk.steps("web"), engine.asked, len(garden.asked)) == (["start", "skip"] * 2 + ["start", "end"], [SOWN], 1)
    assert values["result"]["status"] == "answered"
    assert values["result"]["usage"]["web_calls"] == 1


async def test_waiting_spends_no_budget(deps: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may answer a day later: the run's seconds are those that it worked."""
    talk = Conversation(deps, budgets={"seconds": 30})
    await talk.ask(SOWN)
    a_day_later = time.time() + 86_400
    monkeypatch.setattr(time, "time", lambda: a_day_later)
    values = await talk.answer({"query": "nasturtiums sown outdoors"})
    assert engine.asked == ["nasturtiums sown outdoors"]
    assert (values["result"]["status"], values["result"]["limits"]) == ("answered", [])
    assert 0 < values["result"]["usage"]["seconds"] < 30


async def test_work_spends_it(deps: Any, engine: Engine) -> None:
    """What the nodes took before the wait is counted: where that was all, the consent comes too late."""
    talk = Conversation(deps, budgets={"seconds": 30})
    await talk.ask(SOWN)
    await talk.graph.aupdate_state(talk.config, {"worked": 31.0}, as_node="reflection")
    await talk.run(None)
    values = await talk.answer(True)
    assert (values["result"]["limits"], engine.asked) == (["seconds"], [])


async def test_a_later_run_begins_anew(deps: Any) -> None:
    """Neither the time nor the draft of a run counts in the next one of the thread."""
    talk = Conversation(deps, web="never", max_retries=0)
    await talk.ask("When are roses pruned?")
    await talk.graph.aupdate_state(talk.config, {"worked": 1000.0})
    values = await talk.ask("When are roses pruned?")
    assert values["result"]["status"] == "answered"
    assert values["worked"] < 100
    first, second = (message.id for message in values["messages"] if message.type == "ai")
    assert first != second


async def test_a_declined_retry_leaves_what_there_is(deps: Any, garden: Any) -> None:
    """No search is made, none is recorded, and the web may still be asked."""
    talk = Conversation(deps, web="never")
    await talk.ask(SOWN)
    values = await talk.answer(False)
    assert len(garden.asked) == 1
    result = values["result"]
    assert (result["status"], result["queries"]) == ("abstained", [SOWN])
    assert result["record"]["judged_by"] == [SOWN]


async def test_an_approved_retry_is_the_retry_of_any_run(deps: Any, over: Any, garden: Any, ask: Any) -> None:
    """Saying yes each time gives the result of a run in which nobody is asked."""
    talk = Conversation(deps, web="never")
    values = await talk.ask(SOWN)
    while "result" not in values:
        values = await talk.answer({"approve": True})
    alone = (await ask(over(garden), SOWN, web="never")).result
    assert [search["query"] for search in values["result"]["record"]["passes"]] == [
        search["query"] for search in alone["record"]["passes"]
    ]
    assert values["result"]["answer"] == alone["answer"]


async def test_tokens_are_messages_in_process_too(deps: Any) -> None:
    """LangGraph's `messages` mode of the compiled graph has the quotation, from the reasoning node, once."""
    graph = build_graph(deps).compile()
    asked: Any = {"messages": [HumanMessage("When are roses pruned?")]}
    told: list[Any] = [part async for part in graph.astream(asked, context=RunContext(), stream_mode="messages")]
    pieces = [message for message, _ in told]
    assert all(isinstance(message, AIMessageChunk) for message in pieces)
    assert {metadata["langgraph_node"] for _, metadata in told} == {"reasoning"}
    assert "".join(message.content for message in pieces) == "Roses are pruned in early spring. [1]"


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_tokens_are_events_of_a_block_in_the_newer_protocol(deps: Any) -> None:
    """One message with one block of text, from its start to its finish, and not once more when the run ends."""
    graph = build_graph(deps).compile()
    asked: Any = {"messages": [HumanMessage("When are roses pruned?")]}
    run = await graph.astream_events(asked, context=RunContext(), version="v3")
    told = [event["params"]["data"][0] async for event in run if event["method"] == "messages"]
    assert [event["event"] for event in told] == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]
    assert told[2]["delta"]["text"] == told[3]["content"]["text"] == "Roses are pruned in early spring. [1]"
