"""A conversation that another process has a run in: refused on the command line and over HTTP."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leadline.config import Settings
from leadline.graph.conversations import open_conversations

QUESTION = "What does error E-217 mean?"


@contextmanager
def held(folder: Path, thread_id: str, collection: str = "default") -> Iterator[None]:
    """Somebody else, with a handle of the lock of its own, has a turn in the conversation."""
    ready, done = threading.Event(), threading.Event()

    async def hold() -> None:
        async with (
            open_conversations(Settings(data_dir=folder)) as conversations,
            conversations.turn(thread_id, collection),
        ):
            ready.set()
            await asyncio.to_thread(done.wait, 60)

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    assert ready.wait(30)
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_busy_conversation_is_a_clear_error(leadline: Callable[..., Any], filled: Path) -> None:
    """Exit code 1, a sentence that names the conversation, no traceback; afterwards it can be used."""
    with held(filled, "t"):
        refused = leadline("ask", QUESTION, "--thread", "t", "--data-dir", filled, "--json")
        assert refused.code == 1
        error = json.loads(refused.out or refused.err)["error"]
        assert error["code"] == "thread_busy"
        assert "conversation t" in error["message"]
        assert "Traceback" not in refused.out + refused.err
        assert leadline("ask", QUESTION, "--thread", "u", "--data-dir", filled).code == 0
    assert leadline("ask", QUESTION, "--thread", "t", "--data-dir", filled).code == 0


def test_another_collection_is_a_clear_error(leadline: Callable[..., Any], filled: Path, tmp_path: Path) -> None:
    """Exit code 1, and what to do."""
    note = tmp_path / "note.md"
    note.write_text("The vault code is 42.", encoding="utf-8")
    assert leadline("ingest", note, "--collection", "other", "--data-dir", filled).code == 0
    assert leadline("ask", QUESTION, "--thread", "t", "--data-dir", filled).code == 0
    refused = leadline("ask", QUESTION, "--thread", "t", "--collection", "other", "--data-dir", filled)
    assert refused.code == 1
    assert "about the collection default" in refused.err
    assert "begin another conversation" in refused.err


@pytest.mark.parametrize("thread", ["a", "b"])
def test_an_unusable_store_of_conversations_costs_no_answer(
    leadline: Callable[..., Any], filled: Path, thread: str
) -> None:
    """The answer, exit code 0, and what failed."""
    (filled / "threads.db").write_bytes(b"no database " * 500)
    done = leadline("ask", QUESTION, "--thread", thread, "--data-dir", filled, "--json")
    assert done.code == 0
    assert json.loads(done.out)["degraded"] == ["checkpointer"]


def test_a_damaged_index_costs_no_answer(leadline: Callable[..., Any], filled: Path) -> None:
    """The other legs answer, exit code 0; what to do about it is said."""
    for path in (filled / "indexes" / "default" / "bm25").rglob("*"):
        if path.is_file():
            path.write_bytes(b"no index " * 300)
    done = leadline("ask", QUESTION, "--data-dir", filled)
    assert done.code == 0
    assert "Without bm25" in done.out
    assert "leadline verify --repair" in done.out
    assert "Traceback" not in done.out + done.err
