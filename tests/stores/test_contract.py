"""What every index promises, run against each backend's real engine (`ENGINES` in `engines.py`)."""

from pathlib import Path

import numpy as np
import pytest
from tests.stores.engines import DIMENSION, Backend, OpenAt, Opener, record, vector_of

from leadline.errors import InvalidFilter
from leadline.stores.base import ChunkRecord

# One more than Chroma 1.5.9 takes at once.
BEYOND_BATCH = 5462


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


class TestIds:
    """existing_ids and all_ids never guess."""

    async def test_existing_ids_are_those_stored(self, backend: Backend) -> None:
        """Unknown and repeated ids do no harm; an empty list is legal."""
        await backend.store.upsert([record("a"), record("b")])
        assert await backend.store.existing_ids(["a", "zz", "a"]) == {"a"}
        assert await backend.store.existing_ids([]) == set()

    async def test_chunk_without_content_is_counted_too(self, backend: Backend) -> None:
        """A chunk with nothing to search for is still stored, so that a comparison of ids is complete."""
        await backend.store.upsert([ChunkRecord("a", "d", text="…", vectors=(vector_of("x"),))])
        assert await backend.store.all_ids() == {"a"}
        assert await backend.store.count() == 1


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


class TestRestart:
    """What was acknowledged is there after a restart, and nothing else."""

    async def test_content_survives(self, open_store: Opener) -> None:
        """Chunks, fields and deletions are on disk when a call returns."""
        async with open_store() as first:
            await first.store.upsert([record("a", page=1), record("b"), record("c", "Numbat")])
            await first.store.delete(["b"])
        async with open_store() as second:
            assert await second.store.all_ids() == {"a", "c"}
            assert await second.find_ids("Quokka", where={"page": 1}) == ["a"]

    async def test_cleared_content_never_comes_back(self, open_store: Opener) -> None:
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

    async def test_clear_of_an_empty_store_is_legal(self, backend: Backend) -> None:
        """clear can be called at any time."""
        await backend.store.clear()
        await backend.store.clear()
        assert await backend.store.count() == 0

    async def test_ensure_ready_can_be_repeated(self, backend: Backend) -> None:
        """It creates once and validates after."""
        await backend.store.upsert([record("a")])
        await backend.store.ensure_ready(DIMENSION)
        assert await backend.store.count() == 1


class TestSideBySide:
    """Several stores live in one process."""

    async def test_two_folders_do_not_mix(self, open_at: OpenAt, tmp_path: Path) -> None:
        """What goes into one store can't be found in another one."""
        async with open_at(tmp_path / "1") as one, open_at(tmp_path / "2") as two:
            await one.store.upsert([record("a")])
            await two.store.upsert([record("b", "Numbat")])
            assert await one.store.all_ids() == {"a"}
            assert await two.store.all_ids() == {"b"}
            assert await two.find_ids("Quokka") == []

    async def test_stats_name_the_backend_and_the_count(self, backend: Backend) -> None:
        """stats has at least `backend` and `count`."""
        await backend.store.upsert([record("a"), record("b")])
        stats = await backend.store.stats()
        assert stats["backend"]
        assert stats["count"] == 2
