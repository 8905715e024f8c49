"""`POST /chat` over a real connection: a stream of events with one end, or the result alone."""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from leadline import Settings, load_settings
from leadline.events import RunEvent

QUESTION = "What does error E-217 mean?"
EVENTS: TypeAdapter[RunEvent] = TypeAdapter(RunEvent)


def frames(client: httpx.Client, body: dict[str, Any]) -> list[dict[str, str]]:
    """The frames of a streamed answer, parsed by hand: field → value. Comments are left out."""
    with client.stream("POST", "/chat", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        text = response.read().decode()
    assert text.endswith("\n\n")
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


def test_a_stream_ends_with_exactly_one_result(client: httpx.Client) -> None:
    """Every frame has event, id and data; ids count up; each event is of a known kind; the last one is `final`."""
    received = frames(client, {"question": QUESTION})
    assert all(set(frame) == {"event", "id", "data"} for frame in received)
    assert [frame["id"] for frame in received] == [str(n) for n in range(len(received))]
    events = [EVENTS.validate_json(frame["data"]) for frame in received]
    assert [event.type for event in events] == [frame["event"] for frame in received]
    assert [event.type for event in events].count("final") == 1
    assert events[-1].type == "final"
    assert events[-1].result["status"] == "answered"
    tokens = "".join(event.text for event in events if event.type == "token")
    assert tokens.strip() == events[-1].result["answer"].strip()


def test_every_started_step_ends_once(client: httpx.Client) -> None:
    """A client can draw progress: start, then one of end, skip or error for each node's turn."""
    steps = [json.loads(f["data"]) for f in frames(client, {"question": QUESTION}) if f["event"] == "step"]
    running: list[str] = []
    for step in steps:
        if step["phase"] == "start":
            running.append(step["node"])
        else:
            running.remove(step["node"])
    assert running == []
    assert {"planner", "hybrid", "reranker", "reasoning", "reflection"} <= {step["node"] for step in steps}


def test_without_a_stream_the_result_is_the_same(client: httpx.Client) -> None:
    """`stream: false` gives the object of the `final` event; only what was spent may differ."""
    streamed = json.loads(frames(client, {"question": QUESTION})[-1]["data"])["result"]
    response = client.post("/chat", json={"question": QUESTION, "stream": False})
    assert response.status_code == 200
    result = response.json()
    assert result.pop("usage").keys() == streamed.pop("usage").keys()
    assert result["record"].pop("result_hash") != streamed["record"].pop("result_hash")  # that of the seconds too
    assert result == streamed


def test_an_abstention_is_a_result(client: httpx.Client) -> None:
    """No answer is status 200 and says so in the object."""
    body = {"question": "Who won the football world cup in 1990?", "web": "never", "stream": False}
    result = client.post("/chat", json=body).json()
    assert result["status"] == "abstained"
    assert result["citations"] == []


def test_a_conversation_is_kept_by_its_thread(client: httpx.Client) -> None:
    """A follow-up on the same thread borrows from the question before; on another thread there is nothing."""
    ask = {"stream": False, "thread_id": "talk-1"}
    client.post("/chat", json={"question": "What is the bollard pull of the tug Anvil?", **ask})
    follow = client.post("/chat", json={"question": "And of Harrow?", **ask}).json()
    other = client.post("/chat", json={"question": "And of Harrow?", "stream": False, "thread_id": "talk-2"}).json()
    assert follow["question"] != other["question"]


def test_a_filter_narrows_the_search(client: httpx.Client) -> None:
    """Only passages that the filter lets through are looked at."""
    body = {"question": QUESTION, "stream": False, "web": "never", "filters": {"file_name": "harbour-history.md"}}
    result = client.post("/chat", json=body).json()
    assert {row["file_name"] for row in result["context"]} <= {"harbour-history.md"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "where", [{"page": {"$gt": 10**30}}, {"$near": 1}, json.loads('{"$not":' * 200 + "{}" + "}" * 200)]
)
def test_a_bad_filter_is_refused_before_the_run(client: httpx.Client, where: Any, stream: bool) -> None:
    """422 that says what is wrong with it, and no result: nobody takes it for an answer."""
    response = client.post("/chat", json={"question": QUESTION, "filters": where, "stream": stream})
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["code"] == "invalid_filter"
    assert "Bad filter" in error["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"query": 42}, "question"),
        ({"question": 42}, "question"),
        ({"question": "x", "strem": False}, "strem"),
        ({"question": "x", "web": "sometimes"}, "web"),
        ({"question": "x", "collection": "../up"}, "collection"),
        ({"question": "x", "thread_id": "../up"}, "thread_id"),
        ({"question": "x", "filters": {"page": "\ud800"}}, "filters"),
        ([], "body"),
    ],
)
def test_a_bad_request_names_what_is_wrong(client: httpx.Client, body: Any, named: str) -> None:
    """422 in the one error shape, with the field."""
    headers = {"content-type": "application/json"}
    response = client.post("/chat", content=json.dumps(body), headers=headers)
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["code"] == "invalid_request"
    assert named in error["message"]
    assert set(error) == {"code", "message", "hint"}


@pytest.mark.parametrize("stream", [True, False])
def test_an_unknown_collection_is_not_there(client: httpx.Client, stream: bool) -> None:
    """404 before anything is streamed, in the words that a token gets for a collection of others; no name is listed."""
    response = client.post("/chat", json={"question": "x?", "collection": "nope", "stream": stream})
    assert response.status_code == 404
    error = response.json()["error"]
    assert error == {
        "code": "collection_unknown",
        "message": "There is no collection nope.",
        "hint": "GET /collections lists those that you may ask.",
    }


UNKNOWN = "What is the capital of France?"
PARIS = ("France", "https://example.org/france", "Paris is the capital of France.")
Serving = Callable[[Settings], AbstractContextManager[str]]


@pytest.fixture
def on_the_web(copied: Path, tmp_path: Path, serving: Serving, search_server: Any) -> Any:
    """Serves the examples with settings for runs, beside a search engine that knows where Paris is."""
    search_server.results = [PARIS]

    def serve(**run: Any) -> AbstractContextManager[str]:
        folder = shutil.copytree(copied, tmp_path / "data", dirs_exist_ok=True)
        return serving(load_settings(data_dir=folder, web_pages=0, run=run))

    return serve


def test_the_web_is_asked_at_the_second_request(on_the_web: Any, search_server: Any) -> None:
    """Without consent nothing leaves: the stream has the query that would have gone out. With `yes` that query goes."""
    with on_the_web() as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        events = [json.loads(frame["data"]) for frame in frames(client, {"question": UNKNOWN})]
        consent = [event for event in events if event["type"] == "consent"]
        assert [(event["query"], event["granted"]) for event in consent] == [(UNKNOWN, False)]
        assert events[-1]["result"]["status"] == "abstained"
        assert search_server.queries == []
        again = frames(client, {"question": UNKNOWN, "web_consent": "yes"})
        result = json.loads(again[-1]["data"])["result"]
        assert search_server.queries == [consent[0]["query"]]
        assert (result["status"], result["web_used"]) == ("answered", True)
        assert result["citations"][0]["url"] == PARIS[1]
        frames(client, {"question": f"{UNKNOWN} Tell me.", "web_consent": "no"})
        assert len(search_server.queries) == 1


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        ({"web_consent": "no"}, {"web_consent": "yes", "web": "always"}),
        ({"web": "never"}, {"web_consent": "yes", "web": "always"}),
        ({"web": "never", "web_consent": "yes"}, {"web": "always"}),
        ({"web": "never", "web_consent": "yes"}, {"web": "auto"}),
        ({"web_consent": "yes"}, {"web_consent": "no", "web": "always"}),
        ({}, {"web": "always"}),
    ],
)
def test_a_client_s_yes_opens_nothing_that_is_shut(
    on_the_web: Any, search_server: Any, run: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Where server or client says no, or nobody says yes, not one byte goes to the search engine."""
    said = {"model": "leadline", "messages": [{"role": "user", "content": UNKNOWN}], "leadline": asked}
    with on_the_web(**run) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        results = [client.post("/chat", json={"question": UNKNOWN, "stream": False, **asked}).json()]
        results.append(client.post("/v1/chat/completions", json=said).json()["leadline"])
    assert [(result["status"], result["web_used"]) for result in results] == [("abstained", False)] * 2
    assert not search_server.recorded
