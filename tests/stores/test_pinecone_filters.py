"""Pinecone: the portable filter, as far as it has words for it, and the rest by what comes back.

The server is a stand-in (`tests/servers/pinecone_server.py`) with the documented filters.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from tests.servers.pinecone_query import passes
from tests.servers.pinecone_server import KEY, Index, PineconeStandIn
from tests.stores.test_filters import FIELDS, FILTERS
from tests.stores.width_two import EAST, NORTH, NORTH_EAST, chunk, vector

from leadline.errors import StoreError
from leadline.stores import filters, pinecone_payloads
from leadline.stores.pinecone import PineconeVectorStore


@pytest.fixture
def store(pinecone_standin: PineconeStandIn) -> PineconeVectorStore:
    """A store, still closed, on an index that is there."""
    pinecone_standin.indexes["i"] = Index(2, "cosine")
    return PineconeVectorStore(api_key=KEY, index="i", host=f"{pinecone_standin.url}/i", namespace="n", timeout=5)


@settings(deadline=None)
@given(where=FILTERS, fields=FIELDS)
@example(where={"a": {"$gt": 2}}, fields={"a": 2**60})
@example(where={"a": {"$lt": 2**60}}, fields={"a": 5})
@example(where={"$not": {"$x": 1}}, fields={"$x": 2})
@example(where={"a": {"$in": [1, True]}}, fields={"a": True})
@example(where={"leadline:rest": 1}, fields={"leadline:rest": 1})
@example(where={"a": {"$gt": 1}}, fields={"a": float("inf")})
@example(where={"$or": [{"a": 0}, {"$and": [{"a": {"$gt": 0}}]}, {"$not": {"a": 0}}]}, fields={"a": ""})
def test_query_lets_through_all_that_passes(where: dict[str, Any], fields: dict[str, Any]) -> None:
    """Random filters and fields, whatever `$ne` makes of a missing field; what is read back decides the same."""
    record = replace(chunk("c", EAST), fields=fields)
    [[stored]] = pinecone_payloads.batches([record])
    metadata = json.loads(json.dumps(stored["metadata"]))
    all_fields = filters.fields_of(record)
    assert pinecone_payloads.fields(metadata) == all_fields
    if filters.matches(where, all_fields):
        narrowed = pinecone_payloads.native(where) or {}
        assert all(passes(narrowed, metadata, missing_is_unequal=choice) for choice in (True, False))


async def test_filter_without_words_is_answered_from_what_comes_back(store: PineconeVectorStore) -> None:
    """An order of strings: more is fetched until enough passes."""
    async with store:
        await store.upsert([*(chunk(f"c{n}", EAST, day="2024-01-01") for n in range(300)), chunk("x", NORTH)])
        await store.upsert([chunk("late", NORTH_EAST, day="2025-01-01")])
        hits = await store.search(vector(EAST), k=1, where={"day": {"$gte": "2024-06-01"}})
    assert [hit.chunk_id for hit in hits] == ["late"]


async def test_filter_that_cannot_be_answered_is_an_error(
    pinecone_standin: PineconeStandIn, store: PineconeVectorStore
) -> None:
    """Pinecone gives 10,000 vectors; what may be behind them is not called nothing."""
    async with store:
        pinecone_standin.indexes["i"].vectors["n"] = {
            f"c{n}": {"id": f"c{n}", "values": EAST, "metadata": {"day": "2024"}} for n in range(10_001)
        }
        with pytest.raises(StoreError, match="can't answer this filter"):
            await store.search(vector(EAST), k=1, where={"day": {"$gt": "2025"}})
        assert await store.search(vector(EAST), k=1, where={"day": {"$in": ["2025"]}}) == []
