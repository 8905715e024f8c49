"""The LiteLLM chat model against a scripted server: streams, ends, errors, retries and structured replies."""

import json
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.servers.chat_server import Reply, says

from leadline.errors import ChatFailed, ChatInterrupted, ConfigError, ContextTooLong
from leadline.models import chat, providers
from leadline.models.base import ChatLimits, ChatUsage
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


async def test_a_key_that_the_server_repeats_is_not_shown(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message goes to whoever asked: the key's variable stands in its place."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-4711")
    chat_server.script(Reply(status=401, message="Incorrect API key provided: sk-secret-4711"))
    with pytest.raises(ChatFailed, match=r"\[OPENAI_API_KEY\]") as failure:
        await collect(local(chat_server))
    assert "4711" not in str(failure.value)


async def test_a_server_on_this_machine_is_reached_without_a_proxy(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment's proxy would be given every prompt; here it would refuse."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
    chat_server.script(says("ten"), says('{"grounded": true, "reasons": []}'))
    model = local(chat_server, retries=0)
    assert (await collect(model))[0] == ["ten"]
    assert (await model.structured(ASK, Verdict))[0].grounded


@pytest.mark.parametrize("provider", ["ollama", "ollama_chat"])
async def test_a_model_of_ollama_is_not_looked_up_elsewhere(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """LiteLLM would ask at Ollama's usual address, whatever server is named, and hold everything up meanwhile."""
    asked, connect = set(), socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", lambda sock, address: (asked.add(address[1]), connect(sock, address)))
    model = LiteLLMChat(f"{provider}/my-model", api_base=chat_server.url, retries=0)
    with pytest.raises(ChatFailed):  # the scripted server speaks another protocol
        await model.structured(ASK, Verdict)
    assert asked == {urlsplit(chat_server.url).port}


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
    """Empty, incomplete or prose replies never pass for a verdict; what they cost is told with the failure."""
    chat_server.script(says(text))
    with pytest.raises(ChatFailed, match="no valid Verdict") as failure:
        await local(chat_server).structured(ASK, Verdict)
    assert len(chat_server.requests) == 2
    assert failure.value.usage == {"llm_calls": 2, "prompt_tokens": 22, "completion_tokens": 14, "cost": 0.0}


YES, NO = '{"grounded": true, "reasons": []}', '{"grounded": false, "reasons": ["no"]}'


@pytest.mark.parametrize("text", [f"Example: {YES} My verdict: {NO}", f"{NO}\n{YES}", f"```json\n{YES}\n```\n{NO}"])
async def test_objects_that_differ_are_no_verdict(chat_server: Any, text: str) -> None:
    """Nobody knows which is meant: a repair is asked for; a reply that says both again fails."""
    chat_server.script(says(text), says(NO))
    assert (await local(chat_server).structured(ASK, Verdict))[0] == Verdict(grounded=False, reasons=["no"])
    chat_server.script(says(text))
    with pytest.raises(ChatFailed, match="they differ"):
        await local(chat_server).structured(ASK, Verdict)
    chat_server.script(says(f"{NO} Again: {NO}"))
    assert (await local(chat_server).structured(ASK, Verdict))[0] == Verdict(grounded=False, reasons=["no"])


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_verdict_that_was_cut_off_is_none(chat_server: Any, reason: str) -> None:
    """What comes before the cut may be taken back behind it."""
    chat_server.script(says(YES, finish=reason), says(NO))
    assert not (await local(chat_server).structured(ASK, Verdict))[0].grounded
    chat_server.script(says(YES, finish=reason))
    with pytest.raises(ChatFailed, match=reason):
        await local(chat_server).structured(ASK, Verdict)


@pytest.mark.parametrize("text", ["<think>is it?", "<think>hm</think>", "thinking {x}</think>no"])
async def test_thinking_alone_is_no_verdict(chat_server: Any, text: str) -> None:
    """Nothing but thinking, whatever of it is marked, is repaired once; then the verdict counts."""
    chat_server.script(says(text), says('{"grounded": false, "reasons": []}'))
    assert (await local(chat_server).structured(ASK, Verdict))[0] == Verdict(grounded=False, reasons=[])


async def test_a_server_that_refuses_a_schema_is_asked_without(chat_server: Any) -> None:
    """A model that takes schemas gets one; if its server doesn't, the same is asked in words, now and later."""
    refusal = Reply(status=400, message="Unknown parameter: 'response_format'")
    chat_server.script(refusal, says('{"grounded": true, "reasons": []}'))
    model = LiteLLMChat("openai/gpt-4o-mini", api_base=chat_server.url, timeout_s=10)
    assert (await model.structured(ASK, Verdict))[0].grounded
    assert (await model.structured(ASK, Verdict))[0].grounded
    assert ["response_format" in request for request in chat_server.requests] == [True, False, False]
    assert "grounded" in chat_server.requests[1]["messages"][-1]["content"]


async def test_a_refused_wish_is_left_out(chat_server: Any) -> None:
    """A server that knows no usage in streams, or no temperature, is asked without: no retry is spent on it."""
    refusals = [Reply(status=400, message=f"unsupported: {name}") for name in ("stream_options", "temperature")]
    chat_server.script(*refusals, says("ten", usage=None))
    texts, finish, usage = await collect(local(chat_server, retries=0))
    assert (texts, finish) == (["ten"], "stop")
    assert "temperature" not in chat_server.requests[-1]
    assert usage.prompt_tokens > 3  # counted here, since nobody says
    assert usage.completion_tokens == 1


async def test_a_length_by_its_new_name(chat_server: Any) -> None:
    """Models that think take the bound by another name only: it is given by that one, at once and later."""
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    chat_server.script(Reply(status=400, message=told), says("ten"))
    model = local(chat_server, retries=0)
    for _ in range(2):
        assert [delta.text async for delta in model.stream(ASK, max_tokens=9) if delta.text] == ["ten"]
    assert [request.get("max_completion_tokens") for request in chat_server.requests] == [None, 9, 9]
    assert "max_tokens" not in chat_server.requests[-1]


def test_nesting_without_end_is_no_object() -> None:
    """Deeper than anybody parses, whether it is ever closed or not; an object behind it counts all the same."""
    verdict = Verdict(grounded=True, reasons=[])
    for nested in ('{"a":' * 1100, '{"a":' * 950 + "1" + "}" * 950):
        assert isinstance(parse_reply(nested, Verdict), str)
        assert parse_reply(f"{nested} {YES}", Verdict) == verdict


@pytest.mark.parametrize("piece", ["{", '{"a" ', '{"a":1,', '{"a":{},'])
def test_a_reply_of_braces_is_read_in_time(piece: str) -> None:
    """Eight times as many take about eight times as long, whatever they begin; by the square it were 64 times."""
    taken = []
    for count in (5_000, 40_000):
        start = time.process_time()
        assert isinstance(parse_reply(piece * count, Verdict), str)
        taken.append(time.process_time() - start)
    assert taken[1] < 20 * taken[0]


def test_what_no_text_may_have_is_taken_out_of_escapes_too() -> None:
    """An object's strings can hold what the reply's own text doesn't: NUL, an escape of the terminal, half a pair."""
    found = parse_reply(r'{"grounded": true, "reasons": ["a\u0000b\u001b[0m", "\ud800", "\ud83d\ude00"]}', Verdict)
    assert isinstance(found, Verdict)
    assert found.reasons == ["a b [0m", "\ufffd", "\U0001f600"]


@given(st.text(alphabet='{}[]":,truefalsegoundd \n`<>think/', max_size=80))
def test_parsing_never_raises(text: str) -> None:
    """Whatever a model writes gives an object or a sentence about what is wrong."""
    assert isinstance(parse_reply(text, Verdict), Verdict | str)


@pytest.mark.parametrize(
    "text",
    [
        "<think>The fee? Ten.</think>The fee is ten [1].",
        "<THINKING>\nThe fee\n</THINKING>\nThe fee is ten [1].",
        "[THINK]hm[/THINK]The fee is ten [1].",
        "The fee is <think>nine? no:</think>ten [1].",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_thinking_is_never_shown(chat_server: Any, text: str, size: int) -> None:
    """However its marks are split over tokens."""
    chat_server.script(Reply(tuple(text[at : at + size] for at in range(0, len(text), size))))
    assert "".join((await collect(local(chat_server)))[0]).strip() == "The fee is ten [1]."


@pytest.mark.parametrize(
    "tokens",
    [
        (
            "\ud83d",
            "\ude00 ten \x00\ud800",
        ),
        ("\ud83d\ude00 ten ", "\x00", "\ud800"),
    ],
)
async def test_a_reply_is_text_that_can_be_kept(chat_server: Any, tokens: tuple[str, ...]) -> None:
    """Pairs that come in halves are put together; halves alone and control characters are replaced."""
    chat_server.script(Reply(tokens, usage=None))
    texts, _, usage = await collect(local(chat_server))
    assert "".join(texts) == "\U0001f600 ten  \ufffd"
    assert usage.completion_tokens > 0
    chat_server.script(says('{"grounded": true, "reasons": ["\ud800\x00"]}'))
    verdict, _ = await local(chat_server).structured(ASK, Verdict)
    assert verdict.reasons == ["\ufffd "]


@pytest.mark.parametrize("text", ["<think>hm</think>\n\n Ten [1].", "hm</think> Ten [1].", "\n Ten [1]."])
async def test_no_blank_stands_before_a_reply(chat_server: Any, text: str) -> None:
    """As models leave one behind their thinking; those within it stay."""
    chat_server.script(Reply(tuple(text)))
    shown = ""
    async for delta in local(chat_server).stream(ASK):
        shown = delta.text if delta.restart else shown + delta.text
    assert shown == "Ten [1]."


async def test_thinking_beside_the_reply_is_not_shown_and_keeps_it_alive(chat_server: Any) -> None:
    """A provider's own channel for thinking is no text; while it comes, the model isn't silent."""
    chat_server.script(Reply(("Ten [1].",), thinking=("The fee? ",) * 6, pause_s=0.0))
    assert (await collect(local(chat_server)))[0] == ["Ten [1]."]


async def test_a_reply_that_broke_off_in_thinking_is_counted_and_not_tried_again(chat_server: Any) -> None:
    """Thinking is paid for: another try would pay for it again."""
    chat_server.script(Reply(thinking=("The fee? ",) * 6, end="close"))
    with pytest.raises(ChatInterrupted) as failure:
        await collect(local(chat_server))
    assert len(chat_server.requests) == 1
    usage = failure.value.usage
    assert usage is not None
    assert usage["completion_tokens"] >= 18


async def test_endless_thinking_is_stopped(chat_server: Any) -> None:
    """It counts as part of the reply."""
    chat_server.script(Reply(("Ten.",), thinking=("The fee? ",) * 100))
    with pytest.raises(ChatInterrupted, match="length"):
        [delta async for delta in local(chat_server).stream(ASK, max_tokens=10)]


async def test_thinking_without_a_beginning_is_taken_back_once_and_then_held(chat_server: Any) -> None:
    """A model that marks only the end of its thinking surprises once: the piece after says that all before is void."""
    text = "The fee, let me see.</think>Ten [1]."
    chat_server.script(Reply(tuple(text)))
    model = local(chat_server)
    shown = ""
    async for delta in model.stream(ASK):
        shown = delta.text if delta.restart else shown + delta.text
    assert shown == "Ten [1]."
    pieces = [delta async for delta in model.stream(ASK)]
    assert "".join(delta.text for delta in pieces) == "Ten [1]."
    assert not any(delta.restart for delta in pieces)
    chat_server.script(says("A plain answer [1]."))
    assert "".join((await collect(model))[0]) == "A plain answer [1]."


async def test_a_broken_reply_says_what_it_cost(chat_server: Any) -> None:
    """What came before the break is counted here, by the model's tokenizer, and priced."""
    chat_server.script(Reply(("The fee", " is", " ten"), end="close"))
    model = LiteLLMChat("openai/gpt-4o-mini", api_base=chat_server.url, timeout_s=10)
    with pytest.raises(ChatInterrupted) as failure:
        await collect(model)
    usage = failure.value.usage
    assert usage is not None
    assert (usage["llm_calls"], usage["completion_tokens"]) == (1, 4)
    assert usage["prompt_tokens"] >= 5
    assert 0 < usage["cost"] < 0.001


async def test_the_price_is_that_of_the_response(chat_server: Any) -> None:
    """Tokens by LiteLLM's prices: 11 in and 7 out of a model it lists."""
    chat_server.script(says("ten"))
    model = LiteLLMChat("openai/gpt-4o-mini", api_base=chat_server.url, timeout_s=10)
    assert (await collect(model))[2].cost == pytest.approx(11 * 0.15e-6 + 7 * 0.6e-6)


@pytest.mark.parametrize("cost", [-3.0, float("inf"), float("nan")])
def test_a_price_that_cannot_be_is_not_taken(cost: float) -> None:
    """LiteLLM's prices stand in for it."""
    told = providers.spent(
        providers.library(), "openai/none", SimpleNamespace(prompt_tokens=1, completion_tokens=2, cost=cost)
    )
    assert told == ChatUsage(1, 2, 0.0)


@pytest.mark.parametrize("usage", [(-5000, 7), (11, -7), (-1, -1)])
async def test_tokens_below_zero_are_counted_here(chat_server: Any, usage: tuple[int, int]) -> None:
    """No server gives budget back: what can't be is as if nothing was said."""
    chat_server.script(says("Ten euros [1].", usage=usage))
    _, _, spent = await collect(local(chat_server))
    assert spent.prompt_tokens > 3
    assert spent.completion_tokens > 1
    assert spent.cost == 0
    chat_server.script(says(YES, usage=usage))
    _, spent = await local(chat_server).structured(ASK, Verdict)
    assert spent.prompt_tokens > 3
    assert spent.completion_tokens > 1


async def test_a_rate_limit_says_how_long_to_wait(chat_server: Any) -> None:
    """The provider's own pause is kept; one that is longer than anybody waits ends the call at once."""
    chat_server.script(Reply(status=429, headers=(("Retry-After", "0.3"),)), says("ten"))
    begun = time.monotonic()
    assert (await collect(local(chat_server)))[0] == ["ten"]
    assert time.monotonic() - begun >= 0.3
    chat_server.script(Reply(status=429, headers=(("Retry-After", "3600"),)))
    asked = len(chat_server.requests)
    with pytest.raises(ChatFailed) as failure:
        await collect(local(chat_server))
    assert failure.value.retryable
    assert len(chat_server.requests) == asked + 1


async def test_a_spent_quota_is_not_tried_again(chat_server: Any) -> None:
    """It looks like a rate limit and doesn't pass."""
    chat_server.script(Reply(status=429, message="insufficient_quota: check your plan and billing details"))
    with pytest.raises(ChatFailed, match="quota"):
        await collect(local(chat_server))
    assert len(chat_server.requests) == 1


async def test_a_silent_server_is_tried_twice_at_most(chat_server: Any) -> None:
    """Each try costs the whole time-out."""
    chat_server.script(Reply((), end="hang", hang_s=3))
    with pytest.raises((ChatFailed, ChatInterrupted)):
        await collect(local(chat_server, timeout_s=0.4, retries=5))
    assert len(chat_server.requests) == 2


async def test_a_prompt_that_is_too_long_is_told_apart(chat_server: Any) -> None:
    """Not a failure of the model: with less evidence it may work."""
    chat_server.script(Reply(status=400, message="This model's maximum context length is 8192 tokens"))
    with pytest.raises(ContextTooLong):
        await collect(local(chat_server))
    assert len(chat_server.requests) == 1


async def test_a_prompt_that_is_too_long_beside_its_reply_is_told_apart(chat_server: Any) -> None:
    """vLLM names both spellings of the reply's bound then: no reason to ask again by the other one."""
    told = "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length is 8 tokens"
    chat_server.script(Reply(status=400, message=told))
    with pytest.raises(ContextTooLong):
        [delta async for delta in local(chat_server).stream(ASK, max_tokens=9)]
    assert len(chat_server.requests) == 1


async def test_a_reply_keeps_to_its_length(chat_server: Any) -> None:
    """The bound is sent, and a server that ignores it is stopped."""
    chat_server.script(Reply(tuple("word " for _ in range(100))))
    with pytest.raises(ChatInterrupted, match="length"):
        [delta async for delta in local(chat_server).stream(ASK, max_tokens=10)]
    assert chat_server.requests[0]["max_tokens"] == 10


async def test_a_reply_may_come_character_by_character(chat_server: Any) -> None:
    """Pieces are not tokens."""
    text = "The fee is ten guilders a day [1]."
    chat_server.script(Reply(tuple(text)))
    assert "".join([delta.text async for delta in local(chat_server).stream(ASK, max_tokens=12)]) == text


async def test_the_window_is_what_the_server_says(chat_server: Any) -> None:
    """A server that tells its window is believed, and asked once; one that doesn't leaves it open."""
    assert await local(chat_server).limits() == ChatLimits()
    chat_server.window = 5000
    model = local(chat_server)
    assert [(await model.limits()).context for _ in range(2)] == [5000, 5000]


async def test_a_server_that_is_still_loading_is_asked_again(chat_server: Any) -> None:
    """It says neither window nor tokens then, as llama.cpp's does; both are learned once it is ready."""
    chat_server.window, chat_server.counts, chat_server.loading = 5000, True, True
    model = local(chat_server)
    assert (await model.limits()).context is None
    assert await model.count_tokens(["internationalisation"]) != [1]
    chat_server.loading = False
    assert (await model.limits()).context == 5000
    assert await model.count_tokens(["internationalisation"]) == [1]


async def test_the_window_of_a_listed_model_needs_no_server() -> None:
    """Known models are in LiteLLM's list; a server that cuts prompts silently is told a window, and that is kept to."""
    assert (await LiteLLMChat("openai/gpt-4o-mini").limits()).context == 128_000
    assert (await LiteLLMChat("ollama/qwen2.5").limits()).context == 8192


async def test_tokens_are_counted_by_the_server_or_offline(chat_server: Any) -> None:
    """The server's own tokenizer where it has one, else one that is in the package; nothing is fetched for it."""
    chat_server.counts = True
    assert await local(chat_server).count_tokens(["one two three", "", "x"]) == [3, 0, 1]
    for name in ("openai/gpt-4o", "groq/llama-3.3-70b", "deepseek/deepseek-chat", "cohere/command-r"):
        counted = await LiteLLMChat(name).count_tokens(["The fee is ten.", ""])
        assert 4 <= counted[0] <= 7
        assert counted[1] == 0


HOSTS = """
import asyncio, json, socket, sys
seen = []
connect, look_up = socket.socket.connect, socket.getaddrinfo
def connecting(sock, address):
    seen.append(str(address[0]))
    return connect(sock, address)
def looking(host, *rest, **options):
    seen.append(str(host))
    return look_up(host, *rest, **options)
socket.socket.connect, socket.getaddrinfo = connecting, looking
import leadline.cli, leadline.graph.run, leadline.graph.studio
from leadline.models.chat import open_chat
from leadline.config import Settings
assert "litellm" not in sys.modules and "xllamacpp" not in sys.modules
assert seen == [], seen
async def main():
    model = open_chat("openai/local", Settings(llm_api_base=sys.argv[1]))
    await model.limits()
    await model.count_tokens(["a b"])
    return [delta.text async for delta in model.stream([{"role": "user", "content": "q"}])]
assert "".join(asyncio.run(main())) == "The fee."
print(json.dumps(sorted(set(seen))))
"""


def test_import_start_and_a_call_reach_for_no_network(chat_server: Any) -> None:
    """Importing connects nowhere and loads no LLM library; a call reaches the server that is named and nothing else."""
    chat_server.script(says("The fee."))
    command = [sys.executable, "-c", HOSTS, chat_server.url]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["127.0.0.1"]
