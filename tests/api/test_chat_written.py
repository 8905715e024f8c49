"""`POST /chat` with an LLM behind it, over real connections: what is streamed, what breaks, and who stops whom."""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.servers.chat_server import LITELLM_WARNINGS, Reply, says
from tests.servers.proxy import running_proxy

pytestmark = LITELLM_WARNINGS

QUESTION = "What is the bollard pull of the tug Anvil?"
GOOD = "*Anvil* has a bollard pull of 32 tonnes [1]."
WRONG = "*Anvil* has a bollard pull of 900 tonnes [1]."
TERMINAL = {"answered", "abstained", "interrupted", "error"}


def by_prompt(**replies: Reply) -> Callable[[dict[str, Any]], Reply]:
    """Replies by what is asked for: an answer, a rewrite, a sentence again, a standalone question."""

    def reply(request: dict[str, Any]) -> Reply:
        system = request["messages"][0]["content"]
        if "numbered passages" in system:
            return replies["answer"]
        return replies.get("query" if "search quer" in system else "other", says("OTHER"))

    return reply


def events_of(url: str, read_s: float = 30, **body: Any) -> list[dict[str, Any]]:
    """The events of a streamed answer, with the moment each came at; comments as type `heartbeat`."""
    events: list[dict[str, Any]] = []
    timeout = httpx.Timeout(read_s)
    with (
        httpx.Client(base_url=url, timeout=timeout, trust_env=False) as client,
        client.stream("POST", "/chat", json={"question": QUESTION, **body}) as response,
    ):
        assert response.status_code == 200, response.read()
        block: list[str] = []
        for line in response.iter_lines():
            if line:
                block.append(line)
                continue
            events.append({**parsed(block), "at": time.monotonic()})
            block = []
        assert block == []
    return events


def parsed(block: list[str]) -> dict[str, Any]:
    """One frame: three lines in their order, or a comment alone. A comment inside a frame fails here."""
    if block[0].startswith(":"):
        assert len(block) == 1
        return {"type": "heartbeat"}
    named = [line.split(": ", 1) for line in block]
    assert [name for name, _ in named] == ["event", "id", "data"]
    return {**json.loads(named[2][1]), "id": int(named[1][1])}


def text_of(events: list[dict[str, Any]]) -> str:
    """The tokens that were not taken back."""
    shown = ""
    for event in events:
        if event["type"] == "token":
            shown += event["text"]
        elif event["type"] == "retract":
            shown = ""
    return shown


def result_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The one result, which is the last event."""
    assert [event["type"] for event in events].count("final") == 1
    assert events[-1]["type"] == "final"
    result: dict[str, Any] = events[-1]["result"]
    assert result["status"] in TERMINAL
    return result


def test_tokens_are_the_answer_s_alone_and_come_once(written: Any) -> None:
    """An LLM that says REWRITE, COMPRESS, JUDGE and ANSWER by what it is asked for: only its answer is shown."""
    answer = replace(says(f"ANSWER: {GOOD}"), thinking=("COMPRESS ", "JUDGE "))
    written.chat.script(by_prompt(answer=answer, query=says("REWRITE"), other=says("JUDGE")))
    events = events_of(written.url, thread_id="said-once")
    shown = "".join(event["text"] for event in events if event["type"] == "token")
    assert shown.count("ANSWER") == 1
    assert not any(word in shown for word in ("REWRITE", "COMPRESS", "JUDGE"))
    follow = events_of(written.url, question="And of Harrow?", thread_id="said-once")
    assert "JUDGE" not in "".join(event["text"] for event in follow if event["type"] == "token")


def test_tokens_are_sent_as_they_are_written(written: Any) -> None:
    """Twenty tokens, 50 ms apart, are at least fifteen events, and the first comes long before the last is written."""
    words = ("*Anvil* ", "has ", "a ", "bollard ", "pull ", "of ", "32 ", "tonnes ", "[1].", *(" So [1].",) * 11)
    written.chat.script(by_prompt(answer=Reply(words, pause_s=0.05)))
    tokens = [event for event in events_of(written.url) if event["type"] == "token"]
    assert len(tokens) >= 15
    assert tokens[-1]["at"] - tokens[0]["at"] > 0.5


@pytest.mark.parametrize("end", ["silent", "close", "error"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_broken_reply_is_interrupted_and_no_answer(written: Any, end: Any, stream: bool) -> None:
    """Whatever way the LLM's stream breaks: one terminal event, interrupted, the draft taken back, nothing cited or
    kept in the conversation."""
    written.chat.script(Reply(("*Anvil* ", "has ", "a ", "bollard ", "pull "), finish=None, end=end))
    thread = f"broken-{end}-{stream}"
    if stream:
        events = events_of(written.url, thread_id=thread)
        result = result_of(events)
        assert text_of(events) == ""
        assert "token" in {event["type"] for event in events}
    else:
        body = {"question": QUESTION, "stream": False, "thread_id": thread}
        result = httpx.post(f"{written.url}/chat", json=body, timeout=30, trust_env=False).json()
    assert (result["status"], result["answer"], result["citations"]) == ("interrupted", "", [])


def test_a_run_that_fails_has_its_terminal_event_too(written: Any) -> None:
    """An LLM of no provider: the stream ends with one result, an error that says so."""
    result = result_of(events_of(written.url, llm="nobody/is"))
    assert (result["status"], result["error"]["code"]) == ("error", "config")
    assert "nobody" in result["error"]["message"]


def test_a_rejected_draft_is_taken_back(written: Any) -> None:
    """What was streamed and isn't what the passages say is retracted, before the result that has another answer."""
    written.chat.script(by_prompt(answer=says(WRONG), other=says(WRONG)))
    events = events_of(written.url)
    types = [event["type"] for event in events]
    assert types.index("retract") > types.index("token")
    assert "900" not in result_of(events)["answer"]
    assert text_of(events) == ""


@pytest.mark.parametrize(
    ("tokens", "says_so"),
    [
        (("It pulls 32 tonnes ", "[", "1", "]", "."), "It pulls 32 tonnes [1]."),
        (("It pulls 32 tonnes [1]", "[", "7", "]", "."), "It pulls 32 tonnes [1]."),
        (
            (
                "It pulls ",
                "[[wiki]]",
                " 32 tonnes [1]. [",
            ),
            "It pulls [[wiki]] 32 tonnes [1]. [",
        ),
    ],
)
def test_marks_split_over_tokens_are_whole_or_not_there(written: Any, tokens: tuple[str, ...], says_so: str) -> None:
    """A mark comes in one piece however the LLM cuts it; one of no passage never comes; other brackets stay."""
    written.chat.script(by_prompt(answer=Reply(tokens)))
    tokens_sent = [event["text"] for event in events_of(written.url) if event["type"] == "token"]
    assert "".join(tokens_sent) == says_so
    assert not any("[7" in token or token.endswith(("[1", "[1\n")) for token in tokens_sent)


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_line_breaks_and_wide_characters_arrive_whole(written: Any, cut: int) -> None:
    """Characters of several bytes, halves of pairs in tokens of their own, and every kind of line end, in whatever
    pieces the LLM's server sends them."""
    text = "*Anvil* pulls 32 tonnes [1].\n\ndata: Zugkraft, 錨 ⚓ 🚢\u2028“x”\r\nid: 9"
    halves = ("🚢".encode("utf-16-le").decode("utf-16-le", "surrogatepass"),) if cut else ("\ud83d", "\udea2")
    written.chat.script(by_prompt(answer=Reply((text, " ", *halves, " [1]."), cut=cut)))
    shown = "".join(event["text"] for event in events_of(written.url) if event["type"] == "token")
    assert shown == f"{text} 🚢 [1].".replace("\r\n", "\n")


def test_a_long_silence_outlives_a_proxy_s_patience(written: Any) -> None:
    """The LLM is quiet for three times what the proxy allows: comments between the frames keep the connection."""
    written.chat.script(by_prompt(answer=Reply(("*Anvil* pulls 32 tonnes [1].",), pause_s=3)))
    with running_proxy(urlsplit(written.url).port or 0, idle_s=1) as proxy:
        events = events_of(proxy.url)
        assert result_of(events)["status"] == "answered"
        assert proxy.cut == 0
    moments = [event["at"] for event in events]
    assert [event["type"] for event in events].count("heartbeat") >= 5
    assert max(later - earlier for earlier, later in itertools.pairwise(moments)) < 1


def test_a_proxy_s_pause_is_no_farewell(written: Any) -> None:
    """A reader that takes nothing for a while, and then goes on, gets the whole answer: the run went on."""
    written.chat.script(by_prompt(answer=Reply(("*Anvil* ", "pulls ", "32 ", "tonnes ", "[1]."), pause_s=0.2)))
    with running_proxy(urlsplit(written.url).port or 0, pause_s=2.5) as proxy:
        events = events_of(proxy.url)
    assert result_of(events)["status"] == "answered"
    assert not written.chat.left.is_set()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_stops_the_llm(written: Any, stream: bool) -> None:
    """The connection to the LLM is closed soon after the client's is; the conversation is free at once."""
    written.chat.script(by_prompt(answer=Reply(("word ",) * 200, pause_s=0.05)))
    thread = f"left-{stream}"
    body = {"question": QUESTION, "stream": stream, "thread_id": thread}
    async with httpx.AsyncClient(base_url=written.url, timeout=30, trust_env=False) as client:
        if stream:
            async with client.stream("POST", "/chat", json=body) as response:
                async for line in response.aiter_lines():
                    if line == "event: token":
                        break
        else:
            asked = asyncio.create_task(client.post("/chat", json=body))
            await asyncio.to_thread(written.chat.asked.wait, 20)
            asked.cancel()
    assert await asyncio.to_thread(written.chat.left.wait, 5)
    written.chat.script(by_prompt(answer=says(GOOD)))
    async with httpx.AsyncClient(base_url=written.url, timeout=30, trust_env=False) as client:
        for _ in range(20):  # until the run has put its things away
            again = await client.post("/chat", json={**body, "stream": False})
            if again.status_code != 409:
                break
            await asyncio.sleep(0.1)
    assert again.json()["status"] == "answered"


def test_answers_side_by_side_keep_apart(written: Any) -> None:
    """Six clients at once, each with an LLM that says another word: each stream has its own word alone."""

    def answer(request: dict[str, Any]) -> Reply:
        asked = next(m["content"] for m in request["messages"] if m["role"] == "user")
        word = asked.partition("word ")[2].split()[0].strip("?.")
        return Reply((f"{word} ",) * 10, pause_s=0.02)

    written.chat.script(answer)
    shown: dict[str, str] = {}

    def ask(word: str) -> None:
        events = events_of(written.url, question=f"{QUESTION[:-1]}, word {word}?")
        shown[word] = "".join(event["text"] for event in events if event["type"] == "token")

    threads = [threading.Thread(target=ask, args=(f"w{number:02}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shown) == 6
    for word, text in shown.items():
        assert set(text.split()) == {word}


def test_an_llm_is_one_of_those_offered(written: Any) -> None:
    """The server's own and the listed ones may be named; another one, or a file, is 422 and nothing is asked."""
    written.chat.script(by_prompt(answer=says(GOOD)))
    with httpx.Client(base_url=written.url, timeout=30, trust_env=False) as client:
        for llm in (None, "openai/scripted", "openai/other"):
            body = {"question": QUESTION, "stream": False, "llm": llm}
            assert client.post("/chat", json=body).json()["models"]["llm"] == llm or "openai/scripted"
        asked = len(written.chat.requests)
        for llm in ("openai/gpt-4o", "local", "local:/etc/passwd"):
            for stream in (True, False):
                refused = client.post("/chat", json={"question": QUESTION, "llm": llm, "stream": stream})
                assert (refused.status_code, refused.json()["error"]["code"]) == (422, "config")
                assert "openai/other" in refused.json()["error"]["hint"]
    assert len(written.chat.requests) == asked
