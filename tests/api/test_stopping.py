"""What those who wait for an answer get when the server ends."""

import json
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from tests.servers.chat_server import Reply, running_chat_server

from leadline import Settings, load_settings
from leadline.api.app import create_app

QUESTION = "What is the bollard pull of the tug Anvil?"


@contextmanager
def stopping(settings: Settings) -> Iterator[tuple[uvicorn.Server, str]]:
    """A server that gives what is going on a second when it ends, and whose log is that of the tests."""
    config = uvicorn.Config(
        create_app(settings), host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    limit = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < limit
        time.sleep(0.02)
    try:
        yield server, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


def test_a_stream_ends_with_an_event_and_the_log_stays_plain(
    copied: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Streams end whole, the last event a result `interrupted`; a whole answer is 503. Nothing logs a traceback."""
    caplog.set_level(logging.INFO)
    folder = shutil.copytree(copied, tmp_path / "data")
    got: dict[str, httpx.Response] = {}
    message = {"model": "leadline", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    bodies = {
        "stream": ("/chat", {"question": QUESTION}),
        "whole": ("/chat", {"question": QUESTION, "stream": False}),
        "openai": ("/v1/chat/completions", message),
    }
    with running_chat_server() as chat:
        chat.script(Reply(("*Anvil* ", "has "), end="hang", hang_s=6))
        run = {"llm": "openai/scripted", "web": "never", "max_retries": 0}
        settings = load_settings(data_dir=folder, llm_api_base=chat.url, llm_retries=0, run=run)
        with stopping(settings) as (server, url):

            def ask(name: str) -> None:
                path, body = bodies[name]
                got[name] = httpx.post(url + path, json=body, timeout=60, trust_env=False)

            threads = [threading.Thread(target=ask, args=(name,)) for name in bodies]
            for thread in threads:
                thread.start()
            limit = time.monotonic() + 60
            while not chat.requests:
                assert time.monotonic() < limit
                time.sleep(0.05)
            server.should_exit = True
            for thread in threads:
                thread.join(30)
    last = [json.loads(line[6:]) for line in got["stream"].text.splitlines() if line.startswith("data: ")][-1]
    assert (last["type"], last["result"]["status"]) == ("final", "interrupted")
    assert (got["whole"].status_code, got["whole"].json()["error"]["code"]) == (503, "stopping")
    assert '"code": "interrupted"' in got["openai"].text
    assert "[DONE]" not in got["openai"].text
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
