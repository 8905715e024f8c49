"""What every content store promises, run against each backend's real engine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server

from leadline.stores import open_content_store
from leadline.stores.base import ChunkRecord, ChunkStore
from leadline.stores.catalog import Catalog
from leadline.stores.lease import hold_lease

BACKENDS = ("catalog-sqlite", "catalog-postgres", "s3")
BEYOND_BATCH = 1101  # more than a listing or a deletion of S3 takes, and than a statement does
ODD_IDS = ["a b", "ü/ß", "..", "x/../y", "%20", "'; DROP TABLE texts; --", "b.YQ", "日本", "A", "a", "n" * 300, ""]
ODD_TEXTS = ["", " ", "\n\r\n\t", "日本語 🦘", "x" * 100_000, "�"]

Opener = Callable[..., AbstractAsyncContextManager[ChunkStore]]


def record(chunk_id: str, text: str = "") -> ChunkRecord:
    """A chunk with a text."""
    return ChunkRecord(chunk_id, f"doc-{chunk_id}", text or f"text of {chunk_id}")


@pytest.fixture(params=BACKENDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Each backend in turn: opens a collection of it, in a place that lasts for the test."""
    backend, options, url = request.param.partition("-")[0], {}, None
    if request.param == "catalog-postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    if backend == "s3":
        s3: S3Server = request.getfixturevalue("s3")
        options = s3.options()

    @asynccontextmanager
    async def opened(collection: str = "default") -> AsyncIterator[ChunkStore]:
        catalog = Catalog(tmp_path / "data", url)
        catalog.open()
        try:
            async with (
                hold_lease(catalog, 5),
                open_content_store(backend, catalog=catalog, collection=collection, options=options) as store,
            ):
                await store.ensure_ready()
                yield store
        finally:
            catalog.close()

    return opened


@pytest.fixture
async def store(open_store: Opener) -> AsyncIterator[ChunkStore]:
    """The backend, empty, open and ready."""
    async with open_store() as store:
        yield store


class TestUpsert:
    """upsert stores texts or replaces them."""

    async def test_stores_each_text_once(self, store: ChunkStore) -> None:
        """The same records given twice are there once."""
        for _ in range(2):
            assert await store.upsert([record("a"), record("b")]) == 0
        assert await store.count() == 2

    async def test_replaces_the_text(self, store: ChunkStore) -> None:
        """The one given last is fetched."""
        await store.upsert([record("a", "old")])
        await store.upsert([record("a", "new")])
        assert await store.fetch(["a"]) == {"a": "new"}

    async def test_last_of_repeated_ids_wins(self, store: ChunkStore) -> None:
        """An id twice in one call is one text, as given last."""
        await store.upsert([record("a", "one"), record("b"), record("a", "two")])
        assert await store.fetch(["a", "b"]) == {"a": "two", "b": "text of b"}

    async def test_nothing_is_legal(self, store: ChunkStore) -> None:
        """No records: no change."""
        assert await store.upsert([]) == 0
        assert await store.count() == 0

    async def test_any_id_and_any_text_come_back(self, store: ChunkStore) -> None:
        """Ids that mean something to a file system, an address or a database; texts with nothing in them, or much."""
        wanted = {chunk_id: ODD_TEXTS[number % len(ODD_TEXTS)] for number, chunk_id in enumerate(ODD_IDS)}
        await store.upsert([ChunkRecord(chunk_id, "d", text) for chunk_id, text in wanted.items()])
        assert await store.fetch(ODD_IDS) == wanted
        assert await store.all_ids() == set(ODD_IDS)
        assert await store.existing_ids(ODD_IDS) == set(ODD_IDS)
        assert await store.delete(ODD_IDS) == len(ODD_IDS)


class TestFetch:
    """fetch reads texts in one batch."""

    async def test_keeps_the_order_and_leaves_out_what_is_missing(self, store: ChunkStore) -> None:
        """The order of the ids, repeated ones once, unknown ones not at all."""
        await store.upsert([record(name) for name in "abcde"])
        found = await store.fetch(["d", "zz", "a", "e", "a"])
        assert list(found.items()) == [("d", "text of d"), ("a", "text of a"), ("e", "text of e")]
        assert await store.fetch([]) == {}

    async def test_many_ids_fit_into_one_call(self, store: ChunkStore) -> None:
        """More than an engine takes at once is stored, listed, fetched and deleted all the same."""
        ids = [f"c{number}" for number in range(BEYOND_BATCH)]
        await store.upsert([record(chunk_id) for chunk_id in ids])
        assert list(await store.fetch(ids[::-1])) == ids[::-1]
        assert await store.all_ids() == set(ids)
        assert await store.existing_ids([*ids, "unknown"]) == set(ids)
        assert await store.delete([*ids, "unknown"]) == BEYOND_BATCH
        assert await store.count() == 0

    async def test_may_be_called_by_many_at_once(self, store: ChunkStore) -> None:
        """Searches beside each other get what each asked for."""
        ids = [f"c{number}" for number in range(50)]
        await store.upsert([record(chunk_id) for chunk_id in ids])
        found = await asyncio.gather(*(store.fetch(ids[start : start + 5]) for start in range(45)))
        assert [list(texts) for texts in found] == [ids[start : start + 5] for start in range(45)]


class TestIds:
    """existing_ids and all_ids never guess."""

    async def test_existing_ids_are_those_stored(self, store: ChunkStore) -> None:
        """Unknown and repeated ids do no harm; an empty list is legal."""
        await store.upsert([record("a"), record("b")])
        assert await store.existing_ids(["a", "zz", "a"]) == {"a"}
        assert await store.existing_ids([]) == set()

    async def test_an_empty_store_has_none(self, store: ChunkStore) -> None:
        """Nothing stored, nothing there."""
        assert await store.all_ids() == set()
        assert await store.count() == 0


class TestDelete:
    """delete removes by id and says how many were there."""

    async def test_counts_what_was_there(self, store: ChunkStore) -> None:
        """Unknown and repeated ids don't count."""
        await store.upsert([record("a"), record("b")])
        assert await store.delete(["a", "zz", "a"]) == 1
        assert await store.delete(["a"]) == 0
        assert await store.delete([]) == 0
        assert await store.all_ids() == {"b"}

    async def test_what_is_deleted_can_come_back(self, store: ChunkStore) -> None:
        """With another text."""
        await store.upsert([record("a", "one")])
        await store.delete(["a"])
        assert await store.fetch(["a"]) == {}
        await store.upsert([record("a", "two")])
        assert await store.fetch(["a"]) == {"a": "two"}


class TestClear:
    """clear removes everything for good."""

    async def test_nothing_comes_back(self, open_store: Opener) -> None:
        """Not after a restart either; the store can be filled again."""
        async with open_store() as first:
            await first.upsert([record("a"), record("b")])
            await first.clear()
            await first.clear()
            assert await first.all_ids() == set()
        async with open_store() as second:
            assert await second.count() == 0
            await second.upsert([record("c")])
            assert await second.all_ids() == {"c"}


class TestRestart:
    """What was acknowledged is there after a restart."""

    async def test_content_survives(self, open_store: Opener) -> None:
        """Texts and deletions are stored when a call returns."""
        async with open_store() as first:
            await first.upsert([record("a"), record("b")])
            await first.delete(["b"])
        async with open_store() as second:
            assert await second.fetch(["a", "b"]) == {"a": "text of a"}


class TestSideBySide:
    """Several collections share a place."""

    async def test_collections_do_not_mix(self, open_store: Opener) -> None:
        """Also where the name of one begins like the other's."""
        async with open_store("c") as one:
            await one.upsert([record("a", "of c")])
        async with open_store("c2") as two:
            assert await two.all_ids() == set()
            await two.upsert([record("a", "of c2")])
            await two.clear()
        async with open_store("c") as one:
            assert await one.fetch(["a"]) == {"a": "of c"}

    async def test_stats_name_the_backend_and_the_count(self, store: ChunkStore) -> None:
        """stats has at least `backend` and `count`."""
        await store.upsert([record("a"), record("b")])
        stats = await store.stats()
        assert stats["backend"]
        assert stats["count"] == 2


class TestSteps:
    """save and sync store a stream of records, and a sync removes the rest."""

    async def test_a_sync_leaves_what_the_stream_had(self, store: ChunkStore) -> None:
        """After a clean run nothing else is there."""
        await store.upsert([record("old"), record("kept")])

        async def stream() -> AsyncIterator[ChunkRecord]:
            yield record("kept")
            yield record("new")

        await store.sync(stream(), skip_existing=True).run()
        assert await store.all_ids() == {"kept", "new"}
        await store.save(stream()).run()
        assert await store.count() == 2
