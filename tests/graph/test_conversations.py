"""Conversations in a file and in PostgreSQL: what is kept, who may have a turn, and what deleting one leaves."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import PostgresServer

from leadline.config import RunContext, Settings
from leadline.errors import ConfigError, ThreadBusy, ThreadElsewhere, ThreadUnknown
from leadline.graph.conversations import open_conversations
from leadline.graph.redaction import sweep
from leadline.graph.run import App
from leadline.nodes.origins import REMOVED

QUESTION = "When are roses pruned?"
BESIDE = b"outward bud"  # stands beside the sentence that answers, never in it
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["file", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings that keep conversations in one of the two places."""
    if request.param == "file":
        return Settings(data_dir=tmp_path)
    server: PostgresServer = request.getfixturevalue("postgres")
    return Settings(data_dir=tmp_path, threads_url=server.database())


@pytest.fixture
def app_over(settings: Settings) -> Callable[..., Any]:
    """Opens an App over these dependencies."""

    @asynccontextmanager
    async def opened(deps: Any) -> AsyncIterator[App]:
        async with open_conversations(settings) as conversations:
            library: Any = None  # toy legs need none
            yield App(settings, library, conversations, deps)

    return opened


def url_of(settings: Settings) -> str | None:
    """The database of the conversations, if they are in one."""
    return settings.threads_url.get_secret_value() if settings.threads_url else None


def stored_bytes(settings: Settings) -> bytes:
    """Everything that is stored: the bytes of the files, or all values of all tables."""
    url = url_of(settings)
    if url is None:
        return b"".join(path.read_bytes() for path in sorted(settings.data_dir.glob("threads.db*")))
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT checkpoint::text, metadata::text FROM leadline_threads.checkpoints"
            " UNION ALL SELECT channel, encode(blob, 'escape') FROM leadline_threads.checkpoint_blobs"
            " UNION ALL SELECT channel, encode(blob, 'escape') FROM leadline_threads.checkpoint_writes"
        ).fetchall()
    return "\n".join(str(value) for row in rows for value in row).encode()


def row_counts(settings: Settings) -> dict[str, int]:
    """Rows by table."""
    url = url_of(settings)
    assert url
    with psycopg.connect(url) as connection:
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        counted = [connection.execute(f"SELECT count(*) FROM leadline_threads.{table}").fetchone() for table in tables]
    return {table: row[0] for table, row in zip(tables, counted, strict=True) if row}


@contextmanager
def held_elsewhere(settings: Settings, thread_id: str) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the conversation."""
    command = [sys.executable, "-m", "tests.graph.holding", str(settings.data_dir), thread_id]
    command += [url_of(settings) or ""] if settings.threads_url else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "held"
            yield process
        finally:
            process.kill()


async def test_a_turn_is_remembered_after_a_restart(app_over: Any, over: Any, garden: Any) -> None:
    """The second turn, in a new app, knows what `them` means."""
    async with app_over(over(garden)) as app:
        assert (await app.ask("When are Roses pruned?", thread_id="t"))["degraded"] == []
    async with app_over(over(garden)) as app:
        second = await app.ask("Where to cut them?", thread_id="t")
    assert second["question"] == "Where to cut them? (Roses)"


async def test_only_what_is_said_is_kept(app_over: Any, over: Any, garden: Any, settings: Settings) -> None:
    """The question and the answer with its quote; nothing of the text around it, also after several turns."""
    async with app_over(over(garden)) as app:
        for _ in range(3):
            result = await app.ask(QUESTION, thread_id="t")
    kept = stored_bytes(settings)
    assert QUESTION.encode() in kept
    assert result["citations"][0]["quote"].encode() in kept
    assert BESIDE not in kept


@pytest.mark.parametrize("settings", ["postgres"], indirect=True)
async def test_only_the_last_state_is_kept(app_over: Any, over: Any, garden: Any, settings: Settings) -> None:
    """As many rows after five turns as after one, and the values of the messages and the result once."""
    async with app_over(over(garden)) as app:
        await app.ask(QUESTION, thread_id="t")
        after_one = row_counts(settings)
        for _ in range(4):
            await app.ask(QUESTION, thread_id="t")
        assert row_counts(settings) == after_one
    assert after_one["checkpoints"] == 1
    assert after_one["checkpoint_writes"] == 0


async def test_what_was_deleted_goes_from_all_conversations(
    app_over: Any, over: Any, garden: Any, settings: Settings
) -> None:
    """The answers made from it give way to a note, the conversations go on, and the others keep theirs."""

    async def nothing_there(origins: Any) -> set[str]:
        return {origin["chunk_id"] for origin in origins if "compost" in origin["chunk_id"]}

    async with app_over(over(garden)) as app:
        for thread in ("t", "u"):
            await app.ask(QUESTION, thread_id=thread)
        kept = await app.ask("Which compost needs air?", thread_id="compost")
        assert b"early spring" in stored_bytes(settings)
        threads = await app.conversations.threads()
        assert await sweep(threads, nothing_there) == 2
        assert not await threads.owes_purge()
        assert b"early spring" not in stored_bytes(settings)
        view = await app.conversations.view("t", nothing_there)
        assert [message["text"] for message in view.messages] == [QUESTION, REMOVED]
        assert kept["answer"].encode() in stored_bytes(settings)
        assert (await app.ask(QUESTION, thread_id="t"))["status"] == "answered"


async def test_a_conversation_is_shown_without_what_was_deleted_since(app_over: Any, over: Any, garden: Any) -> None:
    """Also before any turn or sweep has taken it out."""

    async def all_there(origins: Any) -> set[str]:
        return {origin["chunk_id"] for origin in origins}

    async def none_there(origins: Any) -> set[str]:
        return set()

    async with app_over(over(garden)) as app:
        result = await app.ask(QUESTION, thread_id="t")
        whole = await app.conversations.view("t", all_there)
        assert whole.messages == [
            {"role": "user", "text": QUESTION},
            {"role": "assistant", "text": result["answer"]},
        ]
        assert whole.result is not None
        assert whole.result["citations"] == result["citations"]
        bare = await app.conversations.view("t", none_there)
    assert bare.messages[1]["text"] == REMOVED
    assert bare.result is not None
    assert "early spring" not in str(bare)


async def test_conversations_are_listed_and_deleted(app_over: Any, over: Any, garden: Any, settings: Settings) -> None:
    """The one used last first; a deleted one is gone with every byte, and the others stay."""
    async with app_over(over(garden)) as app:
        assert await app.threads() == []
        await app.ask("What is the secret of Quokka?", thread_id="a")
        for _ in range(2):
            await app.ask(QUESTION, thread_id="b")
        listed = await app.threads()
        assert [(info.thread_id, info.turns, info.collection) for info in listed] == [
            ("b", 2, "default"),
            ("a", 1, "default"),
        ]
        assert listed[1].question == "What is the secret of Quokka?"
        await app.delete_thread("a")
        assert [info.thread_id for info in await app.threads()] == ["b"]
        for gone in (app.delete_thread("a"), app.conversations.view("a", over().still_there)):
            with pytest.raises(ThreadUnknown):
                await gone
    assert b"Quokka" not in stored_bytes(settings)
    assert QUESTION.encode() in stored_bytes(settings)


async def test_a_conversation_is_about_one_collection(app_over: Any, over: Any, garden: Any) -> None:
    """Asked in another it is refused, so that no answer of one collection is drawn into the other; it goes on after."""
    other = RunContext(collection="other")
    async with app_over(over(garden)) as app:
        await app.ask(QUESTION, thread_id="t")
        with pytest.raises(ThreadElsewhere, match="about the collection default, not other"):
            await app.ask("And why?", context=other, thread_id="t")
        assert (await app.ask(QUESTION, context=other, thread_id="u"))["status"] == "answered"
        assert (await app.ask(QUESTION, thread_id="t"))["status"] == "answered"
        assert {info.thread_id: info.turns for info in await app.threads()} == {"t": 2, "u": 1}


async def test_two_apps_take_turns(app_over: Any, over: Any, garden: Any) -> None:
    """While a run is on in one, the other is refused in that conversation, and in no other."""
    async with app_over(over(garden)) as app, app_over(over(garden)) as second:
        async with aclosing(app.stream(QUESTION, thread_id="t")) as events:
            await anext(events)
            for refused in (second.ask(QUESTION, thread_id="t"), second.delete_thread("t")):
                with pytest.raises(ThreadBusy):
                    await refused
            assert (await second.ask(QUESTION, thread_id="u"))["degraded"] == []
            async for _ in events:
                pass
        assert (await second.ask(QUESTION, thread_id="t"))["degraded"] == []


async def test_a_process_that_is_killed_holds_nothing(
    app_over: Any, over: Any, garden: Any, settings: Settings
) -> None:
    """As long as another process holds the conversation a run is refused; once that is killed, it is free."""
    async with app_over(over(garden)) as app:
        with held_elsewhere(settings, "t") as process:
            with pytest.raises(ThreadBusy):
                await app.ask(QUESTION, thread_id="t")
            assert (await app.ask(QUESTION, thread_id="u"))["status"] == "answered"
            process.kill()
            process.wait()
        for _ in range(50):  # the server learns of it by the closed connection
            try:
                result = await app.ask(QUESTION, thread_id="t")
                break
            except ThreadBusy:
                continue
        assert (result["status"], result["degraded"]) == ("answered", [])
    assert not list((settings.data_dir).glob("threads.locks/*.lock"))


@pytest.mark.parametrize("settings", ["postgres"], indirect=True)
async def test_what_was_taken_out_is_in_no_file_of_a_table(
    app_over: Any, over: Any, garden: Any, settings: Settings, postgres: PostgresServer
) -> None:
    """The purge writes the tables anew. The server's log of changes is not ours to rewrite."""
    async with app_over(over(garden)) as app:
        await app.ask("What of the Quokka 42 million?", thread_id="t")
        with psycopg.connect(postgres.address("postgres"), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            assert b"Quokka 42 million" in _table_files(postgres)
            threads = await app.conversations.threads()
            assert await threads.delete("t")
            connection.execute("CHECKPOINT")
            assert b"Quokka 42 million" in _table_files(postgres), "a deletion alone leaves them"
            assert await threads.owes_purge()
            await threads.purge()
            connection.execute("CHECKPOINT")
    assert b"Quokka 42 million" not in _table_files(postgres)


def _table_files(postgres: PostgresServer) -> bytes:
    files = sorted((postgres.folder / "data" / "base").glob("*/*"))
    return b"".join(path.read_bytes() for path in files if path.is_file())


async def test_an_address_that_is_none_is_refused(tmp_path: Path, over: Any, garden: Any) -> None:
    """A bad setting is no failure to go on without: it names the setting."""
    settings = Settings(data_dir=tmp_path, threads_url="mysql://u:p@127.0.0.1/x")
    async with open_conversations(settings) as conversations:
        library: Any = None
        app = App(settings, library, conversations, over(garden))
        with pytest.raises(ConfigError, match="threads_url"):
            await app.ask(QUESTION, thread_id="t")
