"""OpenSearch: the portable filter as Query DSL is exact.

Evaluated by the stand-in's few lines (`tests/servers/opensearch_query.py`) and, over HTTP, by `osmem-server`, a fake of
OpenSearch with an evaluation of its own.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.servers.opensearch_query import passes
from tests.stores.test_filters import FIELDS, FILTERS
from tests.stores.width_two import chunk

from leadline.errors import InvalidFilter
from leadline.stores import filters, opensearch_schema
from leadline.stores.opensearch import OpenSearchVectorStore

# Beside the usual fields and filters, any name and any value: signs of our own and of the engine among them.
NAMES = st.one_of(st.sampled_from(["a", "a=", "a#", "a?", "%3d", "a.b"]), st.text(min_size=1, max_size=3)).filter(
    lambda name: not name.startswith("$")
)
ODD_VALUES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.text())
ODD_FIELDS = st.dictionaries(NAMES, st.one_of(ODD_VALUES, st.booleans()), max_size=4)
ODD_FILTERS = st.dictionaries(
    NAMES, st.one_of(ODD_VALUES, st.builds(lambda op, bound: {op: bound}, st.sampled_from(["$gt", "$lte"]), ODD_VALUES))
)


@settings(deadline=None)
@given(where=st.one_of(FILTERS, ODD_FILTERS), fields=st.one_of(FIELDS, ODD_FIELDS))
def test_query_means_what_the_filter_means(where: dict[str, Any], fields: dict[str, Any]) -> None:
    """For random filters and fields: OpenSearch lets through just what passes."""
    query = opensearch_schema.filter_query(where)
    assert passes(query, {"fields": opensearch_schema.terms(fields)}) is filters.matches(where, fields)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    wheres=st.lists(st.one_of(FILTERS, ODD_FILTERS), min_size=10, max_size=10),
    all_fields=st.lists(st.one_of(FIELDS, ODD_FIELDS), min_size=1, max_size=8),
)
async def test_server_means_the_same(
    opensearch_words_options: dict[str, Any], wheres: list[dict[str, Any]], all_fields: list[dict[str, Any]]
) -> None:
    """Random filters over random chunks, answered by `osmem-server`, which evaluates Query DSL by itself."""
    records = [replace(chunk(f"c{n}"), fields=fields) for n, fields in enumerate(all_fields)]
    async with OpenSearchVectorStore(url=opensearch_words_options["url"], index="f1", dense=False) as store:
        await store.clear()
        await store.upsert(records)
        for where in wheres:
            expected = {each.chunk_id for each in records if filters.matches(where, filters.fields_of(each))}
            assert {hit.chunk_id for hit in await store.lexical_search("quokka", k=10, where=where)} == expected


@pytest.mark.parametrize(
    ("where", "fields", "expected"),
    [
        ({"a": {"$gt": 2**53}}, {"a": 2**53 + 1}, True),
        ({"a": 2.0**53}, {"a": 2**53 + 1}, False),
        ({"a": {"$lt": -(2**62)}}, {"a": -(2**62) - 1}, True),
        ({"a": {"$gt": 2**62}}, {"a": 10**400}, True),
        ({"a": {"$lt": 2**62}}, {"a": -(10**400)}, True),
        ({"a": {"$gt": 1e300}}, {"a": 2**70}, False),
        ({"a": 2.0**70}, {"a": 2**70 + 1}, False),
        ({"a": {"$lt": 0}}, {"a": float("-inf")}, True),
        ({"a": {"$ne": 1}}, {"a": float("nan")}, True),
        ({"a": {"$gt": 1}}, {"a": float("nan")}, False),
        ({"a": 0.0}, {"a": -0.0}, True),
        ({"a=b": "c"}, {"a": "b=c"}, False),
        ({"a%": "c"}, {"a%": "c"}, True),
        ({"a": "x" * 5000}, {"a": "x" * 5000}, True),
        ({"a": "x" * 5000}, {"a": "x" * 5001}, False),
        ({"a": {"$gt": "x" * 4000}}, {"a": "x" * 5000}, True),
        ({"k" * 600: 1}, {"k" * 600: 1}, True),
        ({"k" * 600: 1}, {"k" * 601: 1}, False),
        ({"a": {"$gt": "\uffff"}}, {"a": "\U00010000"}, True),
    ],
)
def test_edges(where: dict[str, Any], fields: dict[str, Any], expected: bool) -> None:
    """Numbers beyond what a double holds, long strings and names, and signs of our own are told apart."""
    assert filters.matches(where, fields) is expected
    document = {"fields": opensearch_schema.terms(fields)}
    assert passes(opensearch_schema.filter_query(where), document) is expected
    assert all(len(term.encode()) <= 32_766 for term in document["fields"])


def test_range_of_a_very_long_string_is_refused() -> None:
    """Only the first characters of a string are in order; a longer bound has no exact form."""
    with pytest.raises(InvalidFilter, match="4001 characters"):
        opensearch_schema.filter_query({"a": {"$gte": "x" * 4001}})


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False))))
def test_numbers_keep_their_order_as_text(numbers: list[float]) -> None:
    """Sorted as text they are sorted as numbers, and equal ones are the same text."""
    spelt = {opensearch_schema.sortable(number) for number in numbers}
    assert len(spelt) == len(set(numbers))
    assert sorted(map(opensearch_schema.sortable, numbers)) == list(map(opensearch_schema.sortable, sorted(numbers)))
