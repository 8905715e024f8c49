"""Qdrant: scores, files and crashes of its embedded engine."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.errors import LeadlineError, ManifestMismatch, MissingExtra, StoreDamaged, StoreError
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.qdrant import QdrantVectorStore

WIDTH = 12


def records(count: int, width: int = WIDTH) -> list[ChunkRecord]:
    """Chunks with one vector each, the same ones every time."""
    vectors = np.random.default_rng(3).normal(size=(count, width)).astype(np.float32)
    return [ChunkRecord(f"c{n:05}", "d", vectors=(vector,), fields={"n": n}) for n, vector in enumerate(vectors)]


def files(folder: Path, name: str = "*") -> list[Path]:
    """The files of a name that have content."""
    return [path for path in folder.rglob(name) if path.is_file() and path.stat().st_size]


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of change of all files."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files(folder)}


def question(width: int = WIDTH) -> Vector:
    """A vector that is none of the stored ones."""
    return np.random.default_rng(4).normal(size=width).astype(np.float32)


async def test_every_metric_ranks_as_computed_by_hand(tmp_path: Path) -> None:
    """Higher is better in each: cosine, minus the squared distance, and the inner product."""
    stored, asked = records(60), question()
    matrix = np.array([record.vectors[0] for record in stored], dtype=float)
    expected = {
        "cosine": matrix @ asked / np.linalg.norm(matrix, axis=1) / np.linalg.norm(asked),
        "l2": -np.sum((matrix - asked) ** 2, axis=1),
        "ip": matrix @ asked,
    }
    for metric, scores in expected.items():
        async with QdrantVectorStore(path=tmp_path / metric, metric_type=metric) as store:  # type: ignore[arg-type]  # a str
            await store.upsert(stored)
            hits = await store.search(asked, k=7)
        assert [hit.chunk_id for hit in hits] == [stored[n].chunk_id for n in np.argsort(-scores)[:7]]
        assert np.allclose([hit.score for hit in hits], np.sort(-scores)[:7] * -1, rtol=1e-4)


async def test_best_of_several_vectors_counts(tmp_path: Path) -> None:
    """A chunk with a near and a far vector ranks by the near one, and is one hit."""
    near, far = question(), -question()
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert([ChunkRecord("far", "d", vectors=(far,)), ChunkRecord("both", "d", vectors=(far, near))])
        hits = await store.search(near, k=9)
        assert [hit.chunk_id for hit in hits] == ["both", "far"]
        assert hits[0].score == pytest.approx(1.0)
        assert await store.count() == 2


async def test_equal_chunks_beyond_the_cut_are_chosen_by_id(tmp_path: Path) -> None:
    """Which of many equal chunks are among the best k does not depend on the order they came in."""
    shared = question()
    names = [f"t{n:03}" for n in range(150)]
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert([ChunkRecord(name, "d", vectors=(shared,)) for name in reversed(names)])
        assert [hit.chunk_id for hit in await store.search(shared, k=5)] == names[:5]


async def test_huge_k_is_harmless(tmp_path: Path) -> None:
    """The engine isn't told to make room for a billion hits."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(3))
        assert len(await store.search(question(), k=10**9)) == 3


async def test_another_width_or_metric_is_refused_by_name(tmp_path: Path) -> None:
    """Also after a clear and a restart."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(2))
        await store.clear()
        with pytest.raises(StoreError, match="finite"):
            await store.search(np.full(WIDTH, np.nan, dtype=np.float32), k=1)
    async with QdrantVectorStore(path=tmp_path) as store:
        for call in (store.upsert(records(1, 5)), store.search(question(5), k=1), store.ensure_ready(5)):
            with pytest.raises(ManifestMismatch, match="width 12, not 5"):
                await call
    with pytest.raises(ManifestMismatch, match="by cosine, not by l2"):
        async with QdrantVectorStore(path=tmp_path, metric_type="l2"):
            pass
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(1))


async def test_clear_leaves_no_byte_of_the_old_content(tmp_path: Path) -> None:
    """Neither in the vectors' files nor in the engine's log."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert([ChunkRecord("a", "d", vectors=(question(),), fields={"file": "confidential.pdf"})])
        await store.clear()
        await store.upsert(records(1))
    assert not [path for path in files(tmp_path) if b"confidential" in path.read_bytes()]


async def test_cleared_halfway_is_cleared_or_not(tmp_path: Path) -> None:
    """After a crash in the midst of a clear, or of making a shard, the store opens; leftovers go."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(2))
    folder = tmp_path / "leadline"
    shutil.copytree(folder / "shard-1", folder / "shard-2.part")
    async with QdrantVectorStore(path=tmp_path) as store:
        assert await store.count() == 2
        await store.clear()
    assert [path.name for path in folder.iterdir()] == ["shard-2"]
    shutil.copytree(folder / "shard-2", folder / "shard-1")
    async with QdrantVectorStore(path=tmp_path) as store:
        assert await store.count() == 0
    assert [path.name for path in folder.iterdir()] == ["shard-2"]


async def test_a_copied_folder_is_a_copied_store(tmp_path: Path) -> None:
    """The folder can be moved anywhere: nothing in it names a path."""
    async with QdrantVectorStore(path=tmp_path / "here") as store:
        await store.upsert(records(5))
    shutil.move(tmp_path / "here", tmp_path / "there")
    async with QdrantVectorStore(path=tmp_path / "there") as store:
        assert len(await store.all_ids()) == 5
        assert (await store.search(records(5)[3].vectors[0], k=1))[0].chunk_id == "c00003"


async def test_full_disk_is_told_before_the_engine_meets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk would kill the process in the engine's mapped files: the write is refused and nothing is lost."""
    usage = shutil.disk_usage(tmp_path)
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(5))
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=30 * 2**20))
        with pytest.raises(StoreError, match="30 MiB are left"):
            await store.upsert(records(9))
        assert await store.delete(["c00004"]) == 1
        assert len(await store.search(question(), k=9)) == 4
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**20))
    with pytest.raises(StoreError, match="1 MiB are left"):
        await QdrantVectorStore(path=tmp_path).__aenter__()
    monkeypatch.undo()
    async with QdrantVectorStore(path=tmp_path) as store:
        assert await store.count() == 4


async def test_one_at_a_time_can_have_it_open(tmp_path: Path) -> None:
    """A second one is told so, in this process and in another one, and harms nothing."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(2))
        with pytest.raises(StoreError, match="open in another place"):
            async with QdrantVectorStore(path=tmp_path):
                pass
        assert await store.count() == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "gone"])
@pytest.mark.parametrize("name", ["mutable_id_tracker.mappings", "chunk_0.mmap", "status.dat", "page_0.dat", "open-1"])
async def test_damaged_file_is_refused_and_kept(name: str, damage: str, tmp_path: Path) -> None:
    """A file cut short or lost after the store was closed is an error that names it, and nothing is changed."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(40))
    file = files(tmp_path, name)[0]
    if damage == "gone":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size // 2 if damage == "cut" else 0)
    before = state(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=name):
            async with QdrantVectorStore(path=tmp_path):
                pass
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "content"),
    [("leadline.json", b"{"), ("leadline.json", b'{"backend": "qdrant", "format": 1}'), ("seal.json", b"[]")],
)
async def test_damaged_manifest_or_seal_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    """Our own small files are read with suspicion."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(4))
    files(tmp_path, name)[0].write_bytes(content)
    with pytest.raises(StoreDamaged, match=name):
        async with QdrantVectorStore(path=tmp_path):
            pass


@pytest.mark.parametrize("name", ["status.dat", "flags_a.dat", "segment.json"])
async def test_engine_that_panics_or_loses_vectors_is_damage(name: str, tmp_path: Path) -> None:
    """Without a seal (a killed process leaves none) what the engine itself stumbles over is StoreDamaged too, and the
    process lives."""
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(records(40))
    files(tmp_path, "seal.json")[0].unlink()
    file = files(tmp_path, name)[0]
    file.write_bytes(b"\xff" * file.stat().st_size if name == "flags_a.dat" else b"")
    with pytest.raises(StoreDamaged):
        async with QdrantVectorStore(path=tmp_path):
            pass


KILLED = """
import asyncio, sys
import numpy as np
from leadline.stores.base import ChunkRecord
from leadline.stores.qdrant import QdrantVectorStore

async def main(path):
    async with QdrantVectorStore(path=path) as store:
        for n in range(0, 1_000_000, 20):
            vectors = np.random.default_rng(n).normal(size=(20, 12)).astype(np.float32)
            await store.upsert([ChunkRecord(f"c{n + i}", "d", vectors=(vector,)) for i, vector in enumerate(vectors)])
            await store.delete([f"c{n}"])
            print(n + 20, flush=True)

asyncio.run(main(sys.argv[1]))
"""


async def test_killed_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """After kill -9 what was written is there, what was deleted is not, and the lock is free."""
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        while acknowledged < 400:
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    async with QdrantVectorStore(path=tmp_path) as store:
        ids = await store.all_ids()
        assert {f"c{n}" for n in range(acknowledged) if n % 20} <= ids
        assert not {f"c{n}" for n in range(0, acknowledged, 20)} & ids
        await store.upsert(records(1))
        assert len(await store.all_ids()) == len(ids) + 1


async def test_deleted_chunks_do_not_pile_up(tmp_path: Path) -> None:
    """A segment that is mostly deleted is written anew, and what is left is found."""
    stored = records(3000)
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert(stored)
        assert await store.delete([record.chunk_id for record in stored[10:]]) == 2990
        assert await store.count() == 10
        assert (await store.search(stored[7].vectors[0], k=1))[0].chunk_id == "c00007"
    (mappings,) = files(tmp_path, "mutable_id_tracker.mappings")
    assert mappings.stat().st_size < 3000


async def test_construction_touches_nothing(tmp_path: Path) -> None:
    """Neither does opening an empty store: only what is written makes a folder."""
    store = QdrantVectorStore(path=tmp_path / "new")
    with pytest.raises(LeadlineError, match="async with"):
        await store.ensure_ready(WIDTH)
    async with store:
        assert await store.all_ids() == set()
        assert await store.search(question(), k=3) == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("package", "options"), [("qdrant_edge", {"path": "x"}), ("qdrant_client", {"url": "http://127.0.0.1:1"})]
)
async def test_missing_package_names_the_extra(
    package: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the package of the way chosen is needed, and only on opening."""
    monkeypatch.setitem(sys.modules, package, None)
    store = QdrantVectorStore(**options)
    with pytest.raises(MissingExtra, match=r"leadline\[qdrant\]"):
        async with store:
            pass
