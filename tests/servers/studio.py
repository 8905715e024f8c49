"""`langgraph dev`, LangGraph's own server, over a data folder: offline, without a key."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.servers.programs import Program, free_port

ROOT = Path(__file__).parents[2]


@dataclass
class Studio:
    """A running server: where it is, and where it writes what it says."""

    url: str
    log: Path


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
    command = [Path(sys.executable).with_name("langgraph"), "dev", "--no-browser", "--no-reload"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LEADLINE_", "LANGSMITH_"))},
        "LEADLINE_DATA_DIR": str(data_dir),
        **(settings or {}),
    }
    server = Program("langgraph dev", folder / "server.log", patience_s=20)
    server.run(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
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
