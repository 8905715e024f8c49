"""FAISS: exact scores, one file that can be carried away, a graph that is never behind, damage and widths refused."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline import load_settings, open_library
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.errors import ManifestMismatch, StoreDamaged, StoreError
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.faiss import FILE, FaissVectorStore
from leadline.stores.faiss_index import VectorIndex

Vectors = NDArray[np.float32]


def records(count: int, width: int = 12) -> list[ChunkRecord]:
    """Chunks with one vector each, the same ones every time."""
    vectors = np.random.default_rng(3).normal(size=(count, width)).astype(np.float32)
    return [ChunkRecord(f"c{n:03}", "d", vectors=(vector,), fields={"n": n}) for n, vector in enumerate(vectors)]


async def test_search_is_exact_and_agrees_with_chroma(tmp_path: Path) -> None:
    """The order is that of the cosines computed by hand, and Chroma's, whatever the lengths of the vectors."""
    stored = records(200)
    question = np.random.default_rng(4).normal(size=12).astype(np.float32) * 7
    matrix = np.array([r.vectors[0] for r in stored])
    cosines = matrix @ question / np.linalg.norm(matrix, axis=1) / np.linalg.norm(question)
    async with FaissVectorStore(path=tmp_path / "f") as store, ChromaVectorStore(path=tmp_path / "c") as other:
        await store.upsert(stored)
        await other.upsert(stored)
        hits = await store.search(question, k=10)
        others = await other.search(question, k=10)
    assert [h.chunk_id for h in hits] == [f"c{n:03}" for n in np.argsort(-cosines)[:10]]
    assert [h.chunk_id for h in hits] == [h.chunk_id for h in others]
    assert np.allclose([h.score for h in hits], np.sort(-cosines)[:10] * -1, atol=1e-5)


async def test_a_copied_folder_is_a_copied_store(tmp_path: Path) -> None:
    """The folder can be moved anywhere: nothing in it names a path, and nothing of it is a pickle."""
    async with FaissVectorStore(path=tmp_path / "here") as store:
        await store.upsert(records(5))
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    shutil.rmtree(tmp_path / "here")
    async with FaissVectorStore(path=tmp_path / "there") as store:
        assert await store.all_ids() == {f"c{n:03}" for n in range(5)}
        assert (await store.search(records(5)[3].vectors[0], k=1))[0].chunk_id == "c003"
        assert await store.delete(["c003"]) == 1
        assert "c003" not in [hit.chunk_id for hit in await store.search(records(5)[3].vectors[0], k=9)]


async def test_another_width_is_refused_by_name(tmp_path: Path) -> None:
    """Vectors of another model are refused with a message, in upsert, in search and after a restart; clear keeps it."""
    async with FaissVectorStore(path=tmp_path) as store:
        await store.upsert(records(2))
        await store.clear()
    async with FaissVectorStore(path=tmp_path) as store:
        with pytest.raises(ManifestMismatch, match="12 wide, not 5"):
            await store.upsert(records(1, 5))
        with pytest.raises(ManifestMismatch, match="12 wide, not 5"):
            await store.search(np.ones(5, dtype=np.float32), k=1)
        await store.upsert(records(1))
        with pytest.raises(StoreError, match="finite"):
            await store.search(np.full(12, np.nan, dtype=np.float32), k=1)


async def test_a_damaged_file_is_refused_and_kept(tmp_path: Path) -> None:
    """What can't be read is an error that names it, and stays as it is."""
    async with FaissVectorStore(path=tmp_path) as store:
        await store.upsert(records(5))
    (tmp_path / FILE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreDamaged, match=FILE):
        async with FaissVectorStore(path=tmp_path):
            pass
    assert (tmp_path / FILE).read_bytes().startswith(b"not a database")


@pytest.mark.parametrize("index_type", ["flat", "hnsw"])
@pytest.mark.parametrize(("metric", "scores"), [("l2", [0, -1, -2]), ("ip", [3, 2, 0])])
async def test_other_metrics_rise_too(metric: Any, scores: list[float], index_type: Any, tmp_path: Path) -> None:
    """Minus the squared distance, or the inner product; the metric belongs to the store, another one is refused."""
    x, y = np.eye(2, dtype=np.float32)
    vectors = {"l2": [x, 2 * x, x + np.sqrt(2, dtype=np.float32) * y], "ip": [3 * x, 2 * x, y]}[metric]
    async with FaissVectorStore(path=tmp_path, metric_type=metric, index_type=index_type) as store:
        await store.upsert([ChunkRecord(f"c{n}", "d", vectors=(vector,)) for n, vector in enumerate(vectors)])
        hits = await store.search(x, k=3)
    assert [hit.chunk_id for hit in hits] == ["c0", "c1", "c2"]
    assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-5)
    with pytest.raises(ManifestMismatch, match="cosine"):
        async with FaissVectorStore(path=tmp_path):
            pass


def clustered(count: int, width: int = 48) -> Vectors:
    """Unit vectors around some centres, as those of texts are."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(40, width))
    vectors = (centres[random.integers(0, 40, count)] + 0.5 * random.normal(size=(count, width))).astype(np.float32)
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def chunks(vectors: Vectors, start: int = 0) -> list[ChunkRecord]:
    """A chunk for each vector, in ten groups."""
    return [
        ChunkRecord(f"c{start + n}", "d", vectors=(vector,), fields={"group": n % 10})
        for n, vector in enumerate(vectors)
    ]


async def nearest(store: FaissVectorStore, question: Vector, where: Any = None) -> list[str]:
    """The ten nearest."""
    return [hit.chunk_id for hit in await store.search(question, k=10, where=where)]


async def test_graph_finds_the_nearest_and_nothing_deleted(tmp_path: Path) -> None:
    """Of the ten nearest at least 95 % are found, filtered or not, also after a third is deleted and after a restart;
    what is deleted is in no answer."""
    vectors = clustered(4000)
    gone = {f"c{n}" for n in range(0, 4000, 3)}
    async with FaissVectorStore(path=tmp_path, index_type="hnsw") as store:
        await store.upsert(chunks(vectors))
        assert await recall(store, vectors, set()) > 0.95
        await store.delete(sorted(gone)[:500])
        assert await recall(store, vectors, set(sorted(gone)[:500])) > 0.95
        await store.delete(sorted(gone))
        assert await recall(store, vectors, gone) > 0.95
    async with FaissVectorStore(path=tmp_path, index_type="hnsw") as store:
        assert await recall(store, vectors, gone) > 0.95


async def recall(store: FaissVectorStore, vectors: Vectors, gone: set[str]) -> float:
    """The share of the ten nearest that is found, over some questions with and without a filter."""
    found = wanted = 0
    for question in vectors[:30] + 0.05:
        order = [n for n in np.argsort(-(vectors @ question)) if f"c{n}" not in gone]
        for where, exact in ((None, order[:10]), ({"group": 3}, [n for n in order if n % 10 == 3][:10])):
            ids = set(await nearest(store, question, where))
            assert not ids & gone
            found += len(ids & {f"c{n}" for n in exact})
            wanted += 10
    return found / wanted


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [_cut, _flip, Path.unlink])
async def test_bad_saved_graph_is_made_again(harm: Callable[[Path], None], tmp_path: Path) -> None:
    """A saved graph that is cut short, changed or missing is not read: it is made of the vectors, and saved again."""
    vectors = clustered(2500)
    async with FaissVectorStore(path=tmp_path, index_type="hnsw") as store:
        await store.upsert(chunks(vectors))
        await store.delete(["c7"])
        expected = await nearest(store, vectors[7])
    (saved,) = tmp_path.glob("hnsw-*.faiss")  # noqa: ASYNC240 - a test
    harm(saved)
    async with FaissVectorStore(path=tmp_path, index_type="hnsw") as store:
        assert await nearest(store, vectors[7]) == expected
        await store.upsert(chunks(vectors[:200], 9000))
    assert len(list(tmp_path.glob("hnsw-*.faiss"))) == 1  # noqa: ASYNC240 - a test


async def test_saved_graph_of_another_time_is_not_believed(tmp_path: Path) -> None:
    """Vectors put back from a copy beside a newer graph, and a graph put back beside newer vectors: neither a deleted
    chunk nor a wrong one comes back."""
    vectors = clustered(2100)
    now, before = tmp_path / "now", tmp_path / "before"
    async with FaissVectorStore(path=now, index_type="hnsw") as store:
        await store.upsert(chunks(vectors))
    shutil.copytree(now, before)
    async with FaissVectorStore(path=now, index_type="hnsw") as store:
        await store.delete([f"c{n}" for n in range(1000)])
        await store.upsert(chunks(-vectors[:1100], 5000))
    (old,), (new,) = before.glob("hnsw-*"), now.glob("hnsw-*")
    assert old.name != new.name
    old_graph, new_graph = old.read_bytes(), new.read_bytes()
    new.write_bytes(old_graph)
    old.write_bytes(new_graph)
    async with FaissVectorStore(path=before, index_type="hnsw") as store:
        assert (await nearest(store, vectors[7]))[0] == "c7"
        assert (await nearest(store, -vectors[7]))[0] != "c5007"
    async with FaissVectorStore(path=now, index_type="hnsw") as store:
        assert "c7" not in await nearest(store, vectors[7])
        assert (await nearest(store, -vectors[7]))[0] == "c5007"


async def test_saved_graph_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a store reads its graph, also from a copied folder; only what came after it was saved is added."""
    vectors = clustered(3000)
    async with FaissVectorStore(path=tmp_path / "a", index_type="hnsw") as store:
        await store.upsert(chunks(vectors))
        await store.upsert(chunks(vectors[:50], 8000))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    added: list[int] = []
    add = VectorIndex.add
    monkeypatch.setattr(VectorIndex, "add", lambda self, rows: (added.append(len(rows)), add(self, rows)))
    async with FaissVectorStore(path=tmp_path / "b", index_type="hnsw") as store:
        assert {"c3", "c8003"} <= set(await nearest(store, vectors[3]))
    assert added == [50]


async def test_kind_of_index_can_be_changed(tmp_path: Path) -> None:
    """From exact to graph and back: the vectors stay, and what is written under one is found under the other."""
    vectors = clustered(2500)
    for start, index_type in enumerate(["flat", "hnsw", "flat", "hnsw"]):
        async with FaissVectorStore(path=tmp_path, index_type=index_type) as store:  # type: ignore[arg-type]  # a literal
            await store.upsert(chunks(vectors[: 600 * (start + 1)], 10_000 * start))
            assert {f"c{10_000 * n + 9}" for n in range(start + 1)} <= set(await nearest(store, vectors[9]))


WRITER = """
import asyncio, sys
import numpy as np
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.faiss import FaissVectorStore

async def main():
    async with FaissVectorStore(path=sys.argv[1], index_type=sys.argv[2]) as store:
        vectors = np.random.default_rng(9).normal(size=(1500, 48)).astype(np.float32)
        await store.upsert([ChunkRecord(f"w{n}", "d", vectors=(vector,)) for n, vector in enumerate(vectors)])
        await store.delete(["c7"])

asyncio.run(main())
"""


@pytest.mark.parametrize("index_type", ["flat", "hnsw"])
async def test_another_process_is_noticed(index_type: Any, tmp_path: Path) -> None:
    """What another process commits is in the next search, its deletions too."""
    vectors = clustered(2200)
    async with FaissVectorStore(path=tmp_path, index_type=index_type) as store:
        await store.upsert(chunks(vectors))
        assert (await nearest(store, vectors[7]))[0] == "c7"
        command = [sys.executable, "-c", WRITER, str(tmp_path), index_type]
        await asyncio.to_thread(subprocess.run, command, check=True)
        theirs = np.random.default_rng(9).normal(size=(1500, 48)).astype(np.float32)
        assert (await nearest(store, theirs[3]))[0] == "w3"
        assert "c7" not in await nearest(store, vectors[7])
        await store.upsert(chunks(vectors[:1], 7000))
        assert set(await nearest(store, vectors[0])) >= {"c0", "c7000"}
        assert await store.count() == 2200 + 1500


async def test_the_whole_knowledge_base_runs_on_it(tmp_path: Path) -> None:
    """Chosen by a setting, it takes documents in and finds them; another backend on the same folder is refused."""
    text = "The vault code is 7719."
    draft = SourceDraft("v.md", "v.md", "0" * 64, (ChunkDraft(text, 0, len(text)),))
    async with open_library(load_settings(data_dir=tmp_path, vector_backend="faiss")) as library:
        base = await library.collection(create=True)
        await base.put([draft])
        (found,) = await base.retrievers()["vector"].search("vault code", k=3)
        assert found["content"] == text
        assert (await base.verify()).ok
    async with open_library(load_settings(data_dir=tmp_path, vector_backend="chroma")) as library:
        with pytest.raises(ManifestMismatch, match="LEADLINE_VECTOR_BACKEND"):
            await library.collection()
