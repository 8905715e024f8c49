"""What every index promises, run against each backend's real engine (`ENGINES` in `engines.py`)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stores.engines import DIMENSION, ENGINES, HERE, Backend, OpenAt, Opener, record, vector_of

from leadline.analysis import Analyzer
from leadline.errors import ConfigError, InvalidFilter, ManifestMismatch, StoreError
from leadline.stores.base import ChunkRecord
from leadline.stores.faiss import FaissVectorStore
from leadline.stores.milvus import MilvusVectorStore
from leadline.stores.opensearch import OpenSearchVectorStore
from leadline.stores.qdrant import QdrantVectorStore
from leadline.stores.rank_bm25 import RankBM25Store
from leadline.stores.tantivy import TantivyStore

# One more than Chroma 1.5.9 takes at once.
BEYOND_BATCH = 5462


@pytest.mark.parametrize("name", [name for name in ENGINES if name not in HERE])
def test_an_engine_that_is_not_here_is_named(name: str, request: pytest.FixtureRequest) -> None:
    """Skipped for each, saying how to start it: this suite then runs on it."""
    request.getfixturevalue(str(ENGINES[name].server))


class TestEnsureReady:
    """ensure_ready creates or validates."""

    async def test_can_be_repeated(self, backend: Backend) -> None:
        """It creates once and validates after."""
        await backend.store.upsert([record("a")])
        await backend.store.ensure_ready(DIMENSION)
        assert await backend.store.count() == 1

    async def test_another_width_is_refused(self, vectors: Backend) -> None:
        """An index that was made for vectors of one width takes and answers no others, and nothing is lost."""
        await vectors.store.upsert([record("a")])
        with pytest.raises(ManifestMismatch):
            await vectors.store.ensure_ready(DIMENSION + 1)
        with pytest.raises(ManifestMismatch):
            await vectors.store.search(np.ones(DIMENSION + 1, dtype=np.float32), k=1)
        assert await vectors.find_ids("Quokka") == ["a"]


class TestUpsert:
    """upsert inserts or replaces by chunk id."""

    async def test_stores_each_record_once(self, backend: Backend) -> None:
        """The same records given twice are there once."""
        records = [record("a"), record("b", "Numbat")]
        assert await backend.store.upsert(records) == 0
        assert await backend.store.upsert(records) == 0
        assert await backend.store.all_ids() == {"a", "b"}
        assert await backend.find_ids("Quokka") == ["a"]

    async def test_replaces_all_of_the_old_record(self, backend: Backend) -> None:
        """Of a replaced chunk neither content nor fields can be found any more."""
        await backend.store.upsert([record("a", "Quokka", old=1), record("b", "Numbat")])
        await backend.store.upsert([record("a", "Wombat", new=1)])
        assert await backend.find_ids("Quokka") == []
        assert await backend.find_ids("Wombat") == ["a"]
        assert await backend.find_ids("Wombat", where={"new": 1}) == ["a"]
        assert await backend.find_ids("Wombat", where={"old": 1}) == []
        assert await backend.store.count() == 2

    async def test_last_of_repeated_ids_wins(self, backend: Backend) -> None:
        """An id twice in one call is one chunk, as given last."""
        await backend.store.upsert([record("a", "Quokka"), record("b", "Numbat"), record("a", "Wombat")])
        assert await backend.store.count() == 2
        assert await backend.find_ids("Quokka") == []
        assert await backend.find_ids("Wombat") == ["a"]

    async def test_nothing_is_legal(self, backend: Backend) -> None:
        """No records: no change."""
        assert await backend.store.upsert([]) == 0
        assert await backend.store.count() == 0

    async def test_takes_more_than_the_engine_does_at_once(self, backend: Backend) -> None:
        """A call larger than the engine's batch limit is split."""
        shared = record("x", "Numbat")
        # Each vector its own: among thousands of equal ones an approximate index finds its way to few.
        vectors = [*np.random.default_rng(5).normal(size=(BEYOND_BATCH - 1, DIMENSION)).astype(np.float32)]
        vectors.append(shared.vectors[0])
        many = [ChunkRecord(f"c{n}", "d", shared.text, (vector,), {"n": n}) for n, vector in enumerate(vectors)]
        await backend.store.upsert(many)
        assert await backend.store.count() == BEYOND_BATCH
        ids = {each.chunk_id for each in many}
        assert await backend.store.all_ids() == ids
        assert await backend.store.existing_ids([*sorted(ids), "unknown"]) == ids
        assert await backend.find_ids("Numbat", where={"n": BEYOND_BATCH - 1}) == [f"c{BEYOND_BATCH - 1}"]
        assert await backend.store.delete(sorted(ids)) == BEYOND_BATCH
        assert await backend.store.count() == 0

    async def test_survives_a_restart(self, open_store: Opener) -> None:
        """Chunks, fields and deletions are on disk when a call returns."""
        async with open_store() as first:
            await first.store.upsert([record("a", page=1), record("b"), record("c", "Numbat")])
            await first.store.delete(["b"])
        async with open_store() as second:
            assert await second.store.all_ids() == {"a", "c"}
            assert await second.find_ids("Quokka", where={"page": 1}) == ["a"]

    async def test_unusable_vectors_are_refused_and_counted(self, vectors: Backend) -> None:
        """Ones that are not finite, all zero or missing: nothing of their records is kept, the others go in."""
        await vectors.store.upsert([record("b")])
        bad = [np.full(DIMENSION, np.nan), np.full(DIMENSION, np.inf), np.zeros(DIMENSION)]
        records = [ChunkRecord(f"bad{n}", "d", "x", (vector.astype(np.float32),)) for n, vector in enumerate(bad)]
        records += [
            ChunkRecord("none", "d", "x"),
            ChunkRecord("b", "d", "x", (bad[2].astype(np.float32),)),
            record("a"),
        ]
        assert await vectors.store.upsert(records) == 5
        assert await vectors.store.all_ids() == {"a"}
        assert await vectors.store.count() == 1

    @pytest.mark.parametrize("chunk_id", ["", "a\0b", "half \udc80", "x" * 513, "x" * 70_000])
    async def test_an_id_that_not_every_engine_keeps_is_refused(self, backend: Backend, chunk_id: str) -> None:
        """Empty, too long, with NUL or half a surrogate pair: nothing of the call is stored."""
        with pytest.raises(StoreError, match="can't be a chunk's id"):
            await backend.store.upsert([record("a"), record(chunk_id)])
        assert await backend.store.count() == 0

    async def test_the_longest_id_is_kept(self, backend: Backend) -> None:
        """512 characters can be found, looked up and deleted."""
        longest = "x" * 512
        await backend.store.upsert([record(longest)])
        assert await backend.find_ids("Quokka") == [longest]
        assert await backend.store.existing_ids([longest]) == {longest}
        assert await backend.store.delete([longest]) == 1


class TestExistingIds:
    """existing_ids never guesses."""

    async def test_are_those_stored(self, backend: Backend) -> None:
        """Unknown and repeated ids do no harm; an empty list is legal."""
        await backend.store.upsert([record("a"), record("b")])
        assert await backend.store.existing_ids(["a", "zz", "a"]) == {"a"}
        assert await backend.store.existing_ids([]) == set()


class TestAllIds:
    """all_ids is complete."""

    async def test_chunk_without_content_is_listed_and_counted(self, backend: Backend) -> None:
        """A chunk with nothing to search for is still stored, so that a comparison of ids is complete."""
        await backend.store.upsert([ChunkRecord("a", "d", text="…", vectors=(vector_of("x"),))])
        assert await backend.store.all_ids() == {"a"}
        assert await backend.store.count() == 1

    async def test_are_those_of_one_index(self, open_at: OpenAt, tmp_path: Path) -> None:
        """What goes into one store can't be found in another one."""
        async with open_at(tmp_path / "1") as one, open_at(tmp_path / "2") as two:
            await one.store.upsert([record("a")])
            await two.store.upsert([record("b", "Numbat")])
            assert await one.store.all_ids() == {"a"}
            assert await two.store.all_ids() == {"b"}
            assert await two.find_ids("Quokka") == []


class TestDelete:
    """delete removes by id and says how many were there."""

    async def test_counts_what_was_there(self, backend: Backend) -> None:
        """Unknown and repeated ids don't count."""
        await backend.store.upsert([record("a"), record("b")])
        assert await backend.store.delete(["a", "zz", "a"]) == 1
        assert await backend.store.delete(["a"]) == 0
        assert await backend.store.all_ids() == {"b"}
        assert await backend.find_ids("Quokka") == ["b"]

    async def test_empty_list_is_legal(self, backend: Backend) -> None:
        """Deleting nothing deletes nothing."""
        await backend.store.upsert([record("a")])
        assert await backend.store.delete([]) == 0
        assert await backend.store.count() == 1

    async def test_last_chunk_can_go_and_come_back(self, backend: Backend) -> None:
        """Deleting to empty leaves a working store."""
        await backend.store.upsert([record("a")])
        assert await backend.store.delete(["a"]) == 1
        assert await backend.find("Quokka") == []
        await backend.store.upsert([record("b")])
        assert await backend.find_ids("Quokka") == ["b"]


class TestSearch:
    """search gives at most k hits, best first, filtered before the cut."""

    async def test_ranks_count_from_zero_and_scores_fall(self, backend: Backend) -> None:
        """Rank 0 is the best; no later hit has a higher score."""
        await backend.store.upsert([record(f"c{n}", ["Quokka"] * (n % 3 + 1)) for n in range(9)])
        hits = await backend.find("Quokka", k=5)
        assert [hit.rank for hit in hits] == [0, 1, 2, 3, 4]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(type(hit.score) is float for hit in hits)

    async def test_equal_chunks_come_in_the_same_order(self, backend: Backend) -> None:
        """Ties are broken by chunk id, whatever the order they came in."""
        await backend.store.upsert([record("b"), record("c"), record("a")])
        await backend.store.upsert([record("d")])
        assert await backend.find_ids("Quokka") == ["a", "b", "c", "d"]

    async def test_k_may_exceed_what_is_stored(self, backend: Backend) -> None:
        """Fewer than k hits are no error."""
        await backend.store.upsert([record("a"), record("b")])
        assert len(await backend.find("Quokka", k=5000)) == 2
        assert len(await backend.find("Quokka", k=10**9)) == 2
        assert await backend.find("Quokka", k=0) == []

    async def test_empty_store_has_no_hits(self, backend: Backend) -> None:
        """Nothing stored, nothing found."""
        assert await backend.find("Quokka") == []
        assert await backend.find("Quokka", where={"page": 1}) == []

    async def test_filter_applies_before_the_cut(self, backend: Backend) -> None:
        """One matching chunk behind many better ones that don't match is found."""
        await backend.store.upsert([record(f"c{n}", ["Quokka"] * 3, page=1) for n in range(60)])
        await backend.store.upsert([record("wanted", ["Quokka", "Numbat"], page=2.5, lang="de")])
        for where in (
            {"page": {"$gt": 2.25}},
            {"lang": {"$gte": "de"}},
            {"$not": {"page": 1}},
            {"page": {"$lt": 2.75, "$gte": 1.5}},
            {"doc_id": "doc-wanted"},
            {"chunk_id": {"$in": ["wanted", "c999"]}},
        ):
            hits = await backend.find("Quokka", k=1, where=where)
            assert [hit.chunk_id for hit in hits] == ["wanted"], where
        assert await backend.find("Quokka", where={"page": "1"}) == []

    @pytest.mark.parametrize("number", [np.nan, np.inf, 0.0])
    async def test_a_question_that_is_no_direction_is_refused(self, vectors: Backend, number: float) -> None:
        """Not finite or all zero: an error, also on an empty store."""
        with pytest.raises(StoreError, match="finite and not all zero"):
            await vectors.store.search(np.full(DIMENSION, number, dtype=np.float32), k=1)

    async def test_empty_filter_is_none(self, backend: Backend) -> None:
        """{} lets everything through."""
        await backend.store.upsert([record("a")])
        assert await backend.find_ids("Quokka", where={}) == ["a"]

    async def test_bad_filter_is_refused(self, backend: Backend) -> None:
        """A filter that isn't in the portable form is an error, also on an empty store."""
        with pytest.raises(InvalidFilter, match=r"\$near"):
            await backend.find("Quokka", where={"page": {"$near": 1}})

    async def test_field_names_are_free(self, backend: Backend) -> None:
        """A source's metadata may have any key, also ones an engine keeps for itself."""
        fields = {"#odd": 1, "chroma:document": "x", "leadline:vectors": 3, "a.b": True, "ключ": "значение"}
        await backend.store.upsert([record("a", **fields), record("b")])
        for key, value in fields.items():
            assert await backend.find_ids("Quokka", where={key: value}) == ["a"], key

    async def test_best_vector_of_a_chunk_counts(self, vectors: Backend) -> None:
        """A chunk of several vectors is one hit, by the one that is nearest; k counts chunks."""
        topics = ["Quokka", "Numbat", "Wombat", "Bilby"]
        await vectors.store.upsert([record("many", topics), record("one", "Quokka"), record("other", "Dingo")])
        for topic in topics:
            hits = await vectors.find(topic, k=3)
            assert hits[0].chunk_id in ("many", "one")
            assert hits[0].score > 0.99
            assert len({hit.chunk_id for hit in hits}) == len(hits) == 3
        await vectors.store.upsert([record("many", topics[:1])])
        assert await vectors.find_ids("Bilby") == []
        assert await vectors.store.count() == 3


class TestCount:
    """count is how many chunks are stored."""

    async def test_follows_every_change(self, backend: Backend) -> None:
        """Chunks, not vectors or rows: upserts, replacements and deletions."""
        assert await backend.store.count() == 0
        await backend.store.upsert([record("a", ["Quokka", "Numbat"]), record("b")])
        assert await backend.store.count() == 2
        await backend.store.upsert([record("a")])
        assert await backend.store.count() == 2
        await backend.store.delete(["b"])
        assert await backend.store.count() == 1


class TestClear:
    """clear removes everything, for good."""

    async def test_nothing_comes_back(self, open_store: Opener) -> None:
        """After clear, a restart and new chunks, only the new ones are found."""
        async with open_store() as first:
            await first.store.upsert([record("a"), record("b", "Numbat")])
            await first.store.clear()
            assert await first.store.count() == 0
            assert await first.find("Quokka") == []
        async with open_store() as second:
            assert await second.store.all_ids() == set()
            await second.store.upsert([record("c", "Wombat")])
            assert await second.find_ids("Quokka") == []
            assert await second.find_ids("Wombat") == ["c"]

    async def test_of_an_empty_store_is_legal(self, backend: Backend) -> None:
        """clear can be called at any time."""
        await backend.store.clear()
        await backend.store.clear()
        assert await backend.store.count() == 0


class TestStats:
    """stats are figures for people."""

    async def test_name_the_backend_and_the_count(self, backend: Backend) -> None:
        """stats has at least `backend` and `count`."""
        await backend.store.upsert([record("a"), record("b")])
        stats = await backend.store.stats()
        assert stats["backend"]
        assert stats["count"] == 2


class TestClosed:
    """A store works inside `async with` and nowhere else."""

    async def test_nothing_is_answered_or_written_once_closed(self, open_store: Opener) -> None:
        """Each call raises StoreError; what was stored is there on opening again."""
        async with open_store() as backend:
            await backend.store.upsert([record("a")])
        if backend.kind == "graph":
            pytest.skip("the graph has nothing of its own to close: it is open with its catalog")
        for call in (
            lambda: backend.store.ensure_ready(DIMENSION),
            lambda: backend.store.upsert([record("b")]),
            lambda: backend.store.existing_ids(["a"]),
            backend.store.all_ids,
            lambda: backend.store.delete(["a"]),
            backend.store.count,
            backend.store.clear,
            backend.store.stats,
            lambda: backend.find("Quokka"),
        ):
            with pytest.raises(StoreError, match="open"):
                await call()
        async with open_store() as again:
            assert await again.store.all_ids() == {"a"}

    @pytest.mark.parametrize("kind", [FaissVectorStore, QdrantVectorStore, TantivyStore, RankBM25Store])
    async def test_nothing_is_written_before_opening(self, kind: type[Any], tmp_path: Path) -> None:
        """A store that was only made refuses every call, and makes no file."""
        words = {"analyzer": Analyzer("english")} if kind in (TantivyStore, RankBM25Store) else {}
        store = kind(path=tmp_path / "index", **words)
        for call in (
            lambda: store.ensure_ready(DIMENSION),
            lambda: store.upsert([record("a")]),
            lambda: store.existing_ids(["a"]),
            store.all_ids,
            lambda: store.delete(["a"]),
            store.count,
            store.clear,
        ):
            with pytest.raises(StoreError, match=r"isn't open.*async with"):
                await call()
        assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "https://[::1", "http://", "not a url"])
@pytest.mark.parametrize("kind", [QdrantVectorStore, MilvusVectorStore, OpenSearchVectorStore])
def test_what_is_no_address_is_refused(kind: type[Any], url: str) -> None:
    """A bad `url` is an error of the settings, told before anything is asked of it."""
    with pytest.raises(ConfigError, match="url"):
        kind(url=url)
