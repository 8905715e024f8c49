"""Pinecone: the requests are in the documented form and within its limits, and a write ends when searches see it.

The stand-in (`tests/servers/pinecone_server.py`) speaks the documented REST format to Pinecone's own client library and
refuses everything else; it is not Pinecone. The contract suite runs on it, and on a real index where
LEADLINE_TEST_PINECONE_API_KEY and LEADLINE_TEST_PINECONE_HOST name one. Pages cited are at docs.pinecone.io.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.servers.pinecone_server import KEY, Index, PineconeStandIn
from tests.stores.width_two import EAST, NORTH, NORTH_EAST, chunk, vector

from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores import open_vector_store
from leadline.stores.pinecone import PineconeVectorStore


def sent(standin: PineconeStandIn, path: str) -> list[Any]:
    """The bodies of the requests to an address, or the address itself where there is none."""
    return [
        address if body is None else body
        for _, address, body in standin.requests
        if address.split("?")[0].endswith(path)
    ]


@pytest.fixture
def store(pinecone_standin: PineconeStandIn) -> PineconeVectorStore:
    """A store, still closed, on an index that is there."""
    pinecone_standin.indexes["i"] = Index(2, "cosine")
    return PineconeVectorStore(api_key=KEY, index="i", host=f"{pinecone_standin.url}/i", namespace="n", timeout=5)


class TestRequests:
    """What goes over the wire."""

    async def test_index_is_found_or_made_by_name(
        self, pinecone_standin: PineconeStandIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """reference/api/2026-07/control-plane/create_index: made on first use, serverless; found after that."""
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", pinecone_standin.url)
        for _ in range(2):
            async with PineconeVectorStore(api_key=KEY, index="mine", metric_type="l2", region="eu-west-1") as store:
                assert await store.all_ids() == set()
                assert await store.count() == 0
                assert await store.search(vector(EAST), k=1) == []
                await store.clear()
                await store.ensure_ready(2)
        assert sent(pinecone_standin, "/indexes") == [
            {
                "name": "mine",
                "schema": {"fields": {"_values": {"type": "dense_vector", "dimension": 2, "metric": "euclidean"}}},
                "deployment": {"deployment_type": "managed", "cloud": "aws", "region": "eu-west-1"},
            }
        ]

    async def test_upsert_and_query(self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore) -> None:
        """guides/index-data/upsert-data and guides/search/semantic-search: ids, values and metadata; no text."""
        async with store:
            await store.upsert([chunk("a", EAST, page=1, draft=True), chunk("ä#%", EAST, NORTH)])
            await store.search(vector(EAST), k=3, where={"page": 1})
        [upsert] = sent(pinecone_standin, "/vectors/upsert")
        twice = {"doc_id": "d", "chunk_id": "ä#%", "leadline:vectors": 2}
        once = {"page": 1.0, "draft": True, "doc_id": "d", "chunk_id": "a"}
        assert upsert == {
            "namespace": "n",
            "vectors": [
                {"id": "a", "values": EAST, "metadata": once},
                {"id": "%C3%A4%23%25", "values": EAST, "metadata": twice},
                {"id": "#1#%C3%A4%23%25", "values": NORTH, "metadata": twice},
            ],
        }
        assert sent(pinecone_standin, "/query")[-1] == {
            "namespace": "n",
            "vector": EAST,
            "topK": 6,
            "filter": {"page": {"$eq": 1}},
            "includeMetadata": True,
            "includeValues": False,
        }

    async def test_upserts_stay_within_the_limits(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """reference/api/database-limits: at most 1,000 records and 2 MB an upsert."""
        async with store:
            await store.upsert([chunk(f"c{n}", EAST) for n in range(2500)])
            assert await store.count() == 2500
            assert len(await store.all_ids()) == 2500
            long = "x" * 30_000
            await store.upsert([chunk(f"d{n}", EAST, note=long) for n in range(100)])
        upserts = sent(pinecone_standin, "/vectors/upsert")
        assert [len(body["vectors"]) for body in upserts[:3]] == [1000, 1000, 500]
        assert sum(len(body["vectors"]) for body in upserts[3:]) == 100
        assert all(len(json.dumps(body)) <= 2_000_000 for body in upserts)
        assert len(upserts) == 5

    async def test_ids_are_looked_up_in_short_addresses(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """reference/api/data-plane/fetch is a GET: many long ids go in several."""
        ids = [f"{n:0>300}" for n in range(60)]
        async with store:
            await store.upsert([chunk(key, EAST) for key in ids])
            assert await store.existing_ids([*ids, "unknown"]) == set(ids)
        addresses = sent(pinecone_standin, "/vectors/fetch")
        assert len(addresses) > 2
        assert max(map(len, addresses)) < 8000

    async def test_further_vectors_come_and_go_with_their_chunk(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """A chunk is counted, listed, found and deleted once, with however many vectors."""
        async with store:
            await store.upsert([chunk("a", EAST, NORTH, NORTH_EAST), chunk("b", NORTH_EAST)])
            assert await store.count() == 2
            assert await store.all_ids() == {"a", "b"}
            assert [hit.chunk_id for hit in await store.search(vector(EAST), k=2)] == ["a", "b"]
            await store.upsert([chunk("a", NORTH)])
            assert set(pinecone_standin.indexes["i"].vectors["n"]) == {"a", "b"}
            await store.upsert([chunk("a", EAST, NORTH)])
            assert await store.delete(["a", "x"]) == 1
            assert set(pinecone_standin.indexes["i"].vectors["n"]) == {"b"}

    async def test_refused_chunk_loses_its_old_vector(self, store: PineconeVectorStore) -> None:
        """Nothing of a refused record is kept."""
        async with store:
            await store.upsert([chunk("a", EAST), chunk("b", EAST)])
            assert await store.upsert([chunk("a", [0.0, 0.0]), chunk("b"), chunk("c", [float("nan"), 1.0])]) == 3
            assert await store.all_ids() == set()

    async def test_namespaces_do_not_mix(self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore) -> None:
        """Also the one without a name, which statistics call `__default__`."""
        unnamed = PineconeVectorStore(api_key=KEY, index="i", host=f"{pinecone_standin.url}/i")
        async with store, unnamed:
            await store.upsert([chunk("a", EAST)])
            await unnamed.upsert([chunk("b", EAST), chunk("c", EAST)])
            assert (await store.count(), await unnamed.count()) == (1, 2)
            await unnamed.clear()
            assert (await store.all_ids(), await unnamed.all_ids()) == ({"a"}, set())


class TestFreshness:
    """guides/index-data/check-data-freshness: a query says how far along the log it looked."""

    async def test_write_ends_when_searches_see_it(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """Upserts, replacements, deletions and clearing alike."""
        pinecone_standin.lag_s = 0.1
        async with store:
            started = time.monotonic()
            await store.upsert([chunk("a", EAST), chunk("b", NORTH)])
            assert time.monotonic() - started >= 0.1
            assert [hit.chunk_id for hit in await store.search(vector(EAST), k=2)] == ["a", "b"]
            await store.upsert([chunk("a", NORTH_EAST)])
            assert (await store.search(vector(EAST), k=1))[0].score == pytest.approx(0.8)
            await store.delete(["a"])
            assert [hit.chunk_id for hit in await store.search(vector(EAST), k=2)] == ["b"]
            await store.clear()
            assert await store.search(vector(EAST), k=2) == []

    async def test_write_that_stays_unseen_is_said(self, pinecone_standin: PineconeStandIn) -> None:
        """After the time-out: what was taken isn't lost, and isn't called visible."""
        pinecone_standin.indexes["i"] = Index(2, "cosine")
        pinecone_standin.lag_s = 60
        async with PineconeVectorStore(api_key=KEY, index="i", host=f"{pinecone_standin.url}/i", timeout=0.2) as store:
            with pytest.raises(StoreError, match=r"after 0\.2 s searches don't see it"):
                await store.upsert([chunk("a", EAST)])

    async def test_index_without_a_log_is_not_waited_for(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """One on pods names no place."""
        pinecone_standin.has_log, pinecone_standin.lag_s = False, 0.0
        async with store:
            await store.upsert([chunk("a", EAST)])
            assert await store.all_ids() == {"a"}


class TestScores:
    """Higher is better, whatever is measured."""

    @pytest.mark.parametrize(("metric", "kept", "best"), [("l2", "euclidean", 0.0), ("ip", "dotproduct", 1.0)])
    async def test_each_metric_ranks_nearest_first(
        self, pinecone_standin: PineconeStandIn, metric: Any, kept: str, best: float
    ) -> None:
        """A squared distance counts as its negative."""
        pinecone_standin.indexes["i"] = Index(2, kept)
        host = f"{pinecone_standin.url}/i"
        async with PineconeVectorStore(api_key=KEY, index="i", host=host, metric_type=metric) as store:
            await store.upsert([chunk("far", NORTH), chunk("near", NORTH_EAST), chunk("same", EAST)])
            hits = await store.search(vector(EAST), k=3)
        assert [hit.chunk_id for hit in hits] == ["same", "near", "far"]
        assert hits[0].score == pytest.approx(best)


class TestFailures:
    """A failure is never read as success, and tells no secret."""

    async def test_key_comes_from_the_environment_too(
        self, pinecone_standin: PineconeStandIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """PINECONE_API_KEY; without any, opening says what to set."""
        pinecone_standin.indexes["i"] = Index(2, "cosine")
        store = PineconeVectorStore(host=f"{pinecone_standin.url}/i")
        monkeypatch.delenv("PINECONE_API_KEY", raising=False)
        with pytest.raises(ConfigError, match="PINECONE_API_KEY"):
            async with store:
                pass
        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        async with store:
            await store.ensure_ready(2)

    async def test_wrong_key_is_said_and_not_shown(self, pinecone_standin: PineconeStandIn) -> None:
        """Also where the server repeats it."""
        with pytest.raises(StoreError, match="doesn't accept the API key") as caught:
            async with PineconeVectorStore(api_key="wr0ng-key", index="i", host=f"{pinecone_standin.url}/i"):
                pass
        assert "wr0ng" not in f"{caught.value} {caught.value.__cause__!r}"

    async def test_key_that_can_be_none_is_an_error(self, pinecone_standin: PineconeStandIn) -> None:
        """A line break in it is found before anything is sent."""
        with pytest.raises(StoreError, match="not a valid HTTP header value"):
            async with PineconeVectorStore(api_key="k\n", host=f"{pinecone_standin.url}/i"):
                pass
        assert pinecone_standin.requests == []

    @pytest.mark.parametrize(
        ("statuses", "told"),
        [([403], "doesn't accept the API key"), ([400], "refused a request .400.: said to fail"), ([409], "409")],
    )
    async def test_refusals_are_named(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore, statuses: list[int], told: str
    ) -> None:
        """By what the server says."""
        async with store:
            pinecone_standin.statuses = statuses
            with pytest.raises(StoreError, match=told):
                await store.search(vector(EAST), k=1)

    async def test_passing_failure_is_tried_again(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """A server that is busy once."""
        async with store:
            pinecone_standin.statuses = [503]
            assert await store.search(vector(EAST), k=1) == []

    async def test_dead_server_is_said(self, unused_tcp_port: int) -> None:
        """On opening, by the name of the index."""
        with pytest.raises(StoreError, match="index i can't be reached"):
            async with PineconeVectorStore(api_key=KEY, index="i", host=f"http://127.0.0.1:{unused_tcp_port}"):
                pass

    async def test_other_width_and_metric_are_refused(
        self, pinecone_standin: PineconeStandIn, store: PineconeVectorStore
    ) -> None:
        """An index that was made otherwise is not written to."""
        async with store:
            with pytest.raises(ManifestMismatch, match="width 2, not 3"):
                await store.ensure_ready(3)
            with pytest.raises(ManifestMismatch, match="width 2, not 3"):
                await store.upsert([chunk("a", [1.0, 0.0, 0.0])])
        pinecone_standin.indexes["i"].metric = "dotproduct"
        with pytest.raises(ManifestMismatch, match="dotproduct, not by cosine"):
            async with store:
                pass

    def test_settings_have_to_say_where(self) -> None:
        """Pinecone's index is in no data folder."""
        with pytest.raises(ConfigError, match="host or index"):
            open_vector_store("pinecone", path=Path(), options={"api_key": KEY})

    async def test_closed_store_says_so(self, store: PineconeVectorStore) -> None:
        """Outside `async with` nothing works."""
        with pytest.raises(StoreError, match="isn't open"):
            await store.count()
