"""`langgraph dev`, LangGraph's own server, over a data folder: offline, without a key; and a conversation with it."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.servers.programs import Program, free_port

ROOT = Path(__file__).parents[2]


@dataclass
class Studio:
    """A running server: where it is, and where it writes what it says."""

    url: str
    log: Path


class Thread:
    """A conversation in Studio."""

    def __init__(self, client: httpx.Client, **knobs: Any) -> None:
        self.client, self.knobs = client, knobs
        self.id = client.post("/threads", json={}).json()["thread_id"]

    def run(self, **what: Any) -> dict[str, Any]:
        """Starts a run or goes on with one; the values when it ends or waits."""
        asked = {"assistant_id": "leadline", "context": self.knobs, **what}
        reply = self.client.post(f"/threads/{self.id}/runs/wait", json=asked)
        assert reply.is_success, reply.text
        values: dict[str, Any] = reply.json()
        assert "__error__" not in values, values
        return values

    def ask(self, question: str) -> dict[str, Any]:
        """Asks, as Studio's form does."""
        return self.run(input={"messages": [{"role": "user", "content": question}]})

    def answer(self, said: Any) -> dict[str, Any]:
        """Answers what the run waits for."""
        return self.run(command={"resume": said})

    def state(self) -> Any:
        """Where the conversation is now."""
        return self.client.get(f"/threads/{self.id}/state").json()

    def waits_for(self) -> Any:
        """What a person is asked now."""
        [task] = self.state()["tasks"]
        [asked] = task["interrupts"]
        return asked["value"]

    def messages(self, question: str) -> list[tuple[Any, str]]:
        """The messages of a run as they are streamed, each with the node that it comes from."""
        asked = {
            "assistant_id": "leadline",
            "context": self.knobs,
            "stream_mode": "messages-tuple",
            "input": {"messages": [{"role": "user", "content": question}]},
        }
        streamed = self.client.post(f"/threads/{self.id}/runs/stream", json=asked).text
        data = [
            json.loads(block.partition("data: ")[2])
            for block in streamed.replace("\r\n", "\n").split("\n\n")
            if block.startswith("event: messages\n")
        ]
        return [(message, metadata["langgraph_node"]) for message, metadata in data]


@contextmanager
def running_studio(folder: Path, data_dir: Path, settings: Mapping[str, str] | None = None) -> Iterator[Studio]:
    """A server on a free port of this machine while the block runs. It writes into `folder` alone.

    `settings` are more of Leadline's, by the names they have in the environment.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # The server writes a folder of its own beside the file it reads, so it gets a copy.
    config = Path(shutil.copy(ROOT / "langgraph.json", folder))
    config.write_text(config.read_text("utf-8").replace('"."', f'"{ROOT}"'), "utf-8")
    langgraph = str(Path(sys.executable).with_name("langgraph"))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LEADLINE_", "LANGSMITH_"))},
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "1",
        "LEADLINE_DATA_DIR": str(data_dir),
        **(settings or {}),
    }
    server = Program("langgraph dev", folder / "server.log", patience_s=20)
    server.run(
        [langgraph, "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)],
        lambda: _answers(url),
        cwd=folder,
        env=environment,
    )
    try:
        yield Studio(url, folder / "server.log")
    finally:
        server.stop()


def _answers(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/ok", timeout=2, trust_env=False).is_success
    return False
