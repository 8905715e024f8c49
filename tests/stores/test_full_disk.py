"""A disk that is full, and a folder that can't be: an error that says so and what to do, and nothing lost."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.stores.engines import DIMENSION, ENGINES, opened, record

from leadline.errors import StoreError
from leadline.stores import open_vector_store
from leadline.stores.chroma import ChromaVectorStore

ROOT = Path(__file__).parents[2]
# No file may grow beyond a size: to a program that is what a full disk is, and it holds for root too.
LARGEST_FILE = 800_000
LARGEST_OF_CHROMA = 3_000_000  # it needs 1 MiB more than it fills
WRITER = """
import asyncio, json, resource, sys
from pathlib import Path
import numpy as np
from leadline.errors import StoreDamaged, StoreError
from leadline.stores.base import ChunkRecord
from tests.stores.engines import DIMENSION, ENGINES, opened

def some(start):
    vectors = np.random.default_rng(start).normal(size=(200, DIMENSION)).astype(np.float32)
    return [ChunkRecord(f"c{start + n}", "d", f"rain {start + n}", (vectors[n],)) for n in range(200)]

async def main(name, folder, limit):
    async with opened(ENGINES[name], Path(folder), ENGINES[name].options) as backend:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
        stored, error = 0, None
        while error is None and stored < 100_000:
            try:
                await backend.store.upsert(some(stored))
                stored += 200
            except StoreDamaged:
                raise
            except StoreError as caught:
                error = str(caught)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await backend.store.upsert(some(100_000))
        print(json.dumps([stored, error]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["chroma", "faiss", "faiss-hnsw", "rank-bm25"])
async def test_full_disk_loses_nothing(name: str, tmp_path: Path) -> None:
    """A write that doesn't fit is an error that speaks of the disk, not of damage. Once there is room the same store
    goes on, and all that was acknowledged before and after is there."""
    largest = LARGEST_OF_CHROMA if name == "chroma" else LARGEST_FILE
    arguments = [sys.executable, "-c", WRITER, name, str(tmp_path), str(largest)]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: ASYNC221 - alone
    assert done.returncode == 0, done.stderr
    stored, error = json.loads(done.stdout.splitlines()[-1])
    assert stored > 0
    assert "disk" in error
    assert re.search(r"Nothing of what it h(eld|olds) is lost", error)
    async with opened(ENGINES[name], tmp_path, ENGINES[name].options) as backend:
        expected = {f"c{n}" for start in (0, 100_000) for n in range(start, start + (200 if start else stored))}
        assert expected <= await backend.store.all_ids()
        await backend.store.upsert([record("new", "Wombat")])
        assert await backend.find_ids("Wombat") == ["new"]


@pytest.mark.parametrize("name", ["faiss", "faiss-hnsw", "rank-bm25"])
async def test_folder_that_cannot_be_made(name: str, tmp_path: Path) -> None:
    """A place where nobody can write is an error that names it and says what to do."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"file/x.*another data folder"):
        async with opened(ENGINES[name], tmp_path / "file" / "x", ENGINES[name].options):
            pass
    with pytest.raises(StoreError, match=r"file/x.*another data folder"):
        async with ChromaVectorStore(path=tmp_path / "file" / "x"):
            pass


async def test_chroma_is_kept_from_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chroma may hang on a full disk, so with little room left nothing is written; what is there can be read."""
    async with ChromaVectorStore(path=tmp_path / "a") as store:
        await store.upsert([record("a")])
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
        with pytest.raises(StoreError, match=r"full: 1 MiB.*Make room"):
            await store.upsert([record("b")])
        assert await store.all_ids() == {"a"}
        assert await store.delete(["a"]) == 1
    with pytest.raises(StoreError, match="Make room"):
        async with open_vector_store("chroma", path=tmp_path / "b") as other:
            await other.ensure_ready(DIMENSION)
