"""The whole graph with the real LLM client, against a scripted server: what streams, what leaks, what breaks."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.chat_server import ChatServer, Reply, says

from leadline.config import Settings
from leadline.models.chat import LiteLLMChat

# LiteLLM's own: it reads deprecated fields, and leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUESTION = "When are roses pruned?"
GOOD = "Roses are pruned in early spring [1]."


@pytest.fixture
def deps(over: Any, garden: Any, chat_server: ChatServer) -> Any:
    """Toy legs, and an LLM behind HTTP."""
    settings = Settings(llm_api_base=chat_server.url, llm_timeout_s=5)

    async def open_chat(model: str) -> LiteLLMChat:
        return LiteLLMChat(model, api_base=settings.llm_api_base, timeout_s=settings.llm_timeout_s, retries=0)

    return over(garden, chat=open_chat)


def by_prompt(**replies: Reply) -> Callable[[dict[str, Any]], Reply]:
    """Replies by what is asked for: an answer, a rewrite, a standalone question."""

    def reply(request: dict[str, Any]) -> Reply:
        system = request["messages"][0]["content"]
        if "numbered passages" in system:
            return replies["answer"]
        return replies["rewrite"] if "search queries" in system else replies["standalone"]

    return reply


async def ask_llm(ask: Any, deps: Any, question: str = QUESTION, **knobs: Any) -> Any:
    """One run with the LLM behind HTTP."""
    return await ask(deps, question, llm="openai/scripted", **knobs)


async def test_an_answer_streams_and_is_checked(ask: Any, deps: Any, chat_server: ChatServer) -> None:
    """Word by word into the events, then cited, with the call's tokens counted."""
    chat_server.script(says(GOOD))
    run = await ask_llm(ask, deps)
    assert (run.result["status"], run.result["answer"]) == ("answered", GOOD)
    assert "".join(event["text"] for event in run.of("token")) == GOOD
    assert len(run.of("token")) > 3
    assert run.result["usage"]["prompt_tokens"] == 11
    assert run.result["citations"][0]["file_name"] == "roses.md"


async def test_only_the_answer_is_shown(ask: Any, deps: Any, chat_server: ChatServer) -> None:
    """What the LLM says to the rewriter never becomes a token, also when it is told to say it."""
    chat_server.script(by_prompt(answer=says("ANSWER wrong by 900 [1]."), rewrite=says("REWRITE roses spring")))
    run = await ask_llm(ask, deps)
    shown = "".join(event["text"] for event in run.of("token"))
    assert "ANSWER" in shown
    assert "REWRITE" not in shown
    assert run.result["queries"][1] == "REWRITE roses spring"
    assert run.result["status"] == "abstained"


async def test_the_prompts_are_shown_as_they_are_sent(ask: Any, deps: Any, chat_server: ChatServer) -> None:
    """Prompt events hold the very messages of the requests, only when they are asked for."""
    chat_server.script(says(GOOD))
    run = await ask_llm(ask, deps, show_prompts=True)
    assert [event["messages"] for event in run.of("prompt")] == [r["messages"] for r in chat_server.requests]
    assert (await ask_llm(ask, deps)).of("prompt") == []


@pytest.mark.parametrize("end", ["silent", "close", "error"])
async def test_a_stream_without_its_end_is_interrupted(ask: Any, deps: Any, chat_server: ChatServer, end: Any) -> None:
    """Whatever way it breaks, what came is no answer."""
    chat_server.script(Reply(("Roses ", "are ", "pruned "), finish=None, end=end))
    run = await ask_llm(ask, deps)
    assert (run.result["status"], run.result["answer"], run.result["citations"]) == ("interrupted", "", [])
    assert len(run.of("retract")) == 1


async def test_a_server_that_is_down_is_stood_in_for(ask: Any, deps: Any, chat_server: ChatServer) -> None:
    """The documents still answer, by quotation, and `degraded` names the LLM."""
    chat_server.script(Reply(status=500))
    run = await ask_llm(ask, deps)
    assert run.result["status"] == "answered"
    assert run.result["answer"].startswith("Roses are pruned in early spring.")
    assert run.result["degraded"] == ["llm"]


async def test_an_llm_that_always_says_nothing_ends(ask: Any, deps: Any, chat_server: ChatServer) -> None:
    """Empty replies are bounded by the retries, and end in an abstention."""
    chat_server.script(by_prompt(answer=says(""), rewrite=says("")))
    run = await ask_llm(ask, deps, max_retries=3)
    assert run.result["status"] == "abstained"
    assert len(chat_server.requests) < 12


async def test_no_answer_from_the_llm_is_an_abstention(ask: Any, deps: Any, chat_server: ChatServer) -> None:
    """NO_ANSWER is never shown, and never an answer."""
    chat_server.script(by_prompt(answer=says("NO_ANSWER"), rewrite=says("other words")))
    run = await ask_llm(ask, deps)
    assert run.result["status"] == "abstained"
    assert "NO_ANSWER" not in str(run.events) + str(run.result)
