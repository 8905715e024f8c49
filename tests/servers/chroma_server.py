"""A Chroma server on loopback: the one that comes with Chroma, over a folder of the tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.servers.programs import Program, free_port


class ChromaProcess(Program):
    """`chroma run` over a folder, on a port of this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__("The Chroma server", folder / "server.log")
        self._folder, self._port = folder, free_port()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it and waits until it answers."""
        program = Path(sys.executable).with_name("chroma")
        place = ["--path", self._folder / "data", "--host", "127.0.0.1", "--port", str(self._port)]
        self.run([program, "run", *place], self._answers, cwd=self._folder)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/heartbeat", trust_env=False).is_success
        except httpx.HTTPError:
            return False


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The options for a server that runs until the end of the tests."""
    server = ChromaProcess(tmp_path_factory.mktemp("chroma"))
    server.start()
    yield {"url": server.url}
    server.stop()
