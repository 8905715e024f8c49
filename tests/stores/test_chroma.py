"""What is Chroma's own: scores, several vectors a chunk, widths and metrics, what it is given, damaged folders."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings

from leadline.errors import ManifestMismatch, StoreDamaged, StoreError
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.chroma import ChromaVectorStore

X: Vector = np.array([1, 0, 0, 0], dtype=np.float32)
Y: Vector = np.array([0, 1, 0, 0], dtype=np.float32)


def chunk(chunk_id: str, *vectors: Vector, **fields: int) -> ChunkRecord:
    """A chunk of vectors, with a text that must not go anywhere."""
    return ChunkRecord(chunk_id, "d", text="SECRETTEXT", vectors=vectors, fields=fields)


async def test_score_is_the_cosine(tmp_path: Path) -> None:
    """1 for the same direction, 0 for a right angle, -1 for the opposite one, whatever the lengths."""
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk("same", 7 * X), chunk("right", Y), chunk("opposite", -X)])
        hits = await store.search(3 * X, k=3)
    assert [(hit.chunk_id, hit.rank) for hit in hits] == [("same", 0), ("right", 1), ("opposite", 2)]
    assert [hit.score for hit in hits] == pytest.approx([1, 0, -1], abs=1e-6)


@pytest.mark.parametrize(("metric", "scores"), [("l2", [0, -1, -2]), ("ip", [2, 1, 0])])
async def test_other_metrics_rise_too(metric: str, scores: list[float], tmp_path: Path) -> None:
    """Minus the squared distance, or the inner product: the best hit has the highest score."""
    vectors = {"l2": [X, 2 * X, X + Y + 0 * X], "ip": [2 * X, X, Y]}[metric]
    if metric == "l2":
        vectors = [X, 2 * X, X + np.sqrt(2, dtype=np.float32) * Y]
    async with ChromaVectorStore(path=tmp_path, metric_type=metric) as store:  # type: ignore[arg-type]  # parametrised
        await store.upsert([chunk(f"c{n}", vector) for n, vector in enumerate(vectors)])
        hits = await store.search(X, k=3)
    assert [hit.chunk_id for hit in hits] == ["c0", "c1", "c2"]
    assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
async def test_equal_vectors_are_all_found(metric: str, tmp_path: Path) -> None:
    """However few of them a filter lets through, also after others were deleted: a graph may not lead to them."""
    async with ChromaVectorStore(path=tmp_path, metric_type=metric) as store:  # type: ignore[arg-type]  # parametrised
        await store.upsert([chunk(f"old{n}", X, place=n) for n in range(400)])
        await store.delete([f"old{n}" for n in range(400)])
        await store.upsert([chunk(f"c{n}", X, place=n) for n in range(1500)])
        for n in range(0, 1500, 50):
            hits = await store.search(X + Y, k=20, where={"place": {"$in": [n, n + 1]}})
            assert [hit.chunk_id for hit in hits] == [f"c{n}", f"c{n + 1}"]
            expected = {"cosine": np.sqrt(0.5), "l2": -1, "ip": 1}[metric]
            assert [hit.score for hit in hits] == pytest.approx([expected, expected], abs=1e-5)


async def test_best_vector_of_a_chunk_counts(tmp_path: Path) -> None:
    """A chunk of several vectors is one hit, and is counted, replaced and deleted as one."""
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk("many", X, Y, X + Y), *(chunk(f"c{n}", X + 0.1 * n * Y) for n in range(1, 6))])
        assert await store.count() == 6
        assert [hit.chunk_id for hit in await store.search(X, k=6)] == ["many", "c1", "c2", "c3", "c4", "c5"]
        assert (await store.search(Y, k=1))[0].score == pytest.approx(1)
        await store.upsert([chunk("many", -X)])
        assert await store.count() == 6
        assert (await store.search(Y, k=1))[0].chunk_id == "c5"
        await store.upsert([chunk("many", X, Y)])
        assert await store.delete(["many"]) == 1
        assert await store.all_ids() == {f"c{n}" for n in range(1, 6)}


@pytest.mark.parametrize("bad", [[0, 0, 0, 0], [np.nan, 1, 0, 0], [np.inf, 0, 0, 0]])
async def test_unusable_vectors_are_refused_and_counted(bad: list[float], tmp_path: Path) -> None:
    """Nothing of such a chunk is kept, not even what was stored before; the others go in."""
    vector = np.array(bad, dtype=np.float32)
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk("a", X), chunk("b", X)])
        assert await store.upsert([chunk("a", vector), chunk("n", X, vector), chunk("none"), chunk("c", Y)]) == 3
        assert await store.all_ids() == {"b", "c"}


async def test_other_width_is_refused(tmp_path: Path) -> None:
    """Vectors of another model's width are an error in every call, also after a restart."""
    wide = np.ones(5, dtype=np.float32)
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.ensure_ready(4)
        with pytest.raises(ManifestMismatch, match="width 4, not 5"):
            await store.upsert([chunk("a", wide)])
    async with ChromaVectorStore(path=tmp_path) as store:
        with pytest.raises(ManifestMismatch, match="another collection"):
            await store.ensure_ready(5)
        with pytest.raises(ManifestMismatch, match="another embedding model"):
            await store.search(wide, k=1)
        with pytest.raises(StoreError, match="width"):
            await store.ensure_ready()


async def test_other_metric_is_refused(tmp_path: Path) -> None:
    """Chroma itself would go on with the old metric without a word."""
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.ensure_ready(4)
    with pytest.raises(ManifestMismatch, match="by cosine, not by l2"):
        async with ChromaVectorStore(path=tmp_path, metric_type="l2"):
            pass


@pytest.mark.parametrize("filled", [True, False])
async def test_collection_of_another_program(filled: bool, tmp_path: Path) -> None:
    """One that doesn't say its width is known by a vector in it; an empty one takes any width, once."""
    client = chromadb.PersistentClient(str(tmp_path), Settings(anonymized_telemetry=False))
    other = client.create_collection("theirs", embedding_function=None, configuration={"hnsw": {"space": "cosine"}})
    if filled:
        other.upsert(ids=["a"], embeddings=[[1.0, 0.0, 0.0, 0.0]])
    client.close()  # type: ignore[attr-defined]  # the client has it, the interface it is typed as hasn't
    async with ChromaVectorStore(path=tmp_path, collection="theirs") as store:
        await store.upsert([chunk("b", X)])
        assert await store.all_ids() == ({"a", "b"} if filled else {"b"})
        with pytest.raises(ManifestMismatch, match="width 4, not 5"):
            await store.ensure_ready(5)


async def test_clear_keeps_metric_and_width(tmp_path: Path) -> None:
    """After clear the store still is what it was made to be."""
    async with ChromaVectorStore(path=tmp_path, metric_type="ip") as store:
        await store.upsert([chunk("a", X)])
        await store.clear()
        with pytest.raises(ManifestMismatch):
            await store.upsert([chunk("a", np.ones(5, dtype=np.float32))])
    async with ChromaVectorStore(path=tmp_path, metric_type="ip") as store:
        assert await store.stats() == {"backend": "chroma", "metric": "ip", "count": 0, "dimension": 4}


async def test_construction_does_nothing(tmp_path: Path) -> None:
    """Making a store touches no disk; using it unopened is an error; opening it makes no collection."""
    store = ChromaVectorStore(path=tmp_path / "x")
    assert list(tmp_path.glob("*")) == []  # noqa: ASYNC240 - a test
    with pytest.raises(StoreError, match="async with"):
        await store.ensure_ready(4)
    async with store:
        assert await store.search(X, k=3) == []
        assert await store.all_ids() == set()
        assert await store.existing_ids(["a"]) == set()
        assert await store.delete(["a"]) == 0


def test_importing_the_store_imports_no_client() -> None:
    """The client library is loaded when a store is opened, not before."""
    code = "import leadline.stores.chroma, leadline.stores.tantivy, leadline.stores.rank_bm25, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"chromadb", "tantivy", "rank_bm25", "networkx", "sqlalchemy"}.isdisjoint(loaded)


async def test_no_text_in_the_folder(tmp_path: Path) -> None:
    """Ids, vectors and fields only."""
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk("a", X, page=1)])
    with sqlite3.connect(tmp_path / "chroma.sqlite3") as database:
        assert "SECRETTEXT" not in "".join(database.iterdump())


async def test_nearest_are_found_exactly(tmp_path: Path) -> None:
    """On clustered vectors the ten nearest are the ten nearest, filtered or not."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(40, 48))
    vectors = (centres[random.integers(0, 40, 3000)] + 0.5 * random.normal(size=(3000, 48))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = wanted = 0
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk(f"c{n}", vector, group=n % 10) for n, vector in enumerate(vectors)])
        for query in vectors[:20] + 0.05:
            for group in (None, 3):
                rows = range(3000) if group is None else range(group, 3000, 10)
                exact = sorted(rows, key=lambda n: -float(vectors[n] @ query))[:10]
                where = None if group is None else {"group": group}
                hits = await store.search(query, k=10, where=where)
                found += len({hit.chunk_id for hit in hits} & {f"c{n}" for n in exact})
                wanted += 10
    assert found / wanted > 0.995


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _junk(path: Path) -> None:
    path.write_bytes(b"no database " * 50)


@pytest.mark.parametrize("harm", [_cut, _junk, Path.unlink])
@pytest.mark.parametrize("name", ["chroma.sqlite3", "header.bin", "data_level0.bin", "index_metadata.pickle"])
async def test_damaged_folder_is_refused_and_kept(name: str, harm: Callable[[Path], None], tmp_path: Path) -> None:
    """A file that is cut short, replaced or missing is an error that says what to do, never an empty store."""
    random = np.random.default_rng(0).normal(size=(1500, 4)).astype(np.float32)
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk(f"c{n}", vector) for n, vector in enumerate(random)])
        await store.search(X, k=1)
    (path,) = tmp_path.rglob(name)  # noqa: ASYNC240 - a test
    harm(path)
    harmed = path.exists() and path.read_bytes()
    with pytest.raises(StoreDamaged, match="verify --repair"):
        async with ChromaVectorStore(path=tmp_path) as store:
            await store.search(X, k=1)
    assert (path.exists() and path.read_bytes()) == harmed


def _same_size(path: Path) -> None:
    path.write_bytes(np.random.default_rng(3).bytes(path.stat().st_size))


@pytest.mark.parametrize("name", ["data_level0.bin", "link_lists.bin"])
async def test_links_that_lead_nowhere_are_found_before_they_are_followed(name: str, tmp_path: Path) -> None:
    """Files of the right size with other bytes in them: following them would end the process."""
    random = np.random.default_rng(0).normal(size=(1500, 4)).astype(np.float32)
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk(f"c{n}", vector) for n, vector in enumerate(random)])
    (path,) = tmp_path.rglob(name)  # noqa: ASYNC240 - a test
    _same_size(path)
    with pytest.raises(StoreDamaged, match="verify --repair"):
        async with ChromaVectorStore(path=tmp_path):
            pass


async def test_a_segment_that_is_gone_is_missed(tmp_path: Path) -> None:
    """The database still counts and lists its vectors: without a look the store would seem whole and find nothing."""
    random = np.random.default_rng(0).normal(size=(1500, 4)).astype(np.float32)
    async with ChromaVectorStore(path=tmp_path) as store:
        await store.upsert([chunk(f"c{n}", vector) for n, vector in enumerate(random)])
    (header,) = tmp_path.rglob("header.bin")  # noqa: ASYNC240 - a test
    shutil.rmtree(header.parent)
    with pytest.raises(StoreDamaged, match="verify --repair"):
        async with ChromaVectorStore(path=tmp_path):
            pass


async def test_a_graph_that_was_changed_and_saved_often_is_whole(tmp_path: Path) -> None:
    """Replacements and deletions between saves leave a graph that is taken for what it is."""
    random = np.random.default_rng(1).normal(size=(2600, 4)).astype(np.float32)
    for turn in range(3):
        async with ChromaVectorStore(path=tmp_path) as store:
            await store.upsert([chunk(f"c{n}", random[n + turn]) for n in range(0, 2500, turn + 1)])
            await store.delete([f"c{n}" for n in range(turn, 2500, 7)])
    async with ChromaVectorStore(path=tmp_path) as store:
        assert len(await store.search(X, k=100)) == 100
        await store.delete(sorted(await store.all_ids()))
    async with ChromaVectorStore(path=tmp_path) as store:
        assert await store.search(X, k=1) == []
        await store.upsert([chunk("new", X)])
    async with ChromaVectorStore(path=tmp_path) as store:
        assert [hit.chunk_id for hit in await store.search(X, k=5)] == ["new"]
