"""A Chroma server on loopback: the one that comes with Chroma, over a folder of the tests."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

START_TIMEOUT_S = 60


@dataclass
class ChromaProcess:
    """`chroma run` over a folder, on a port of this machine. `start` it again after `kill`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it and waits until it answers; what it said is in the error where it doesn't."""
        program = Path(sys.executable).with_name("chroma")
        arguments = [program, "run", "--path", self.folder / "data", "--host", "127.0.0.1", "--port", str(self.port)]
        log = self.folder / "server.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(arguments, cwd=self.folder, stdout=output, stderr=output)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"the Chroma server did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends it in order."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends it at once, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/heartbeat", trust_env=False).is_success
        except httpx.HTTPError:
            return False


def new_server(folder: Path) -> ChromaProcess:
    """A server over a folder, not yet started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return ChromaProcess(folder, free.getsockname()[1])


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The options for a server that runs until the end of the tests."""
    server = new_server(tmp_path_factory.mktemp("chroma"))
    server.start()
    yield {"url": server.url}
    server.stop()
