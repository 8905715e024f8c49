"""OpenSearch: the requests are in the documented form, and words and vectors are found by it.

The stand-in (`tests/servers/opensearch_server.py`) speaks the documented wire format and refuses everything else; it is
not OpenSearch. Words are analysed and ranked by `osmem-server`, a fake over real HTTP. The contract suite runs on both,
and on a real server where LEADLINE_TEST_OPENSEARCH_URL names one. Pages cited are at docs.opensearch.org/latest.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from opensearchpy import AsyncOpenSearch
from tests.servers.opensearch_server import OpenSearchStandIn
from tests.stores.width_two import EAST, NORTH, NORTH_EAST, chunk, vector

from leadline.analysis import Analyzer
from leadline.errors import InvalidFilter, ManifestMismatch, StoreError
from leadline.stores import open_lexical_store, opensearch_schema
from leadline.stores.opensearch import OpenSearchVectorStore


def bodies(standin: OpenSearchStandIn, path: str) -> list[Any]:
    """What was sent to addresses that end so."""
    return [body for _, address, body in standin.requests if address.split("?")[0].endswith(path)]


class TestRequests:
    """What goes over the wire."""

    async def test_index_for_vectors_and_words(self, opensearch_standin: OpenSearchStandIn) -> None:
        """vector-search/creating-vector-index, and im-plugin/index-settings for `index.knn`; text and vectors are left
        out of `_source` (mappings/metadata-fields/source)."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i", metric_type="ip") as store:
            await store.ensure_ready(2)
        [(method, path, body)] = [request for request in opensearch_standin.requests if request[0] == "PUT"]
        assert (method, path) == ("PUT", "/i")
        assert body["settings"] == {"index": {"knn": True}}
        assert body["mappings"]["_source"] == {"excludes": ["text", "vector"]}
        assert body["mappings"]["dynamic"] == "strict"
        assert body["mappings"]["properties"] == {
            "chunk_id": {"type": "keyword"},
            "vectors": {"type": "integer"},
            "fields": {"type": "keyword"},
            "text": {"type": "text", "analyzer": "english"},
            "vector": {
                "type": "knn_vector",
                "dimension": 2,
                "method": {"name": "hnsw", "engine": "lucene", "space_type": "innerproduct"},
            },
        }

    async def test_index_for_words_alone(self, opensearch_standin: OpenSearchStandIn) -> None:
        """A lexical leg's index has no vector field, also where it is told a width."""
        options = {"url": opensearch_standin.url}
        async with open_lexical_store(
            "opensearch", path=Path(), analyzer=Analyzer("none"), index="i", options=options
        ) as store:
            await store.ensure_ready(2)
        [body] = [body for method, _, body in opensearch_standin.requests if method == "PUT"]
        assert body["settings"] == {}
        assert "vector" not in body["mappings"]["properties"]
        assert body["mappings"]["properties"]["text"]["analyzer"] == "standard"

    async def test_bulk_names_each_document_and_refreshes(self, opensearch_standin: OpenSearchStandIn) -> None:
        """api-reference/document-apis/bulk: an action line, then the document; deletes have none. A second vector is
        a document of its own, and goes when the chunk has it no longer."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
            await store.upsert([chunk("a", EAST, NORTH, text="two\nlines \u2028")])
            await store.upsert([chunk("a", EAST)])
            assert await store.delete(["a"]) == 1
        written, replaced, deleted = [
            [json.loads(line) for line in body.split("\n")[:-1]] for body in bodies(opensearch_standin, "_bulk")
        ]
        shared = {"chunk_id": "a", "fields": ["chunk_id=a", "doc_id=d"]}
        assert written == [
            {"index": {"_id": "a"}},
            {**shared, "vectors": 2, "text": "two\nlines \u2028", "vector": EAST},
            {"index": {"_id": "a\x1f1"}},
            {**shared, "vector": NORTH},
        ]
        assert replaced[2:] == [{"delete": {"_id": "a\x1f1"}}]
        assert deleted == [{"delete": {"_id": "a"}}]
        assert [path for _, path, _ in opensearch_standin.requests if "_bulk" in path] == ["/i/_bulk?refresh=true"] * 3

    async def test_knn_query_filters_before_the_cut(self, opensearch_standin: OpenSearchStandIn) -> None:
        """query-dsl/specialized/k-nn: `vector`, `k` and `filter`; sources are not asked for."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
            await store.upsert([chunk("a", EAST, page=1), chunk("b", EAST, page=2)])
            hits = await store.search(vector(EAST), k=1, where={"page": {"$in": [2, "x"]}, "$not": {"draft": True}})
        assert [hit.chunk_id for hit in hits] == ["b"]
        [body] = bodies(opensearch_standin, "_search")
        assert body["_source"] is False
        knn = body["query"]["knn"]["vector"]
        assert (knn["vector"], knn["k"], body["size"]) == (EAST, 100, 100)
        two = f"page#{opensearch_schema.sortable(2)}"
        assert knn["filter"] == {
            "bool": {
                "filter": [
                    {"terms": {"fields": [two, "page=x"]}},
                    {"bool": {"must_not": [{"term": {"fields": "draft?true"}}]}},
                ]
            }
        }

    async def test_known_ids_are_read_in_real_time(self, opensearch_standin: OpenSearchStandIn) -> None:
        """api-reference/document-apis/multi-get: one request, which sees what no search does yet."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
            await store.upsert([chunk("a", EAST)])
            index = opensearch_standin.indexes["i"]
            index.written["b"] = {**index.written["a"], "_id": "b"}
            opensearch_standin.requests.clear()
            assert await store.existing_ids(["a", "b", "c", "a"]) == {"a", "b"}
        assert bodies(opensearch_standin, "_mget") == [{"ids": ["a", "b", "c"]}]
        assert len(opensearch_standin.requests) == 1

    async def test_all_ids_are_paged_past_the_window(self, opensearch_standin: OpenSearchStandIn) -> None:
        """search-plugins/searching-data/point-in-time with `search_after`; the snapshot is given back."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
            assert await store.all_ids() == set()
            await store.ensure_ready(2)
            ids = {f"c{n}" for n in range(10_001)}
            opensearch_standin.indexes["i"].visible = {key: {"_id": key, "chunk_id": key, "vectors": 1} for key in ids}
            opensearch_standin.requests.clear()
            assert await store.all_ids() == ids
        pages = bodies(opensearch_standin, "_search")
        assert [page.get("search_after") for page in pages] == [None, ["c9998"]]
        assert opensearch_standin.snapshots == {}

    async def test_large_k_is_the_window(self, opensearch_standin: OpenSearchStandIn) -> None:
        """index.max_result_window is 10,000."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
            await store.upsert([chunk("a", EAST)])
            assert len(await store.search(vector(EAST), k=50_000)) == 1
        assert bodies(opensearch_standin, "_search")[0]["size"] == 10_000


class TestScores:
    """Higher is better, whatever is measured."""

    @pytest.mark.parametrize(("metric", "best"), [("cosine", 1.0), ("l2", 1.0), ("ip", 2.0)])
    async def test_each_metric_ranks_nearest_first(
        self, opensearch_standin: OpenSearchStandIn, metric: Any, best: float
    ) -> None:
        """The scores are OpenSearch's own."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i", metric_type=metric) as store:
            await store.upsert([chunk("far", NORTH), chunk("near", NORTH_EAST), chunk("same", EAST)])
            hits = await store.search(vector(EAST), k=3)
        assert [hit.chunk_id for hit in hits] == ["same", "near", "far"]
        assert hits[0].score == pytest.approx(best)

    async def test_best_vector_of_a_chunk_counts(self, opensearch_standin: OpenSearchStandIn) -> None:
        """A chunk comes once, and many of its vectors don't push others out."""
        async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
            await store.upsert([chunk("many", *([EAST] * 150), NORTH), chunk("one", NORTH_EAST)])
            hits = await store.search(vector(EAST), k=2)
            assert await store.count() == 2
        assert [hit.chunk_id for hit in hits] == ["many", "one"]
        assert [round(hit.score, 3) for hit in hits] == [1.0, 0.9]


class TestWords:
    """BM25 by OpenSearch's analyser, on `osmem-server`."""

    @pytest.fixture
    def url(self, opensearch_words_options: dict[str, Any]) -> str:
        """Where the fake is."""
        return str(opensearch_words_options["url"])

    async def test_stems_and_stop_words(self, url: str) -> None:
        """`english` cuts endings, and a question of stop words alone shares no term with anything."""
        async with OpenSearchVectorStore(url=url, index="w1", dense=False, analyzer=Analyzer()) as store:
            await store.upsert([chunk("a", text="She was running."), chunk("b", text="The cat sat.")])
            assert [hit.chunk_id for hit in await store.lexical_search("runs", k=5)] == ["a"]
            assert await store.lexical_search("the", k=5) == []
            assert await store.lexical_search("", k=5) == []

    async def test_text_that_is_no_unicode_harms_nothing(self, url: str) -> None:
        """A lone surrogate, as a broken file may give, spoils neither its chunk nor the others."""
        async with OpenSearchVectorStore(url=url, index="w9", dense=False) as store:
            await store.upsert([chunk("a", text="quokka \ud800"), chunk("b")])
            hits = await store.lexical_search("\udfff quokka", k=5)
        assert {hit.chunk_id for hit in hits} == {"a", "b"}

    async def test_another_analyser_by_name(self, url: str) -> None:
        """`text_analyzer` is any of OpenSearch's own, and another one later is refused."""
        async with OpenSearchVectorStore(url=url, index="w2", dense=False, text_analyzer="whitespace") as store:
            await store.upsert([chunk("a", text="Don't-split this")])
            assert [hit.chunk_id for hit in await store.lexical_search("Don't-split", k=5)] == ["a"]
            assert await store.lexical_search("split", k=5) == []
        with pytest.raises(ManifestMismatch, match="whitespace"):
            async with OpenSearchVectorStore(url=url, index="w2", analyzer=Analyzer()):
                pass

    async def test_long_question_is_cut(self, url: str) -> None:
        """OpenSearch takes at most 1024 clauses; the first 500 words are asked."""
        async with OpenSearchVectorStore(url=url, index="w3", dense=False) as store:
            await store.upsert([chunk("a", text="quokka"), chunk("b", text="numbat")])
            words = ["quokka", *(f"w{n}" for n in range(2000)), "numbat"]
            assert [hit.chunk_id for hit in await store.lexical_search(" ".join(words), k=5)] == ["a"]

    async def test_text_is_not_kept(self, url: str) -> None:
        """What the server gives back of a document has neither text nor vector."""
        async with OpenSearchVectorStore(url=url, index="w4") as store:
            await store.upsert([chunk("a", EAST, text="secret words", page=1)])
        client = AsyncOpenSearch(hosts=[url])
        try:
            kept = await client.get(index="w4", id="a")
        finally:
            await client.close()
        assert set(kept["_source"]) == {"chunk_id", "fields", "vectors"}
        assert "secret" not in json.dumps(kept)

    async def test_native_filter_is_query_dsl(self, url: str) -> None:
        """As JSON text; one that isn't JSON, or that OpenSearch doesn't know, is the caller's fault."""
        async with OpenSearchVectorStore(url=url, index="w5", dense=False, analyzer=Analyzer()) as store:
            await store.upsert([chunk("a", file="report-1"), chunk("b", file="letter")])
            native = '{"prefix": {"fields": "file=report"}}'
            assert [hit.chunk_id for hit in await store.lexical_search("quokka", k=5, where=native)] == ["a"]
            for wrong in ("no json", "[]", '{"nearly": {}}'):
                with pytest.raises(InvalidFilter, match="native filter"):
                    await store.lexical_search("quokka", k=5, where=wrong)

    async def test_chunks_without_vectors_make_no_index_for_vectors(self, url: str) -> None:
        """A vector leg refuses them, and the index is made once a width is known; a store for both has to be told."""
        async with OpenSearchVectorStore(url=url, index="w7") as vectors:
            assert await vectors.upsert([chunk("bare")]) == 1
            assert await vectors.upsert([chunk("bare"), chunk("a", EAST)]) == 1
            assert await vectors.all_ids() == {"a"}
        async with OpenSearchVectorStore(url=url, index="w8", analyzer=Analyzer()) as both:
            with pytest.raises(StoreError, match="how wide"):
                await both.upsert([chunk("bare")])
            await both.ensure_ready(2)
            assert await both.upsert([chunk("bare"), chunk("a", EAST)]) == 0
            assert await both.all_ids() == {"bare", "a"}
            assert [hit.chunk_id for hit in await both.lexical_search("quokka", k=5)] == ["a", "bare"]

    async def test_legs_can_share_one_index(self, url: str) -> None:
        """Vectors and words of a chunk are one document: the vector leg counts and removes what has vectors, and
        leaves what is there for its words alone."""
        records = [chunk("a", EAST), chunk("bare"), chunk("zero", [0.0, 0.0])]
        async with (
            OpenSearchVectorStore(url=url, index="w6") as vectors,
            OpenSearchVectorStore(url=url, index="w6", dense=False, analyzer=Analyzer()) as words,
        ):
            await vectors.ensure_ready(2)
            await words.ensure_ready()
            assert await words.upsert(records) == 0
            assert await vectors.upsert(records) == 2
            assert (await vectors.all_ids(), await vectors.count()) == ({"a"}, 1)
            assert await vectors.existing_ids(["a", "bare"]) == {"a"}
            assert await words.all_ids() == {"a", "bare", "zero"}
            assert {hit.chunk_id for hit in await words.lexical_search("quokka", k=5)} == {"a", "bare", "zero"}
            assert await vectors.upsert([chunk("a")]) == 1
            assert await vectors.all_ids() == set()
