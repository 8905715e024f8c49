"""Qdrant: the portable filter on its engine, and what of it the engine is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.stores import filters, qdrant_payloads
from leadline.stores.base import ChunkRecord
from leadline.stores.qdrant import QdrantVectorStore

VECTOR = np.ones(4, dtype=np.float32)
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, 2.0**53, -0.0, 1, 1.0, "1", "true", True, False, "", "a.b"]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
)
KEYS = st.one_of(st.sampled_from(["a", "a.b", 'q"', "back\\slash", "x[]", "chunk_id", "doc_id"]), st.text(min_size=1))
TESTS = st.one_of(
    st.builds(lambda op, value: {op: value}, st.sampled_from(["$eq", "$ne"]), VALUES),
    st.builds(lambda op, values: {op: values}, st.sampled_from(["$in", "$nin"]), st.lists(VALUES, min_size=1)),
    st.builds(
        lambda op, bound: {op: bound},
        st.sampled_from(list(filters.RANGES)),
        VALUES.filter(lambda value: not isinstance(value, bool)),
    ),
)
WHERES = st.dictionaries(KEYS.filter(lambda key: not key.startswith("$")), TESTS, min_size=1, max_size=2)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=st.lists(st.dictionaries(KEYS, VALUES, max_size=3), min_size=1, max_size=6), where=WHERES)
async def test_filters_mean_what_the_portable_one_means(
    stored: list[dict[str, Any]], where: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the fields' names and values, on the engine itself: also numbers that a float can't hold."""
    given_records = [ChunkRecord(f"c{n}", "d", vectors=(VECTOR,), fields=f) for n, f in enumerate(stored)]
    async with QdrantVectorStore(path=tmp_path_factory.mktemp("filters")) as store:
        await store.upsert(given_records)
        hits = await store.search(VECTOR, k=10, where=where)
    expected = [r.chunk_id for r in given_records if filters.matches(where, filters.fields_of(r))]
    assert [hit.chunk_id for hit in hits] == expected


def test_plain_tests_are_left_to_the_engine() -> None:
    """What Qdrant can say is pushed down: kinds apart, dots quoted, negations kept; the rest is wider."""
    assert qdrant_payloads.native({"a.b": "x"}) == {"must": [{"key": 'strings."a.b"', "match": {"any": ["x"]}}]}
    assert qdrant_payloads.native({"n": {"$gt": 3}}) == {"must": [{"key": 'numbers."n"', "range": {"gt": 3.0}}]}
    assert qdrant_payloads.native({"n": {"$gt": 2**60}}) == {
        "must": [{"key": 'numbers."n"', "range": {"gte": float(2**60)}}]
    }
    assert qdrant_payloads.native({"b": {"$ne": True}}) == {
        "must": [{"must_not": [{"key": 'booleans."b"', "match": {"any": ["true"]}}]}]
    }
    assert qdrant_payloads.native({"s": {"$gte": "2024"}}) is None
    assert qdrant_payloads.native({'"': 1}) is None


async def test_more_fields_than_are_indexed_can_be_filtered_on(tmp_path: Path) -> None:
    """The engine indexes some of many fields; a test on any other means the same."""
    fields = {f"f{n}": n for n in range(30)}
    async with QdrantVectorStore(path=tmp_path) as store:
        await store.upsert([ChunkRecord("a", "d", vectors=(VECTOR,), fields=fields)])
        await store.upsert([ChunkRecord("b", "d", vectors=(VECTOR,), fields={"f29": "29"})])
        for n in (0, 29):
            assert [hit.chunk_id for hit in await store.search(VECTOR, k=3, where={f"f{n}": n})] == ["a"]
        assert [hit.chunk_id for hit in await store.search(VECTOR, k=3, where={"f29": {"$ne": 29}})] == ["b"]
