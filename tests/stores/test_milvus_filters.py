"""What Milvus makes of filters and of odd or long input, on the real Milvus Lite."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.stores.test_filters import FIELDS, FILTERS
from tests.stores.test_milvus import Options, ids, unit

from leadline.errors import StoreError
from leadline.stores import filters, milvus_client, milvus_search
from leadline.stores.base import ChunkRecord
from leadline.stores.milvus import MilvusVectorStore


class TestFilters:
    """The portable filter, Milvus's own, and what lies beyond one answer of Milvus."""

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(FIELDS, min_size=1, max_size=12), st.lists(FILTERS, min_size=1, max_size=12))
    @example([{"a": 2**53}, {"a": 2**53 + 1}, {"a": "2"}, {"a": 2}], [{"a": {"$gt": 2.0**53}}, {"a": {"$in": [2, 3]}}])
    @example(
        [{"a": "o\"\\\n\x00'"}, {"a'\"\\[]": 1}], [{"a": "o\"\\\n\x00'"}, {"a": {"$gte": 'o"\\'}}, {"a'\"\\[]": 1}]
    )
    async def test_filter_means_the_same_as_everywhere(
        self, milvus_lite: Options, rows: list[dict[str, Any]], wheres: list[dict[str, Any]]
    ) -> None:
        """Milvus gives exactly the chunks that pass the filter in plain Python, and so does its BM25."""
        records = [ChunkRecord(f"c{n:02}", "d", "quokka", (unit(1, 0),), fields) for n, fields in enumerate(rows)]
        async with MilvusVectorStore(**milvus_lite, collection="filters", enable_bm25=True) as store:
            await store.clear()
            await store.upsert(records)
            for where in wheres:
                expected = [each.chunk_id for each in records if filters.matches(where, filters.fields_of(each))]
                assert ids(await store.search(unit(1, 0), k=20, where=where)) == expected, where
                assert ids(await store.lexical_search("quokka", k=20, where=where)) == expected, where

    async def test_more_chunks_than_one_answer_holds(
        self, milvus_options: Options, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where the filter lets few of many through, or k is large, all are found, whatever Milvus gives at once."""
        monkeypatch.setattr(milvus_client, "WINDOW", 32)
        monkeypatch.setattr(milvus_search, "WINDOW", 32)
        monkeypatch.setattr(milvus_client, "PAGE", 7)
        monkeypatch.setattr(milvus_search, "PAGE", 7)
        records = [ChunkRecord(f"c{n:03}", "d", vectors=(unit(100 - n, n),), fields={"n": n}) for n in range(100)]
        async with MilvusVectorStore(**milvus_options) as store:
            await store.upsert(records)
            for where, expected in (
                ({"$not": {"n": {"$lt": 90}}}, range(90, 100)),
                ({"n": {"$nin": list(range(97))}}, range(97, 100)),
                ({"n": {"$gte": 95}}, range(95, 100)),
                (None, range(100)),
            ):
                found = ids(await store.search(unit(1, 0), k=200, where=where))
                assert found == [f"c{n:03}" for n in expected], where
            assert ids(await store.search(unit(1, 0), k=2, where={"$not": {"n": {"$lt": 60}}})) == ["c060", "c061"]
            assert len(await store.all_ids()) == 100

    async def test_longest_lists_work(self, milvus_options: Options) -> None:
        """A list far beyond an engine's own limits still filters."""
        async with MilvusVectorStore(**milvus_options) as store:
            await store.upsert([ChunkRecord(f"c{n}", "d", vectors=(unit(1, 0),), fields={"n": n}) for n in range(50)])
            hits = await store.search(unit(1, 0), k=50, where={"n": {"$in": list(range(40, 8_000))}})
            assert set(ids(hits)) == {f"c{n}" for n in range(40, 50)}

    async def test_text_is_an_expression_of_milvus(self, milvus_options: Options) -> None:
        """It is taken as it is, also together with what the store adds; a bad one is an error."""
        async with MilvusVectorStore(**milvus_options, enable_bm25=True) as store:
            records = [ChunkRecord(f"c{n}", "d", "wombat", (unit(1, n),), {"n": n, "lang": "de"}) for n in range(5)]
            await store.upsert(records)
            native = 'fields["n"] > 3 or chunk_id == "c1"'
            assert ids(await store.search(unit(1, 0), k=5, where=native)) == ["c1", "c4"]
            assert ids(await store.lexical_search("wombat", k=5, where=native)) == ["c1", "c4"]
            assert len(await store.search(unit(1, 0), k=5, where='fields["lang"] like "d%" and fields["n"] != 0')) == 4
            assert len(await store.search(unit(1, 0), k=9, where=" ")) == 5
            with pytest.raises(StoreError, match="nonsense ==="):
                await store.search(unit(1, 0), k=5, where="nonsense ===")

    async def test_odd_ids(self, milvus_options: Options) -> None:
        """Ids may hold anything that stores take, up to 64 characters of four bytes."""
        odd = [
            "a'b",
            'a"b',
            "a\\b",
            "a b",
            "#1",
            "a#1",
            "é",
            "😀" * 64,
            "\n",
            "=41=",
            "%",
            "{x}",
            "a=",
            "=",
        ]
        records = [ChunkRecord(name, "d", vectors=(unit(1, 0), unit(0, 1))) for name in odd]
        async with MilvusVectorStore(**milvus_options) as store:
            await store.upsert(records)
            await store.upsert(records)
            assert await store.all_ids() == set(odd)
            assert await store.existing_ids([*odd, "b"]) == set(odd)
            assert set(ids(await store.search(unit(1, 0), k=99))) == set(odd)
            assert ids(await store.search(unit(1, 0), k=9, where={"chunk_id": "a'b"})) == ["a'b"]
            for left, name in enumerate(reversed(odd)):
                assert await store.delete([name]) == 1, name
                assert await store.count() == len(odd) - 1 - left

    async def test_what_is_too_long_is_refused_by_name(self, milvus_options: Options) -> None:
        """A text beyond Milvus's limit is an error that names the chunk, not a text cut short."""
        async with MilvusVectorStore(**milvus_options, enable_bm25=True, dense=False) as store:
            with pytest.raises(StoreError, match="'long' is too long for Milvus"):
                await store.upsert([ChunkRecord("long", "d", "wombat " * 20_000)])
            assert await store.all_ids() == set()
