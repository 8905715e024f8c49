"""LangGraph's own server runs the graph: offline, without a key, and without any switch that allows blocking calls."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from leadline.config import Settings
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

ROOT = Path(__file__).parents[2]
START_S = 60


@dataclass
class Server:
    """A running server, and where it writes what it says."""

    url: str
    log: Path


@pytest.fixture
async def data_dir(tmp_path: Path) -> Path:
    """A data folder with one document."""
    document = tmp_path / "vault.md"
    document.write_text("# The vault\n\nThe vault code is 7719. It was set in May by Dana Fox.\n", encoding="utf-8")
    settings = Settings(data_dir=tmp_path / "data")
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), [document], settings)
    return settings.data_dir


@pytest.fixture
def server(tmp_path: Path, data_dir: Path) -> Iterator[Server]:
    """`langgraph dev` on a free port of this machine, ended after the test."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The server writes a folder of its own beside the file it reads, so it gets a copy.
    config = Path(shutil.copy(ROOT / "langgraph.json", tmp_path))
    config.write_text(config.read_text().replace('"."', f'"{ROOT}"'))
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
    environment = {**os.environ, "LEADLINE_DATA_DIR": str(data_dir), "LANGSMITH_TRACING": "false"}
    log = tmp_path / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield Server(_ready(f"http://127.0.0.1:{port}", process, log), log)
        finally:
            process.terminate()
            process.wait(20)


def _ready(url: str, process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/ok", timeout=2).is_success:
                return url
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError(f"langgraph dev did not start:\n{log.read_text()}")


def test_a_thread_runs_and_ends_with_the_result(server: Server) -> None:
    """A thread keeps a conversation over two runs; `result` is in its state; nothing blocked the event loop."""
    with httpx.Client(base_url=server.url, timeout=120) as client:
        [assistant] = client.post("/assistants/search", json={}).json()
        knobs = client.get(f"/assistants/{assistant['assistant_id']}/schemas").json()["context_schema"]["properties"]
        assert {"collection", "web", "top_k", "llm", "budgets"} <= set(knobs)
        thread = client.post("/threads", json={}).json()["thread_id"]
        for question, status in (("What is the vault code?", "answered"), ("Who set it?", "answered")):
            asked = {"assistant_id": "leadline", "input": {"messages": [{"role": "user", "content": question}]}}
            reply = client.post(f"/threads/{thread}/runs/wait", json=asked)
            assert reply.is_success, reply.text
            assert reply.json()["result"]["status"] == status, reply.json()["result"]
        state = client.get(f"/threads/{thread}/state").json()["values"]
    assert state["result"]["citations"][0]["file_name"] == "vault.md"
    assert [message["type"] for message in state["messages"]] == ["human", "ai"] * 2
    assert not state["documents"]
    assert "Blocking" not in server.log.read_text()
