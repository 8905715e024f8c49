"""Chroma doesn't notice when the system writes only a part of what it saves, and may hang where its database can't
grow, as where a quota is full. So it isn't let near that."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from chromadb.errors import InternalError
from tests.stores.test_chroma_killed import ROOT, held, names, records, segment

from leadline.errors import StoreError
from leadline.stores import chroma_links, chroma_undo, room
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.chroma_embedded import EmbeddedChroma

WRITER = """
import asyncio, json, os, resource, signal, sys
from pathlib import Path
from leadline.errors import StoreError
from leadline.stores.chroma import ChromaVectorStore
from tests.stores.test_chroma_killed import records

async def main(folder, before, limit, end):
    async with ChromaVectorStore(path=folder) as store:
        for start in range(0, before, 500):
            await store.upsert(records(start, min(start + 500, before)))
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        error = None
        try:
            await store.upsert(records(before, before + 20))
        except StoreError as caught:
            error = str(caught)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        print(json.dumps(error), flush=True)
        if end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if end == "written on":
            for start in range(before, before + 1500, 500):
                await store.upsert(records(start, start + 500))

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
"""


# The first save; a later one whose graph doesn't fit; its copy; the database.
@pytest.mark.parametrize(
    ("before", "limit", "end"),
    [
        (990, 1_400_000, "closed"),
        (1990, 3_300_000, "written on"),
        (1990, 3_300_000, "killed"),
        (1990, 1_600_000, "closed"),
        (1700, 2_760_000, "written on"),
    ],
)
def test_no_limit_of_a_file_loses_anything(before: int, limit: int, end: str, tmp_path: Path) -> None:
    """An error that speaks of the disk, and all that was there before is there, without a repair, and can be added to:
    by the same process, and by the next one."""
    folder = tmp_path / "vector"
    command = [sys.executable, "-c", WRITER, str(folder), str(before), str(limit), end]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) == (end != "killed"), done.stderr
    error = json.loads(done.stdout.splitlines()[0])
    assert "disk" in error
    assert "no file may grow" in error
    expected = names(before + (1500 if end == "written on" else 0)) | {"c90000"}
    assert asyncio.run(held(folder)) == expected
    assert not (folder / chroma_undo.FOLDER).exists()


@pytest.mark.parametrize("name", chroma_links.FILES)
async def test_a_save_that_was_cut_short_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk fills up in that very moment the write is no success, whichever file lost its end; a later save of
    the same process writes all of it."""
    folder = tmp_path / "vector"
    real = chroma_undo.Undo.after

    def cut_short(undo: chroma_undo.Undo) -> None:
        path = segment(folder) / name
        path.write_bytes(path.read_bytes()[:-1])
        real(undo)

    async with ChromaVectorStore(path=folder) as store:
        await store.upsert(records(0, 990))
        with monkeypatch.context() as patch:
            patch.setattr(chroma_undo.Undo, "after", cut_short)
            with pytest.raises(StoreError, match=r"didn't take all.*memory of this process"):
                await store.upsert(records(990, 1010))
        assert not chroma_links.is_whole(segment(folder))
        for start in range(1010, 2510, 500):
            await store.upsert(records(start, start + 500))
    assert await held(folder) == names(2510) | {"c90000"}


async def test_after_a_failed_write_no_other_is_taken(tmp_path: Path) -> None:
    """Chroma may acknowledge the next write and lose it, so it is refused; opened anew the folder takes writes."""
    said = ["error returned from database: (code: 778) disk I/O error", "", ""]

    def upsert(**_: object) -> None:
        if said:
            raise InternalError(said.pop(0))

    client = EmbeddedChroma(tmp_path, "default_tenant", "default_database")
    await client.open()
    with pytest.raises(StoreError, match="disk I/O error"):
        await client.call(upsert, ids=["a"])
    with pytest.raises(StoreError, match=r"until it is opened anew.*Make room"):
        await client.call(upsert, ids=["b"])
    assert len(said) == 2  # Chroma was not asked
    await client.close()
    assert await held(tmp_path) == {"c90000"}


def test_what_a_disk_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room that is free but not granted, as by a quota, is not there. What was tried leaves nothing behind."""
    assert room.lacking(tmp_path, 10_000_000) is None
    assert room.lacking(tmp_path, 2**60) is not None
    refused = OSError(122, "Disk quota exceeded")

    def allocate(*_: int) -> None:
        raise refused

    monkeypatch.setattr("os.posix_fallocate", allocate)
    assert room.lacking(tmp_path, 10_000_000) == "Disk quota exceeded"
    assert [*tmp_path.iterdir()] == []
