"""An engine that only one process may have open is used by many: whoever has it open serves the others."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, answer_challenge, deliver_challenge
from pathlib import Path

import numpy as np
import pytest

from leadline.errors import InvalidFilter, ManifestMismatch, StoreError
from leadline.stores import open_vector_store, shared, shared_messages
from leadline.stores.base import ChunkRecord, Hit, VectorStore
from leadline.stores.shared_host import host_file, lock_file, mark

WIDTH = 8
# Writes 200 records of its own, one call each 20, and says when each is acknowledged; then waits to be told to end.
WORKER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from leadline.stores import open_vector_store
from leadline.stores.base import ChunkRecord

async def main(path, name):
    async with open_vector_store("chroma", path=path) as store:
        await store.ensure_ready(8)
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for start in range(0, 200, 20):
            vectors = np.random.default_rng([start, *name.encode()]).normal(size=(20, 8)).astype(np.float32)
            await store.upsert([ChunkRecord(f"{name}-{start + n}", "d", "", (vectors[n],)) for n in range(20)])
            found = await store.search(vectors[7], k=1)
            assert found[0].chunk_id == f"{name}-{start + 7}", found
            print(start + 20, flush=True)
        print("done", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@contextmanager
def worker(path: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has the index open."""
    command = [sys.executable, "-c", WORKER, str(path), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def tell(process: "subprocess.Popen[str]") -> None:
    """Lets a worker go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def acknowledged(process: "subprocess.Popen[str]") -> Iterator[str]:
    """What a worker says, up to "done"."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line.strip()
        if line == "done\n":
            return


def record(chunk_id: str, seed: int) -> ChunkRecord:
    """A chunk with a vector of its own."""
    vector = np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)
    return ChunkRecord(chunk_id, "d", "", (vector,), {"seed": seed})


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[VectorStore]:
    """The index, open and ready."""
    async with open_vector_store("chroma", path=path) as store:
        await store.ensure_ready(WIDTH)
        yield store


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """Three write and search in one index together: each finds its own at once, and all of it is there at the end."""
    path = tmp_path / "vector"
    with worker(path, "a") as one, worker(path, "b") as two, worker(path, "c") as three:
        for process in (one, two, three):
            tell(process)
        for process in (one, two, three):
            assert list(acknowledged(process))[-2:] == ["200", "done"]
    assert len(asyncio.run(_ids(path))) == 600


def test_the_others_go_on_when_the_host_is_killed(tmp_path: Path) -> None:
    """One of them takes its place: no call fails, and what was acknowledged by either is there."""
    path = tmp_path / "vector"
    with worker(path, "a") as host, worker(path, "b") as other:
        assert json.loads(host_file(path).read_bytes())["pid"] == host.pid
        tell(host)
        tell(other)
        ours, theirs = acknowledged(host), acknowledged(other)
        last = 0
        while last < 60:
            last = int(next(ours))
            next(theirs)
        os.kill(host.pid, signal.SIGKILL)
        assert list(theirs)[-2:] == ["200", "done"]
        assert json.loads(host_file(path).read_bytes())["pid"] == other.pid
    ids = asyncio.run(_ids(path))
    assert {f"a-{n}" for n in range(last)} | {f"b-{n}" for n in range(200)} <= ids


async def _ids(path: Path) -> set[str]:
    async with opened(path) as store:
        return await store.all_ids()


async def test_the_next_takes_over_when_the_host_closes(tmp_path: Path) -> None:
    """In the middle of many calls; none is lost."""
    path = tmp_path / "vector"
    async with AsyncClosing(path) as host, opened(path) as joined:
        writes = [asyncio.create_task(joined.upsert([record(f"c{n}", n)])) for n in range(60)]
        await asyncio.wait(writes[:5])
        await host.close()
        await asyncio.gather(*writes)
        assert await joined.count() == 60
    assert not host_file(path).exists()


class AsyncClosing:
    """A store that can be closed before its block ends."""

    def __init__(self, path: Path) -> None:
        self._context = opened(path)
        self._open = False

    async def __aenter__(self) -> "AsyncClosing":
        await self._context.__aenter__()
        self._open = True
        return self

    async def close(self) -> None:
        """Closes it."""
        if self._open:
            self._open = False
            await self._context.__aexit__(None, None, None)

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def test_errors_come_through_as_they_are(tmp_path: Path) -> None:
    """Also those with a meaning for the caller."""
    path = tmp_path / "vector"
    async with opened(path), opened(path) as joined:
        await joined.upsert([record("a", 1)])
        with pytest.raises(InvalidFilter, match=r"\$near"):
            await joined.search(record("a", 1).vectors[0], k=1, where={"seed": {"$near": 1}})
        with pytest.raises(ManifestMismatch, match="width 8"):
            await joined.ensure_ready(WIDTH + 1)
        with pytest.raises(StoreError):
            await joined.ensure_ready(0)


async def test_only_who_can_read_the_folder_gets_an_answer(tmp_path: Path) -> None:
    """The file with the secret is its owner's alone, and a caller without it is turned away."""
    path = tmp_path / "vector"
    async with opened(path) as store:
        assert stat.S_IMODE(host_file(path).stat().st_mode) == 0o600
        port = json.loads(host_file(path).read_bytes())["port"]

        def without_the_secret() -> None:
            with Client(("127.0.0.1", port)) as connection:
                answer_challenge(connection, b"guessed")
                deliver_challenge(connection, b"guessed")

        with pytest.raises((AuthenticationError, EOFError, OSError)):
            await asyncio.to_thread(without_the_secret)
        with socket.create_connection(("127.0.0.1", port)):  # says nothing
            assert await store.count() == 0


async def test_a_file_left_by_a_killed_host_holds_nobody_up(tmp_path: Path) -> None:
    """Its port may belong to another program by now, which never says a word."""
    path = tmp_path / "vector"
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "GREETING_S", 0.1)
        lock_file(path).touch()
        told = {"port": silent.getsockname()[1], "secret": "00" * 32, "pid": 1, "of": mark(path)}
        host_file(path).write_text(json.dumps(told))
        async with opened(path) as store:
            assert await store.count() == 0
        host_file(path).write_text("{")
        async with opened(path) as store:
            assert await store.count() == 0


async def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """It names the folder."""
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="file/vector"):
        async with opened(tmp_path / "file" / "vector"):
            pass


def test_messages_keep_what_they_carry() -> None:
    """Values of every kind a call has, but the text of a record, which no vector index needs."""
    vector = np.array([1.5, -2.25], dtype=np.float32)
    sent = ChunkRecord("a", "d", "text", (vector, vector), {"map": 1, "vector": True, "s": "ü", "f": 0.1})
    (back,) = shared_messages.unpacked(shared_messages.packed([sent]))
    assert (back.chunk_id, back.doc_id, back.text, back.fields) == ("a", "d", "", sent.fields)
    assert [part.tolist() for part in back.vectors] == [vector.tolist()] * 2
    where = {"$or": [{"set": {"$in": ["a"]}}, {"hit": 1.0}]}
    assert shared_messages.unpacked(shared_messages.packed(where)) == where
    assert shared_messages.unpacked(shared_messages.packed({"ids": {"b", "a"}})) == {"ids": {"a", "b"}}
    assert shared_messages.unpacked(shared_messages.packed([Hit("a", 0.5, 0)])) == [Hit("a", 0.5, 0)]


async def test_a_copy_has_a_host_of_its_own(tmp_path: Path) -> None:
    """Copied while it is in use, with the file that says where the host is: neither reaches into the other."""
    original, copy = tmp_path / "original" / "vector", tmp_path / "copy" / "vector"
    async with opened(original) as store:
        await store.upsert([record("a", 1)])
        shutil.copytree(original.parent, copy.parent)
        async with opened(copy) as other:
            await other.upsert([record("b", 2)])
            await other.delete(["a"])
            assert await other.all_ids() == {"b"}
        assert await store.all_ids() == {"a"}


async def test_a_moved_folder_keeps_its_host(tmp_path: Path) -> None:
    """Moved while it is in use: others still find who has it open."""
    async with opened(tmp_path / "before" / "vector") as store:
        await store.upsert([record("a", 1)])
        (tmp_path / "before").rename(tmp_path / "after")
        async with opened(tmp_path / "after" / "vector") as joined:
            assert await joined.all_ids() == {"a"}
