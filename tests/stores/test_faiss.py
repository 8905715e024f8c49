"""FAISS: exact scores, one file that can be carried away, damage and other widths refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from leadline import load_settings, open_library
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.errors import ManifestMismatch, StoreDamaged, StoreError
from leadline.stores.base import ChunkRecord
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.faiss import FILE, FaissVectorStore


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
