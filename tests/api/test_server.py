"""The server around the chat: errors in one shape, who may call, busy conversations, clients that go away."""

import asyncio
import json
import shutil
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from leadline import App, Settings, load_settings
from leadline.events import FinalEvent

Serving = Callable[[Settings], AbstractContextManager[str]]


def shape(response: httpx.Response) -> str:
    """The code of an error in the one shape."""
    error = response.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    return str(error["code"])


def test_errors_of_the_framework_have_the_one_shape(client: httpx.Client) -> None:
    """404, 405 and broken JSON look like every other error."""
    assert shape(client.get("/nothing")) == "not_found"
    wrong_method = client.get("/chat")
    assert (wrong_method.status_code, shape(wrong_method)) == (405, "method_not_allowed")
    broken = client.post("/chat", content=b"{not json", headers={"content-type": "application/json"})
    assert (broken.status_code, shape(broken)) == (422, "invalid_request")


def test_health_and_readiness(client: httpx.Client) -> None:
    """Alive and ready are two things; both are good here."""
    assert client.get("/health").json() == {"status": "ok"}
    ready = client.get("/ready")
    assert ready.status_code == 200
    assert ready.json()["status"] == "ready"


def test_readiness_says_why_not(tmp_path: Path, serving: Serving) -> None:
    """A server whose model can't be loaded lives, isn't ready, and names the reason."""
    settings = load_settings(data_dir=tmp_path / "data", embedding_model=str(tmp_path / "no-model"))
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        assert client.get("/health").status_code == 200
        ready = client.get("/ready")
        assert ready.status_code == 503
        assert "no-model" in ready.json()["error"]["message"]


@pytest.mark.parametrize(
    ("harm", "changed", "code", "says"),
    [
        ("bm25", {}, "indexes_differ", "the bm25 index holds 0 chunks"),
        (None, {"vector_backend": "faiss"}, "manifest_mismatch", "LEADLINE_VECTOR_BACKEND"),
    ],
)
def test_readiness_tells_of_indexes_that_differ(
    harm: str | None,
    changed: dict[str, str],
    code: str,
    says: str,
    copied: Path,
    tmp_path: Path,
    serving: Serving,
) -> None:
    """An index that lost its chunks, or settings of another backend: the server isn't ready, and says what differs."""
    shutil.copytree(copied, tmp_path / "data")
    if harm:
        shutil.rmtree(tmp_path / "data" / "indexes" / "default" / harm)
    settings = load_settings(data_dir=tmp_path / "data", **changed)
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        ready = client.get("/ready")
        assert (ready.status_code, shape(ready)) == (503, code)
        assert says in ready.json()["error"]["message"]


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"host": "127.0.0.1.evil.example"}]
)
def test_other_peoples_pages_may_not_call(client: httpx.Client, headers: dict[str, str]) -> None:
    """A request under a foreign name, or from a foreign page, is refused before anything is done."""
    response = client.post("/chat", json={"question": "x", "stream": False}, headers=headers)
    assert (response.status_code, shape(response)) == (403, "forbidden_host")


def test_a_form_of_a_foreign_page_is_not_read(client: httpx.Client) -> None:
    """A body that isn't declared as JSON, which browsers send without asking, is refused."""
    body = json.dumps({"question": "x", "stream": False})
    response = client.post("/chat", content=body, headers={"content-type": "text/plain"})
    assert response.status_code == 422


def test_the_page_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    """There is no interactive documentation, whose scripts come from other servers; the schema is there."""
    assert client.get("/docs").status_code == 404
    assert "/chat" in client.get("/openapi.json").json()["paths"]
    assert client.get("/about").json()["name"] == "Leadline"


class SlowRuns:
    """Makes every run wait after each event, and tells when one was cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cancelled = threading.Event()
        stream = App.stream

        async def slow(app: App, question: str, **given: Any) -> Any:
            try:
                async for event in stream(app, question, **given):
                    yield event
                    if not isinstance(event, FinalEvent):
                        await asyncio.sleep(0.4)
            except (asyncio.CancelledError, GeneratorExit):
                self.cancelled.set()
                raise

        monkeypatch.setattr(App, "stream", slow)


@pytest.fixture
def slow_runs(monkeypatch: pytest.MonkeyPatch) -> SlowRuns:
    """Runs that take some seconds."""
    return SlowRuns(monkeypatch)


async def test_a_second_run_in_one_conversation_is_refused(address: str, slow_runs: SlowRuns) -> None:
    """While one run is going on in a thread, another gets 409, streamed or not."""
    async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
        async with client.stream(
            "POST", "/chat", json={"question": "When is high water?", "thread_id": "busy"}
        ) as first:
            lines = first.aiter_lines()  # held: an iterator that is dropped closes its connection
            await anext(lines)
            for stream in (True, False):
                body = {"question": "And low water?", "thread_id": "busy", "stream": stream}
                second = await client.post("/chat", json=body)
                assert (second.status_code, shape(second)) == (409, "thread_busy")
        assert await asyncio.to_thread(slow_runs.cancelled.wait, 10)


async def test_a_client_that_goes_away_ends_its_run(address: str, slow_runs: SlowRuns) -> None:
    """Closing the connection cancels the run, streamed or not; the server goes on."""
    for stream in (True, False):
        slow_runs.cancelled.clear()
        async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
            body = {"question": "When is high water?", "stream": stream}
            if stream:
                async with client.stream("POST", "/chat", json=body) as response:
                    await anext(response.aiter_lines())
            else:
                with pytest.raises(httpx.ReadTimeout):
                    await client.post("/chat", json=body, timeout=0.6)
        assert await asyncio.to_thread(slow_runs.cancelled.wait, 10)
        async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
            assert (await client.get("/health")).status_code == 200
