"""The LiteLLM chat model against a scripted server: streams, ends, errors, retries and structured replies."""

import os
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.servers.chat_server import Reply, says

from leadline.errors import ChatFailed, ChatInterrupted, ConfigError
from leadline.models import chat
from leadline.models.base import ChatUsage
from leadline.models.chat import LiteLLMChat
from leadline.models.replies import parse_reply

pytestmark = [
    # LiteLLM's own logging and its cached clients, not ours to close.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ASK = [{"role": "user", "content": "What is the fee?"}]


class Verdict(BaseModel):
    """A structured reply."""

    grounded: bool
    reasons: list[str]


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without waiting."""
    monkeypatch.setattr(chat, "FIRST_BACKOFF_S", 0.01)


def local(server: Any, **options: Any) -> LiteLLMChat:
    """The model under test, at the scripted server."""
    return LiteLLMChat("openai/local", api_base=server.url, **{"timeout_s": 10, "retries": 2, **options})


async def collect(model: LiteLLMChat) -> tuple[list[str], str | None, ChatUsage]:
    """Texts, finish reason and usage of a whole stream."""
    deltas = [delta async for delta in model.stream(ASK)]
    return [d.text for d in deltas if d.text], deltas[-1].finish_reason, deltas[-1].usage


async def test_a_reply_streams_token_by_token(chat_server: Any) -> None:
    """Each token is a piece of its own; the last piece has the finish reason and the usage."""
    chat_server.script(says("The fee is ten [1].", pause_s=0.02))
    assert await collect(local(chat_server)) == (["The", " fee", " is", " ten", " [1]."], "stop", ChatUsage(11, 7, 0.0))
    assert chat_server.requests[0]["messages"] == ASK


async def test_a_key_is_not_needed_for_a_local_server_and_the_environment_stays(chat_server: Any) -> None:
    """With an address and no key the call goes through; only the price-list switch is set in the environment."""
    chat_server.script(says("yes"))
    before = {k: v for k, v in os.environ.items() if k != "LITELLM_LOCAL_MODEL_COST_MAP"}
    await collect(local(chat_server))
    after = {k: v for k, v in os.environ.items() if k != "LITELLM_LOCAL_MODEL_COST_MAP"}
    assert before.items() <= after.items()
    assert "OPENAI_API_KEY" not in after


@pytest.mark.parametrize("end", ["silent", "close", "error"])
async def test_a_broken_stream_is_interrupted(chat_server: Any, end: Any) -> None:
    """Ending without a finish reason, a cut connection and an error object are no answers, and are not tried again."""
    chat_server.script(Reply(("The", " fee", " is", " te", "n"), end=end))
    stream = local(chat_server).stream(ASK)
    seen = [await anext(stream)]

    async def rest() -> None:
        seen.extend([delta async for delta in stream])

    with pytest.raises(ChatInterrupted):
        await rest()
    assert "".join(d.text for d in seen).startswith("The")
    assert all(d.finish_reason is None for d in seen)
    assert len(chat_server.requests) == 1


async def test_a_stream_that_falls_silent_is_interrupted(chat_server: Any) -> None:
    """Nothing for longer than the time-out between two tokens breaks the reply off."""
    chat_server.script(Reply(("The",), end="hang"))
    begun = time.monotonic()
    with pytest.raises(ChatInterrupted, match="sent nothing for 1 s"):
        await collect(local(chat_server, timeout_s=1))
    assert time.monotonic() - begun < 4


async def test_a_server_that_never_begins_fails_in_time(chat_server: Any) -> None:
    """No first token within the time-out is a failure that another try may mend."""
    chat_server.script(Reply((), end="hang"))
    with pytest.raises((ChatFailed, ChatInterrupted)) as failure:
        await collect(local(chat_server, timeout_s=0.5, retries=0))
    assert getattr(failure.value, "retryable", True)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_passing_failures_are_tried_again(chat_server: Any, status: int) -> None:
    """Rate limits and server errors before the first token are retried, a bounded number of times."""
    chat_server.script(Reply(status=status), Reply(status=status), says("ten"))
    assert (await collect(local(chat_server)))[0] == ["ten"]
    assert len(chat_server.requests) == 3


async def test_retries_are_bounded(chat_server: Any) -> None:
    """A server that keeps failing ends the call, with a failure that says it may pass."""
    chat_server.script(Reply(status=503))
    with pytest.raises(ChatFailed) as failure:
        await collect(local(chat_server, retries=1))
    assert failure.value.retryable
    assert len(chat_server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_lasting_failures_are_not_tried_again(chat_server: Any, status: int) -> None:
    """A bad request, key or model name fails at once."""
    chat_server.script(Reply(status=status))
    with pytest.raises(ChatFailed) as failure:
        await collect(local(chat_server))
    assert not failure.value.retryable
    assert len(chat_server.requests) == 1


async def test_an_unknown_provider_is_explained() -> None:
    """A model string without a provider fails before anything is sent, and says how to write it."""
    with pytest.raises(ConfigError, match="provider/model"):
        await collect(LiteLLMChat("nonsense-model"))


async def test_a_missing_key_names_its_variable() -> None:
    """Without a key the message says which variable to set; nothing leaves the machine."""
    with pytest.raises(ChatFailed, match="OPENAI_API_KEY") as failure:
        await collect(LiteLLMChat("openai/gpt-4o-mini", retries=0))
    assert not failure.value.retryable


async def test_a_structured_reply_in_any_wrapping(chat_server: Any) -> None:
    """Thinking, prose and fences around the object don't matter; tokens are counted."""
    text = '<think>{"grounded": false}</think>Sure!\n```json\n{"grounded": true, "reasons": ["a {b}"]}\n``` Done {x}.'
    chat_server.script(says(text))
    assert await local(chat_server).structured(ASK, Verdict) == (
        Verdict(grounded=True, reasons=["a {b}"]),
        ChatUsage(11, 7),
    )
    assert "grounded" in chat_server.requests[0]["messages"][-1]["content"]


async def test_a_bad_structured_reply_is_repaired_once(chat_server: Any) -> None:
    """ "false" is no truth value: the model is told so once, then its second reply counts."""
    chat_server.script(says('{"grounded": "false", "reasons": []}'), says('{"grounded": false, "reasons": []}'))
    verdict, usage = await local(chat_server).structured(ASK, Verdict)
    assert verdict == Verdict(grounded=False, reasons=[])
    assert usage == ChatUsage(22, 14, calls=2)
    assert "grounded" in chat_server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("text", ["", "{}", "It is grounded.", '{"grounded": true', '{"grounded": 1, "reasons": []}'])
async def test_a_reply_that_stays_bad_fails(chat_server: Any, text: str) -> None:
    """Empty, incomplete or prose replies never pass for a verdict."""
    chat_server.script(says(text))
    with pytest.raises(ChatFailed, match="no valid Verdict"):
        await local(chat_server).structured(ASK, Verdict)
    assert len(chat_server.requests) == 2


@given(st.text(alphabet='{}[]":,truefalsegoundd \n`<>think/', max_size=80))
def test_parsing_never_raises(text: str) -> None:
    """Whatever a model writes gives an object or a sentence about what is wrong."""
    assert isinstance(parse_reply(text, Verdict), Verdict | str)
