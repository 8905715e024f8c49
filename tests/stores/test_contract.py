"""What every index promises, run against each backend's real engine (`ENGINES` in `engines.py`)."""

from pathlib import Path

import numpy as np
import pytest
from tests.stores.engines import DIMENSION, ENGINES, HERE, Backend, OpenAt, Opener, record, vector_of

from leadline.errors import ManifestMismatch, StoreError
from leadline.stores.base import ChunkRecord

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
