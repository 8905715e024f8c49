"""The file of the conversations: what is taken out of it is in none of its bytes."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from leadline.errors import StoreError
from leadline.graph.redaction import sweep
from leadline.graph.threads_sqlite import open_sqlite
from leadline.nodes.origins import answer_message
from leadline.records import Origin


def bytes_in(folder: Path) -> bytes:
    """Everything in the conversations' files."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("threads.db*")))


async def test_copies_in_unused_space_go_too(tmp_path: Path) -> None:
    """SQLite can leave copies of rows where it has moved them, which overwriting a row doesn't reach. They are made
    here by a deletion that overwrites nothing."""

    async def still_there(origins: Any) -> set[str]:
        return set()

    async with open_sqlite(tmp_path / "threads.db") as threads:
        for thread in ("moved", "t"):
            origin = Origin(chunk_id="c", doc_id="d", file_hash="f")
            said = [HumanMessage("q", id="q"), answer_message("gone " * 3000, answer_from=[origin], question_from=[])]
            state: Any = {**empty_checkpoint(), "channel_values": {"messages": said}}
            await threads.aput({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, state, {}, {})
        other = sqlite3.connect(tmp_path / "threads.db")
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("DELETE FROM checkpoints WHERE thread_id = 'moved'")
        other.commit()
        other.close()
        assert bytes_in(tmp_path).count(b"gone gone") > 3000
        assert await sweep(threads, still_there) == 1
        assert b"gone gone" not in bytes_in(tmp_path)


async def test_a_conversation_that_cannot_be_read_keeps_no_other(tmp_path: Path) -> None:
    """The others are rid of what was deleted, and the error says that one may hold it still."""

    async def still_there(origins: Any) -> set[str]:
        return set()

    async with open_sqlite(tmp_path / "threads.db") as threads:
        for thread in ("a", "torn", "z"):
            origin = Origin(chunk_id="c", doc_id="d", file_hash="f")
            said = [HumanMessage("q", id="q"), answer_message(f"gone {thread}", answer_from=[origin], question_from=[])]
            state: Any = {**empty_checkpoint(), "channel_values": {"messages": said}}
            await threads.aput({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, state, {}, {})
        await threads.conn.execute("UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = 'torn'")
        await threads.conn.commit()
        with pytest.raises(StoreError, match="1 of the stored conversations can't be read"):
            await sweep(threads, still_there)
    assert b"gone a" not in bytes_in(tmp_path)
    assert b"gone z" not in bytes_in(tmp_path)


async def put(threads: Any, thread: str) -> None:
    """Keeps a conversation of one question."""
    state: Any = {**empty_checkpoint(), "channel_values": {"messages": [HumanMessage("q", id="q")]}}
    await threads.aput({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, state, {}, {})


def others_can_write(path: Path) -> bool:
    """Whether no transaction of anybody is open that writes."""
    with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


async def test_a_deletion_that_breaks_half_way_leaves_all_of_it(tmp_path: Path) -> None:
    """The conversation is still there, and no other process is kept waiting for the file."""
    path = tmp_path / "threads.db"
    async with open_sqlite(path) as threads:
        await put(threads, "t")
        await threads.conn.executescript(
            "INSERT INTO writes VALUES ('t', '', 'c', 'task', '', 0, 'messages', NULL, NULL);"
            "CREATE TRIGGER broken BEFORE DELETE ON writes BEGIN SELECT RAISE(ABORT, 'broken'); END;"
        )
        with pytest.raises(sqlite3.IntegrityError):
            await threads.delete("t")
        assert others_can_write(path)
        assert [state is not None async for state in threads.last_states()] == [True]


@pytest.mark.parametrize("work", ["delete", "put"])
async def test_what_is_cancelled_while_it_waits_for_the_file_keeps_nobody_out(tmp_path: Path, work: str) -> None:
    """The statement goes on in its thread when the file is free; what it did is taken back."""
    path = tmp_path / "threads.db"
    async with open_sqlite(path) as threads:
        await put(threads, "t")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = asyncio.ensure_future(threads.delete("t") if work == "delete" else put(threads, "u"))
            await asyncio.sleep(0.2)
            task.cancel()
            other.execute("COMMIT")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert others_can_write(path)
        assert len([state async for state in threads.last_states()]) == 1
