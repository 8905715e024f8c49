"""A real server on loopback over the example documents."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from tests.servers.chat_server import ChatServer, running_chat_server

from leadline import Settings, ingest_paths, load_settings, open_library
from leadline.api.app import create_app

EXAMPLES = Path(__file__).parents[2] / "examples" / "documents"
FEW = {"top_k": 3, "max_retries": 0}  # for tests that are about the server: most of an answer's time is the reranker's


async def fill(settings: Settings) -> None:
    """Ingests the examples."""
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), [EXAMPLES], settings)


@contextmanager
def running_server(settings: Settings) -> Iterator[str]:
    """The address of a server that runs while the block does."""
    server = uvicorn.Server(uvicorn.Config(create_app(settings), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    limit = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive(), "the server ended at its start"
        assert time.monotonic() < limit, "the server did not start"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


@pytest.fixture(scope="session")
def api_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a data folder with the examples in it. Few passages are weighed for an answer."""
    folder = tmp_path_factory.mktemp("api") / "data"
    settings = load_settings(data_dir=folder, rate_per_minute=10_000, run=FEW)
    asyncio.run(fill(settings))
    shutil.copytree(settings.data_dir, settings.data_dir.with_name("copy"))
    return settings


@pytest.fixture(scope="session")
def copied(api_settings: Settings) -> Path:
    """A copy of that data folder, made before any server opened it."""
    return api_settings.data_dir.with_name("copy")


@pytest.fixture(scope="session")
def address(api_settings: Settings) -> Iterator[str]:
    """Where the server listens."""
    with running_server(api_settings) as url:
        yield url


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    """A client of the server."""
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        yield client


@dataclass(frozen=True)
class Written:
    """A server whose answers are written by the scripted LLM `chat`, and its address."""

    chat: ChatServer
    url: str


@pytest.fixture(scope="module")
def written_server(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """One for a file of tests. A stream of it is silent for a third of a second at most; it doesn't search again."""
    folder = shutil.copytree(copied, tmp_path_factory.mktemp("written") / "data")
    with running_chat_server() as chat:
        run = {"llm": "openai/scripted", "web": "never", **FEW}
        settings = load_settings(
            data_dir=folder,
            llm_api_base=chat.url,
            llm_retries=0,
            heartbeat_s=1 / 3,
            llms=["openai/other", "nobody/is"],
            run=run,
        )
        with running_server(settings) as url:
            yield Written(chat, url)


@pytest.fixture
def written(written_server: Written) -> Written:
    """The same, with nothing left of the tests before."""
    chat = written_server.chat
    chat.requests.clear()
    for happened in (chat.left, chat.asked):
        happened.clear()
    return written_server


@pytest.fixture
def serving() -> Callable[[Settings], AbstractContextManager[str]]:
    """Starts a server of other settings."""
    return running_server
