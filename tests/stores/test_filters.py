"""The portable filter: what it means, what it refuses, and that each engine means the same by it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.stores.engines import ENGINES, Backend, opened, record

from leadline.errors import InvalidFilter
from leadline.stores import filters
from leadline.stores.base import ChunkRecord
from leadline.stores.chroma import ChromaVectorStore

KEYS = st.sampled_from(["a", "b", "#c"])
# Few values, close together, so that tests often hit; numbers that are near each other as text, number and truth.
NUMBERS = st.one_of(st.integers(-2, 2), st.sampled_from([-1.5, 0.5, 1.0, 1.5, 2.0, -0.0, 2**53, 2.0**53]))
TEXTS = st.sampled_from(["", "1", "True", "x", "y", "2024-01-05", "2024-02-01", "日本"])
VALUES = st.one_of(NUMBERS, TEXTS, st.booleans())
TESTS = st.one_of(
    st.builds(lambda op, value: {op: value}, st.sampled_from(["$eq", "$ne"]), VALUES),
    st.builds(lambda op, values: {op: values}, st.sampled_from(["$in", "$nin"]), st.lists(VALUES, min_size=1)),
    st.builds(lambda op, bound: {op: bound}, st.sampled_from(list(filters.RANGES)), st.one_of(NUMBERS, TEXTS)),
    st.builds(lambda low, high: {"$gte": low, "$lt": high}, NUMBERS, NUMBERS),
)
FILTERS = st.recursive(
    st.dictionaries(KEYS, st.one_of(VALUES, TESTS), max_size=2),
    lambda inner: st.one_of(
        st.builds(lambda op, parts: {op: parts}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=6,
)
FIELDS = st.dictionaries(KEYS, VALUES)


@pytest.mark.parametrize(
    ("where", "fields", "passes"),
    [
        ({}, {}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {}, False),
        ({"a": {"$ne": 1}}, {}, True),
        ({"a": {"$nin": [1, "x"]}}, {"a": True}, True),
        ({"a": {"$in": [1, "x"]}}, {"a": "x"}, True),
        ({"a": {"$gt": 1}}, {}, False),
        ({"a": {"$gt": 1}}, {"a": "2"}, False),
        ({"a": {"$lte": 1}}, {"a": False}, False),
        ({"a": {"$gte": "2024-01-05"}}, {"a": "2024-02-01"}, True),
        ({"a": {"$gte": 1, "$lt": 3}}, {"a": 3}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"$or": [{"a": 1}, {"b": 2}]}, {"b": 2}, True),
        ({"$and": [{"a": 1}, {"b": 2}]}, {"b": 2}, False),
        ({"$not": {"a": 1}}, {}, True),
        ({"$not": {"a": 1, "b": 2}}, {"a": 1, "b": 3}, True),
        ({"$not": {"a": {"$gt": 1}}}, {"a": "x"}, True),
    ],
)
def test_meaning(where: dict[str, Any], fields: dict[str, Any], passes: bool) -> None:
    """The meaning of each operator, of missing fields and of unlike kinds of values."""
    filters.check(where)
    assert filters.matches(where, fields) is passes


@pytest.mark.parametrize(
    "where",
    [
        [],
        "a",
        {"$near": 1},
        {"a": {"$near": 1}},
        {"a": {}},
        {"a": None},
        {"a": [1]},
        {"a": {"b": 1}},
        {"": 1},
        {1: 1},
        {"a": {"$in": []}},
        {"a": {"$in": "x"}},
        {"a": {"$in": [None]}},
        {"a": {"$gt": True}},
        {"a": {"$gt": float("nan")}},
        {"a": float("inf")},
        {"a": 2**63},
        {"$and": []},
        {"$and": {"a": 1}},
        {"$or": [1]},
        {"$not": [{"a": 1}]},
        {"$not": None},
        {"$and": [{"$or": [{"a": {"$eq": None}}]}]},
    ],
)
def test_bad_filters_are_refused(where: Any) -> None:
    """What isn't in the portable form is an error that lists the operators."""
    with pytest.raises(InvalidFilter, match=r"\$nin") as caught:
        filters.check(where)
    assert "Bad filter at" in caught.value.message


def test_filters_nest_to_a_bound() -> None:
    """Fifty in one another are read; what is deeper is refused in words, and exhausts no stack."""

    def nested(depth: int) -> Any:
        return {"$not": nested(depth - 1)} if depth else {"a": 1}

    filters.check(nested(filters.MOST_NESTED - 1))
    for depth in (filters.MOST_NESTED, 400):
        with pytest.raises(InvalidFilter, match="more than 50 filters"):
            filters.check(nested(depth))


@given(FILTERS, FIELDS)
def test_not_is_the_opposite(where: dict[str, Any], fields: dict[str, Any]) -> None:
    """$not of a filter passes exactly what the filter doesn't."""
    filters.check(where)
    assert filters.matches({"$not": where}, fields) is not filters.matches(where, fields)


@given(FILTERS, FIELDS)
def test_narrowing_lets_every_match_through(where: dict[str, Any], fields: dict[str, Any]) -> None:
    """What an engine is given, however little it can express, is never narrower than the filter."""
    expression = filters.narrow(
        where,
        leaf=lambda key, operator, operand: {key: {operator: operand}} if operator != "$nin" else None,
        all_of=lambda parts: {"$and": parts},
        any_of=lambda parts: {"$or": parts},
    )
    if filters.matches(where, fields):
        assert expression is None or filters.matches(expression, fields)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """An event loop that lasts for all examples."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module", params=["chroma", "chroma-server", "faiss", "faiss-hnsw", "tantivy", "rank-bm25"])
def backend(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """A store of each engine in turn, open for all examples."""
    engine = ENGINES[request.param]
    served = request.getfixturevalue(engine.server) if engine.server else {}
    context = opened(engine, tmp_path_factory.mktemp("filters"), {**engine.options, **served})
    yield runner.run(context.__aenter__())
    runner.run(context.__aexit__(None, None, None))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FIELDS, min_size=1, max_size=12), st.lists(FILTERS, min_size=1, max_size=12))
@example([{"a": 1}, {"a": 1.5}, {}], [{"a": {"$in": [1.5]}}, {"a": {"$nin": [1.5]}}, {"a": {"$lt": 1.5}}])
# So many, and few that pass, that an engine is asked which pass before it is asked which are near.
@example([{"a": n} for n in range(400)], [{"a": 7}, {"a": {"$lt": 2.5}}, {"$not": {"a": {"$gt": 0}}}])
def test_engines_agree_with_the_meaning(
    backend: Backend, runner: asyncio.Runner, rows: list[dict[str, Any]], wheres: list[dict[str, Any]]
) -> None:
    """On real engines a filter finds exactly the chunks that pass it."""
    records = [record(f"c{n}", **fields) for n, fields in enumerate(rows)]

    async def compare() -> None:
        await backend.store.delete(list(await backend.store.all_ids()))
        await backend.store.upsert(records)
        for where in wheres:
            filters.check(where)
            expected = {each.chunk_id for each in records if filters.matches(where, filters.fields_of(each))}
            assert {hit.chunk_id for hit in await backend.find("Quokka", k=20, where=where)} == expected, where

    runner.run(compare())


async def test_longest_lists_work(tmp_path: Path) -> None:
    """A list far beyond an engine's own limits still filters."""
    async with ChromaVectorStore(path=tmp_path) as store:
        vector = np.ones(2, dtype=np.float32)
        await store.upsert([ChunkRecord(f"c{n}", "d", vectors=(vector,), fields={"n": n}) for n in range(50)])
        where = {"n": {"$in": list(range(40, 80_000))}}
        assert {hit.chunk_id for hit in await store.search(vector, k=50, where=where)} == {
            f"c{n}" for n in range(40, 50)
        }
