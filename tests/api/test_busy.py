"""A server whose catalog somebody else keeps locked: who only reads doesn't notice, who writes waits or is told."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.uploading import client_of, documents, error, finished, kept, upload

from leadline import Settings, load_settings
from leadline.errors import StoreBusy, StoreError
from leadline.stores.catalog_jobs import add_job
from leadline.stores.turns import WriteTurns

Serving = Callable[[Settings], AbstractContextManager[str]]

AT_ONCE = 12  # more than there are threads for what blocks, on a machine of two cores


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder / "catalog.db", isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


def test_uploads_that_wait_hold_up_nobody_else(serving: Serving, tmp_path: Path) -> None:
    """Lists and health are answered meanwhile, and every upload is accepted once the catalog is free."""
    answers: list[httpx.Response] = []
    with serving(load_settings(data_dir=tmp_path)) as url, client_of(url) as client:
        finished(client, upload(client, {"first.txt": "The first word is there."}))

        def send(number: int) -> None:
            with client_of(url) as mine:
                answers.append(upload(mine, {f"waits-{number}.txt": f"The word of the {number}th is tern-{number}."}))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(AT_ONCE)]
        with _locked(tmp_path):
            for thread in threads:
                thread.start()
            time.sleep(1)
            began = time.monotonic()
            assert client.get("/health").status_code == 200
            assert list(documents(client)) == ["first.txt"]
            assert time.monotonic() - began < 5
            assert not answers
        for thread in threads:
            thread.join(60)
        assert [answer.status_code for answer in answers] == [202] * AT_ONCE
        listed = {job["id"] for job in client.get("/jobs").json()["jobs"]}
        assert listed >= {answer.json()["id"] for answer in answers}


async def test_a_turn_that_does_not_come_is_told() -> None:
    """Whoever waited too long is told so, and the next one is let in as soon as it is free."""
    turns, free = WriteTurns(wait_s=0.1), threading.Event()

    async def first() -> bool:
        return await turns.take(lambda: free.wait(10))

    holding = asyncio.create_task(first())
    await asyncio.sleep(0.01)
    with pytest.raises(StoreBusy):
        await turns.take(lambda: None)
    free.set()
    assert await holding
    assert await turns.take(lambda: "mine") == "mine"


def test_a_job_that_could_not_be_stored_leaves_no_bytes(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the catalog fails after the files are in their place, they are removed, and the client is told."""

    def failing(catalog: Any, collection: str, files: Any, store: Callable[[], None]) -> Any:
        def store_and_fail() -> None:
            store()
            raise StoreError("The disk of the catalog is full.")

        return add_job(catalog, collection, files, store_and_fail)

    with serving(load_settings(data_dir=tmp_path)) as url, client_of(url) as client:
        monkeypatch.setattr("leadline.api.documents.add_job", failing)
        assert error(upload(client, {"a.txt": "one", "b.txt": "two"})) == (500, "store")
        assert kept(tmp_path) == []
        monkeypatch.undo()
        assert finished(client, upload(client, {"a.txt": "one word"}))["status"] == "done"
