"""Chroma writes the files of its graph in place: killed meanwhile, it leaves a folder that opens all the same."""

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from leadline.errors import StoreError
from leadline.stores import chroma_undo
from leadline.stores.base import ChunkRecord
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.chroma_embedded import EmbeddedChroma

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("LEADLINE_CRASH_ROUNDS") or 10) // 5
LONGEST_S = 60.0
WIDTH, BATCH, SAVES_BEFORE = 384, 250, 2
PAUSES_S = (0.0, 0.001, 0.003, 0.006, 0.01, 0.02)
WRITER = """
import asyncio, sys
from pathlib import Path
from tests.stores.test_chroma_killed import write
asyncio.run(write(Path(sys.argv[1])))
"""
OPENER = """
import asyncio, sys
from pathlib import Path
import chromadb.api.rust
from leadline.stores.chroma_embedded import EmbeddedChroma
async def main(folder):
    client = EmbeddedChroma(folder, "default_tenant", "default_database")
    print("ready", flush=True)
    await client.open()
    await client.create("leadline", {"hnsw": {"space": "cosine"}}, {"dimension": 384})
    await asyncio.sleep(60)
asyncio.run(main(Path(sys.argv[1])))
"""


def records(first: int, last: int) -> list[ChunkRecord]:
    """Chunks of these numbers, the same ones every time."""
    vectors = np.random.default_rng(first).normal(size=(last - first, WIDTH)).astype(np.float32)
    return [ChunkRecord(f"c{first + n}", "d", "", (vector,)) for n, vector in enumerate(vectors)]


async def write(folder: Path) -> None:
    """Writes until it is killed; says how many vectors are acknowledged."""
    async with ChromaVectorStore(path=folder) as store:
        for start in range(0, 50_000, BATCH):
            await store.upsert(records(start, start + BATCH))
            sys.stdout.write(f"{start + BATCH}\n")
            sys.stdout.flush()


async def held(folder: Path) -> set[str]:
    """What the store in `folder` holds, all of it found by a search, and can be added to."""
    async with ChromaVectorStore(path=folder) as store:
        await store.upsert(records(90_000, 90_001))
        ids = await store.all_ids()
        hits = await store.search(np.ones(WIDTH, dtype=np.float32), k=len(ids))
    assert {hit.chunk_id for hit in hits} == ids
    return ids


def names(count: int) -> set[str]:
    """The ids of the first `count` chunks."""
    return {f"c{n}" for n in range(count)}


def stamps(folder: Path) -> dict[str, int]:
    """When each file of the graph was last written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*-*-*-*-*/*")}


def killed_while_saving(folder: Path, pause_s: float) -> int:
    """Kills a writer a moment after Chroma began to save; how many vectors it had acknowledged."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        acknowledged = [0]
        said = writer.stdout
        assert said is not None
        reader = threading.Thread(target=lambda: acknowledged.extend(map(int, said)))
        reader.start()
        deadline = time.monotonic() + LONGEST_S
        while acknowledged[-1] < SAVES_BEFORE * 1000 and time.monotonic() < deadline:
            time.sleep(0.005)
        before = stamps(folder)
        while stamps(folder) == before and time.monotonic() < deadline:
            pass
        time.sleep(pause_s)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        reader.join()
    return acknowledged[-1]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_in_the_middle_of_a_save(number: int, tmp_path: Path) -> None:
    """Without a repair the folder opens, with all that was acknowledged, and finds it."""
    acknowledged = killed_while_saving(tmp_path / "vector", random.Random(number).choice(PAUSES_S))
    assert acknowledged >= SAVES_BEFORE * 1000
    assert names(acknowledged) <= asyncio.run(held(tmp_path / "vector"))


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_in_the_very_first_opening(number: int, tmp_path: Path) -> None:
    """A database whose tables were not all made yet is finished, not refused."""
    folder = tmp_path / "vector"
    with subprocess.Popen([sys.executable, "-c", OPENER, str(folder)], cwd=ROOT, stdout=subprocess.PIPE) as opener:
        assert opener.stdout is not None
        opener.stdout.readline()
        time.sleep(random.Random(number).random() * 0.08)
        opener.send_signal(signal.SIGKILL)
    assert asyncio.run(held(folder)) == {"c90000"}


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose process went before Chroma had noted its second save: the files are new, in part."""
    folder = tmp_path_factory.mktemp("chroma") / "vector"

    async def fill() -> None:
        async with ChromaVectorStore(path=folder) as store:
            await store.upsert(records(0, 1000))
            await store.upsert(records(1000, 1900))
            await store.upsert(records(1900, 1990))
            undo = chroma_undo.Undo(folder, lambda size: None)
            undo.before(10)
            shutil.copytree(folder, folder.with_name("kept"))

    asyncio.run(fill())
    shutil.rmtree(folder)
    folder.with_name("kept").rename(folder)
    for path in folder.glob("*-*-*-*-*/*"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] + b"torn")
    return folder


@pytest.fixture
def folder(torn: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(torn, tmp_path / "vector")


def segment(folder: Path) -> Path:
    """The folder of its graph."""
    (found,) = folder.glob("*-*-*-*-*")
    return found


async def test_what_was_being_saved_is_taken_back(folder: Path) -> None:
    """The copy is put in the place of the torn files, and what came after it is there again."""
    assert await held(folder) == names(1990) | {"c90000"}
    assert not (folder / chroma_undo.FOLDER).exists()


async def test_killed_again_while_it_is_taken_back(folder: Path) -> None:
    """Files that are missing because the putting back was cut short are put back the next time."""
    (segment(folder) / "header.bin").unlink()
    (segment(folder) / "data_level0.bin").write_bytes(b"")
    assert await held(folder) == names(1990) | {"c90000"}


async def test_half_a_copy_is_not_put_back(folder: Path) -> None:
    """Killed while the files were copied, the process had not begun to change them."""
    (copy,) = (folder / chroma_undo.FOLDER).iterdir()
    shutil.copytree(copy, segment(folder), dirs_exist_ok=True)
    (copy / "data_level0.bin").write_bytes(b"half")
    copy.rename(copy.with_name("unfinished"))
    assert await held(folder) == names(1990) | {"c90000"}


def test_killed_while_it_closes(torn: Path, tmp_path: Path) -> None:
    """Half of a copy that was being thrown away is not put back: the folder was whole by then."""
    program = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
import chromadb.api.rust
from leadline.stores.chroma import ChromaVectorStore
async def main(folder, step):
    async with ChromaVectorStore(path=folder) as store:
        await store.count()
        real, seen = os.unlink, []
        def unlink(*args, **options):
            seen.append(args)
            if len(seen) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*args, **options)
        os.unlink = unlink
for step, folder in enumerate(sys.argv[1:], 1):
    if not (child := os.fork()):
        asyncio.run(main(Path(folder), step))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    folders = [shutil.copytree(torn, tmp_path / f"vector{step}") for step in range(1, 6)]
    command = [sys.executable, "-c", program, *map(str, folders)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(folders)
    for folder in folders:
        assert asyncio.run(held(folder)) == names(1990) | {"c90000"}


async def test_a_cancelled_opening_is_none(torn: Path, tmp_path: Path) -> None:
    """The folder doesn't count as open, so that what is killed later is taken back in the same process too."""
    folder = shutil.copytree(torn, tmp_path / "vector")
    opening = asyncio.create_task(EmbeddedChroma(folder, "default_tenant", "default_database").open())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    shutil.rmtree(folder)
    shutil.copytree(torn, folder)
    assert await held(folder) == names(1990) | {"c90000"}


async def test_a_save_that_came_to_its_end_is_kept(tmp_path: Path) -> None:
    """A copy from before a save that the database knows of is thrown away, not put back."""
    async with ChromaVectorStore(path=tmp_path / "one") as store:
        await store.upsert(records(0, 990))
        undo = chroma_undo.Undo(tmp_path / "one", lambda size: None)
        undo.before(10)
        kept = shutil.copytree(tmp_path / "one" / chroma_undo.FOLDER, tmp_path / "kept")
        await store.upsert(records(990, 1100))
        shutil.copytree(tmp_path / "one", tmp_path / "two", ignore=shutil.ignore_patterns(chroma_undo.FOLDER))
    shutil.copytree(kept, tmp_path / "two" / chroma_undo.FOLDER)
    assert await held(tmp_path / "two") == names(1100) | {"c90000"}


async def test_another_collection_is_opened_in_the_middle(tmp_path: Path) -> None:
    """Two stores of one process may share a folder: opening or closing one takes nothing back from the other."""
    async with ChromaVectorStore(path=tmp_path, collection="one") as one:
        await one.upsert(records(0, 990))
        chroma_undo.Undo(tmp_path, lambda size: None).before(10)  # as if it were about to save
        kept = [*(tmp_path / chroma_undo.FOLDER).iterdir()]
        (segment(tmp_path) / "length.bin").write_bytes(b"being written")
        async with ChromaVectorStore(path=tmp_path, collection="two") as two:
            assert await two.all_ids() == set()
            assert (segment(tmp_path) / "length.bin").read_bytes() == b"being written"
        assert len(kept) == 1
        assert [*(tmp_path / chroma_undo.FOLDER).iterdir()] == kept


async def test_no_copy_is_left_beside_an_open_folder(tmp_path: Path) -> None:
    """A copy is there only while a save may be under way: it takes as much room as the vectors."""
    copies = []
    async with ChromaVectorStore(path=tmp_path) as store:
        for start in range(0, 2200, 100):
            await store.upsert(records(start, start + 100))
            copies += [*(tmp_path / chroma_undo.FOLDER).glob("*")]
        with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as database:
            scopes = "SELECT max(seq_id) FROM max_seq_id JOIN segments ON id = segment_id WHERE scope = 'VECTOR'"
            assert database.execute(scopes).fetchone() == (2000,)  # it has saved twice
    assert copies == []
    assert not (tmp_path / chroma_undo.FOLDER).exists()


async def test_no_room_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the files can't be copied nothing is changed, and the error says why."""
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert(records(0, 990))

        with monkeypatch.context() as patch:
            patch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**25))
            with pytest.raises(StoreError, match="is full"):
                await store.delete([f"c{n}" for n in range(20)])
        assert await store.all_ids() == names(990)
        assert await store.delete([f"c{n}" for n in range(20)]) == 20
