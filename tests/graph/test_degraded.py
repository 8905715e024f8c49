"""What a run does without: each part down or slow in turn, and pairs of them, always an answer or an abstention.

The failures are real where they can be: damaged files, a killed or a stopped server, a port nobody listens at, a file
that another process has locked. Parts that run in this process are made to raise or to hang.
"""

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.servers.chat_server import ChatServer, Reply, says
from tests.servers.chroma_server import ChromaProcess
from tests.servers.postgres import PostgresServer
from tests.servers.programs import free_port
from tests.servers.search_server import SearchServer

from leadline.config import RunContext, Settings
from leadline.events import DegradedEvent, FinalEvent, RunEvent
from leadline.graph import opening
from leadline.graph.run import open_app
from leadline.graph.seal import hash_of_result
from leadline.knowledge import open_library
from leadline.models.hub import HubCrossEncoder
from leadline.nodes import checking
from leadline.stores.entity_graph import EntityGraphStore
from leadline.stores.tantivy import TantivyStore
from leadline.web import patience

# LiteLLM's own: it reads deprecated fields, and leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUESTION = "When are Roses pruned?"
ROSES = "Roses are pruned in March, before the buds open."
TEXTS = {
    "roses": f"{ROSES} Cut above a bud that points outward.",
    "compost": "The compost heap stands behind the shed and is turned every second week.",
    "tomatoes": "Tomatoes need about two litres of water a day.",
}
NOBODY = 65534
WAIT_S = 2.5  # for a part that is slow; the others have their own time, however busy the machine is
LONG_S = 28.0  # less than anything here hangs for; the first run of a session imports the client of LLMs
PARTS = ("vector", "bm25", "graph", "reranker", "llm", "critic", "web", "checkpointer")


@dataclass
class Place:
    """An installation that something can be done to before it is opened."""

    folder: Path
    chat: ChatServer
    web: SearchServer
    patch: pytest.MonkeyPatch
    settings: dict[str, Any] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)

    def index_of(self, leg: str) -> list[Path]:
        """The files of a leg's index."""
        files = [path for path in (self.folder / "indexes" / "default" / leg).rglob("*") if path.is_file()]
        assert files
        return files

    def wait_less_for(self, *parts: str) -> None:
        """Of these the settings say a short time-out."""
        self.settings |= {f"{part}_timeout_s": WAIT_S for part in parts}

    def hang(self, *_: Any, **__: Any) -> Any:
        """In a thread: nothing, until the test is over."""
        self.released.wait(60)
        raise TimeoutError("released")

    async def hang_async(self, *_: Any, **__: Any) -> Any:
        """As an embedded store hangs, which works in a thread."""
        return await asyncio.to_thread(self.hang)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with three notes and a conversation of one turn."""
    folder = tmp_path_factory.mktemp("degraded") / "data"

    async def fill() -> None:
        settings = Settings(data_dir=folder, vector_backend="faiss")
        async with open_library(settings) as library:
            await (await library.collection()).add_documents([*TEXTS.values()], ids=[*TEXTS])
        async with open_app(settings) as app:
            assert (await app.ask("What do Tomatoes need?", thread_id="t"))["status"] == "answered"

    asyncio.run(fill())
    return folder


@pytest.fixture
def place(
    prepared: Path,
    tmp_path: Path,
    chat_server: ChatServer,
    search_server: SearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    """A copy of that folder, an LLM that answers rightly, and a web that has something to say."""
    folder = shutil.copytree(prepared, tmp_path / "data")
    search_server.results = [("Roses", "https://roses.example/", "Roses are pruned in late winter.")]
    chat_server.script(by_prompt)
    place = Place(folder, chat_server, search_server, monkeypatch)
    for pause in ("PAUSE_S", "RATE_LIMIT_PAUSE_S"):  # before a search is tried again
        monkeypatch.setattr(patience, pause, 0.01)
    yield place
    place.released.set()


def by_prompt(request: dict[str, Any]) -> Reply:
    """An answer where one is asked for; the question itself where it is to stand alone."""
    system, user = (message["content"] for message in request["messages"][:2])
    place = re.search(r"\[(\d+)\] [^<]*in March", user)
    return says(f"{ROSES[:-1]} [{place[1] if place else 1}]." if "numbered passages" in system else QUESTION)


def garbage(files: list[Path]) -> None:
    """Not a byte is left of what was in them."""
    for path in files:
        path.write_bytes(b"no index " * 300)


@contextmanager
def damaged_vector(place: Place) -> Iterator[None]:
    """Its files hold something else."""
    garbage(place.index_of("vector"))
    yield


@contextmanager
def damaged_bm25(place: Place) -> Iterator[None]:
    """Its files hold something else."""
    garbage(place.index_of("bm25"))
    yield


@contextmanager
def damaged_graph(place: Place) -> Iterator[None]:
    """A column of each of its tables is gone."""
    with sqlite3.connect(place.folder / "catalog.db") as catalog:
        catalog.execute("ALTER TABLE graph_sizes RENAME COLUMN chunks TO gone")
        catalog.execute("ALTER TABLE graph_entities RENAME COLUMN chunks TO gone")
    catalog.close()
    yield


@contextmanager
def no_reranker(place: Place) -> Iterator[None]:
    """The model that the settings name is nowhere."""
    place.settings["reranker_model"] = str(place.folder / "no-such-model")
    yield


@contextmanager
def no_llm(place: Place) -> Iterator[None]:
    """Nobody listens at its address."""
    place.settings["llm_api_base"] = f"http://127.0.0.1:{free_port()}/v1"
    yield


@contextmanager
def no_critic(place: Place) -> Iterator[None]:
    """The check of the answer breaks."""

    def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the check broke")

    place.patch.setattr(opening, "check_answer", breaks)
    yield


@contextmanager
def no_web(place: Place) -> Iterator[None]:
    """The search engine is out of order."""
    place.web.statuses = [503] * 20
    yield


@contextmanager
def damaged_threads(place: Place) -> Iterator[None]:
    """The file of the conversations is none."""
    garbage(sorted(place.folder.glob("threads.db*")))
    yield


DOWN: dict[str, Callable[[Place], Any]] = {
    "vector": damaged_vector,
    "bm25": damaged_bm25,
    "graph": damaged_graph,
    "reranker": no_reranker,
    "llm": no_llm,
    "critic": no_critic,
    "web": no_web,
    "checkpointer": damaged_threads,
}


@contextmanager
def slow_vector(place: Place) -> Iterator[None]:
    """The model of the questions hangs."""
    place.wait_less_for("leg")
    from leadline.models.minilm import MiniLM

    place.patch.setattr(MiniLM, "embed_query", place.hang)
    yield


@contextmanager
def slow_bm25(place: Place) -> Iterator[None]:
    """The index hangs."""
    place.wait_less_for("leg")
    place.patch.setattr(TantivyStore, "lexical_search", place.hang_async)
    yield


@contextmanager
def slow_graph(place: Place) -> Iterator[None]:
    """The index hangs."""
    place.wait_less_for("leg")
    place.patch.setattr(EntityGraphStore, "search", place.hang_async)
    yield


@contextmanager
def slow_reranker(place: Place) -> Iterator[None]:
    """The model hangs, whether it scores passages or sentences."""
    place.wait_less_for("rerank")
    place.settings["reranker_model"] = str(place.folder / "hangs")
    for call in ("score", "score_sentences"):
        place.patch.setattr(HubCrossEncoder, call, place.hang)
    place.patch.setattr(HubCrossEncoder, "name", "hangs")
    yield


@contextmanager
def slow_llm(place: Place) -> Iterator[None]:
    """It begins, and sends nothing more."""
    place.wait_less_for("llm")
    place.chat.script(Reply(end="hang", hang_s=60))
    yield


@contextmanager
def slow_critic(place: Place) -> Iterator[None]:
    """The check of the answer hangs."""
    place.patch.setattr(opening, "check_answer", place.hang)
    place.patch.setattr(checking, "CHECK_TIMEOUT_S", WAIT_S)
    yield


@contextmanager
def slow_web(place: Place) -> Iterator[None]:
    """The search engine takes long."""
    place.wait_less_for("web")
    place.web.delay_s = 30
    yield


@contextmanager
def locked_threads(place: Place) -> Iterator[None]:
    """Another program has the file of the conversations locked."""
    place.wait_less_for("threads")
    other = sqlite3.connect(place.folder / "threads.db", isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN EXCLUSIVE")
    yield
    other.close()


SLOW: dict[str, Callable[[Place], Any]] = {
    "vector": slow_vector,
    "bm25": slow_bm25,
    "graph": slow_graph,
    "reranker": slow_reranker,
    "llm": slow_llm,
    "critic": slow_critic,
    "web": slow_web,
    "checkpointer": locked_threads,
}


def settings_of(place: Place) -> Settings:
    """The settings of the installation."""
    given = {
        "data_dir": place.folder,
        "vector_backend": "faiss",
        "llm_api_base": place.chat.url,
        "llm_retries": 0,
        "web_pages": 0,
        **place.settings,
    }
    return Settings(**given)


async def run_over(place: Place, *, llm: bool, stream: bool) -> tuple[dict[str, Any], list[RunEvent]]:
    """The result, and the events where they are streamed."""
    context = RunContext(llm="openai/scripted" if llm else None, web="always", web_consent="yes", max_retries=1)
    async with open_app(settings_of(place)) as app:
        if not stream:
            return dict(await app.ask(QUESTION, context=context, thread_id="t")), []
        events = [event async for event in app.stream(QUESTION, context=context, thread_id="t")]
    finals = [event for event in events if isinstance(event, FinalEvent)]
    assert finals == events[-1:], "exactly one final event, the last"
    return finals[0].result, events


def check(result: dict[str, Any], events: list[RunEvent], missing: list[str], *, llm: bool) -> None:
    """An answer or an abstention, with what it did without, and no word of a failure in it."""
    assert result["status"] in ("answered", "abstained"), result.get("error")
    expected = {part for part in missing if llm or part != "llm"}
    assert expected <= set(result["degraded"]), result["degraded"]
    allowed = expected | ({"planner", "rewriter", "repair"} if "llm" in expected else set())
    assert set(result["degraded"]) <= allowed, result["degraded"]
    if events:
        told = {event.part for event in events if isinstance(event, DegradedEvent)}
        assert told == set(result["degraded"])
    assert "Traceback" not in str(result)
    assert "Error" not in result["answer"]
    if result["status"] == "answered":
        assert result["citations"]
        assert "pruned" in result["answer"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("llm", [False, True], ids=["quoted", "written"])
@pytest.mark.parametrize("part", [None, *PARTS])
async def test_each_part_down(place: Place, part: str | None, llm: bool, stream: bool) -> None:
    """The run goes on without it and says so; with nothing down nothing is said."""
    with ExitStack() as faults:
        if part:
            faults.enter_context(DOWN[part](place))
        result, events = await run_over(place, llm=llm, stream=stream)
    check(result, events, [part] if part else [], llm=llm)
    if part != "critic":
        assert result["status"] == "answered"


@pytest.mark.parametrize("llm", [False, True], ids=["quoted", "written"])
@pytest.mark.parametrize(("one", "other"), list(combinations(PARTS, 2)))
async def test_each_pair_down(place: Place, one: str, other: str, llm: bool) -> None:
    """Two failures at once are both said, and neither makes more of the other."""
    with DOWN[one](place), DOWN[other](place):
        result, events = await run_over(place, llm=llm, stream=True)
    check(result, events, [one, other], llm=llm)


@pytest.mark.parametrize("llm", [False, True], ids=["quoted", "written"])
@pytest.mark.parametrize("part", PARTS)
async def test_each_part_slow(place: Place, part: str, llm: bool) -> None:
    """A part that hangs is waited for as long as the settings say, and no longer."""
    begun = time.monotonic()
    with SLOW[part](place):
        result, events = await run_over(place, llm=llm, stream=True)
        took = time.monotonic() - begun
        place.released.set()
    if part == "llm" and llm:  # it had begun, so that its answer broke off
        assert result["status"] in ("answered", "abstained", "interrupted")
        assert "llm" in result["degraded"]
    else:
        check(result, events, [part], llm=llm)
    assert took < LONG_S


async def test_a_leg_that_hangs_costs_one_thread_however_often_it_is_asked(place: Place) -> None:
    """As long as an earlier search has not ended it is not asked again, and costs no time."""
    before = threading.active_count()
    place.wait_less_for("leg")
    asked = []

    async def hang(*_: Any, **__: Any) -> Any:
        asked.append(1)
        return await place.hang_async()

    place.patch.setattr(TantivyStore, "lexical_search", hang)
    async with open_app(settings_of(place)) as app:
        await app.ask(QUESTION)
        begun = time.monotonic()
        for _ in range(3):
            assert "bm25" in (await app.ask(QUESTION))["degraded"]
        assert time.monotonic() - begun < 3 * WAIT_S
        assert len(asked) == 1
        place.released.set()
        await asyncio.sleep(0.2)
        place.patch.undo()
        assert (await app.ask(QUESTION))["degraded"] == []
    assert threading.active_count() <= before + 8


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaProcess]:
    """A Chroma server that tests may stop, and must have going on again."""
    server = ChromaProcess(tmp_path_factory.mktemp("chroma-degraded"))
    server.start()
    yield server
    server.stop(signal.SIGKILL)


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_vector_server_that_goes_and_comes_back(tmp_path: Path, chroma: ChromaProcess, how: str) -> None:
    """Between two runs, before the app opens too; and it is used again when it is back."""
    settings = Settings(
        data_dir=tmp_path, vector_backend="chroma", vector_options={"url": chroma.url}, leg_timeout_s=WAIT_S
    )
    async with open_library(settings) as library:
        await (await library.collection()).add_documents([*TEXTS.values()], ids=[*TEXTS])
    async with open_app(settings) as app:
        assert (await app.ask(QUESTION))["degraded"] == []
        chroma.interrupt(how)
        try:
            result = await app.ask(QUESTION)
            assert (result["status"], result["degraded"]) == ("answered", ["vector"])
            async with open_app(settings) as later:
                result = await later.ask(QUESTION)
                assert (result["status"], result["degraded"]) == ("answered", ["vector"])
        finally:
            chroma.resume(how)
        for _ in range(100):
            if not (await app.ask(QUESTION))["degraded"]:
                break
            await asyncio.sleep(0.2)
        assert (await app.ask(QUESTION))["degraded"] == []


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_database_of_conversations_that_goes_and_comes_back(
    place: Place, own_postgres: PostgresServer, how: str
) -> None:
    """A run without a memory, in time; what was kept before is whole when the server is back."""
    place.wait_less_for("threads")
    place.settings["threads_url"] = own_postgres.database()
    async with open_app(settings_of(place)) as app:
        assert (await app.ask("When are Roses pruned?", thread_id="p"))["degraded"] == []
        own_postgres.interrupt(how)
        begun = time.monotonic()
        try:
            result = await app.ask("Where to cut them?", thread_id="p")
        finally:
            own_postgres.resume(how)
        assert time.monotonic() - begun < LONG_S
        assert result["degraded"] == ["checkpointer"]
        for _ in range(50):
            result = await app.ask("Where to cut them?", thread_id="p")
            if not result["degraded"]:
                break
            await asyncio.sleep(0.2)
        assert (result["degraded"], result["question"]) == ([], "Where to cut them? (Roses)")


async def test_a_turn_that_cannot_be_kept_has_its_answer(place: Place) -> None:
    """The store goes while the run is on: the answer comes, it is said, and the conversation stays as it was."""
    place.wait_less_for("threads")
    async with open_app(settings_of(place)) as app:
        other = sqlite3.connect(place.folder / "threads.db", isolation_level=None, check_same_thread=False)
        result: dict[str, Any] = {}
        async for event in app.stream(QUESTION, thread_id="t"):
            if not other.in_transaction and event.type == "query":
                other.execute("BEGIN IMMEDIATE")
            if isinstance(event, FinalEvent):
                result = event.result
        other.close()
        assert (result["status"], result["degraded"]) == ("answered", ["checkpointer"])
        assert result["record"]["result_hash"] == hash_of_result(result)
        assert [info.turns for info in await app.threads()] == [1]


@contextmanager
def without_rights() -> Iterator[None]:
    """As an account that may read and not write what belongs to others: root may do anything."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def readable_threads(prepared: Path) -> Iterator[Path]:
    """A data folder of the account of `without_rights`, but for the conversations."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-read-only-"))  # not below pytest's own: nobody else may enter that
    try:
        data = shutil.copytree(prepared, folder / "data")
        folder.chmod(0o755)
        for path in [data, *data.rglob("*")]:
            if path.name.startswith("threads.db"):
                path.chmod(0o444)
            elif not os.geteuid():
                os.chown(path, NOBODY, NOBODY)
        yield data
    finally:
        shutil.rmtree(folder)


async def test_conversations_that_may_only_be_read(prepared: Path) -> None:
    """The file belongs to somebody else: an answer without a memory, and the file stays as it was."""
    with readable_threads(prepared) as data:
        before = (data / "threads.db").read_bytes()
        async with open_app(Settings(data_dir=data, vector_backend="faiss", threads_timeout_s=WAIT_S)) as app:
            assert (await app.ask(QUESTION))["degraded"] == []  # all is loaded that the other account may not read
            with without_rights():
                result = await app.ask(QUESTION, thread_id="t")
        assert (result["status"], result["degraded"]) == ("answered", ["checkpointer"])
        assert (data / "threads.db").read_bytes() == before
