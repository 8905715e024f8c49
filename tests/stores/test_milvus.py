"""Milvus beyond the contract, on the real Milvus Lite: both kinds of search in one collection, and whose it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from pymilvus import MilvusClient

from leadline.analysis import Analyzer
from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores import milvus_client, milvus_rows, open_lexical_store
from leadline.stores.base import ChunkRecord, Hit, Vector
from leadline.stores.milvus import MilvusVectorStore

Options = Mapping[str, Any]


def unit(*values: float) -> Vector:
    """A vector of a few numbers."""
    return np.array(values, dtype=np.float32)


def ids(hits: Sequence[Hit]) -> list[str]:
    """The chunk ids of hits."""
    return [hit.chunk_id for hit in hits]


class TestBothKinds:
    """One collection with vectors and words."""

    async def test_chunk_without_a_vector_is_found_by_its_words(self, milvus_options: Options) -> None:
        """It is kept for them, no vector search sees it, and it goes when it is deleted or gets a vector."""
        chunks = [
            ChunkRecord("a", "d", "the wombat digs", (unit(1, 0),)),
            ChunkRecord("b", "d", "the wombat sleeps", (unit(0, 0),)),
            ChunkRecord("c", "d", "a wombat", ()),
        ]
        async with MilvusVectorStore(**milvus_options, enable_bm25=True) as store:
            await store.ensure_ready(2)
            assert await store.upsert(chunks) == 0
            assert sorted(ids(await store.lexical_search("wombats", k=5))) == ["a", "b", "c"]
            for vector in (unit(1, 0), unit(0, 1), unit(-1, 0)):
                assert ids(await store.search(vector, k=5)) == ["a"]
            assert await store.all_ids() == {"a", "b", "c"}
            assert await store.count() == 3
            assert await store.delete(["b"]) == 1
            assert sorted(ids(await store.lexical_search("wombat", k=5))) == ["a", "c"]
            assert await store.upsert([ChunkRecord("c", "d", "a numbat", (unit(0, 1),))]) == 0
            assert ids(await store.lexical_search("wombat", k=5)) == ["a"]
            assert ids(await store.search(unit(0, 1), k=1)) == ["c"]

    async def test_several_vectors_count_their_words_once(self, milvus_options: Options) -> None:
        """The best vector of a chunk counts, its words are scored once, and none of a former version stays."""
        async with MilvusVectorStore(**milvus_options, enable_bm25=True) as store:
            many = tuple(unit(np.cos(n), np.sin(n)) for n in range(6))
            await store.upsert([ChunkRecord("a", "d", "wombat", many), ChunkRecord("b", "d", "wombat", (unit(0, 1),))])
            hits = await store.lexical_search("wombat", k=5)
            assert ids(hits) == ["a", "b"]
            assert hits[0].score == hits[1].score
            assert ids(await store.search(many[3], k=2)) == ["a", "b"]
            await store.upsert([ChunkRecord("a", "d", "numbat", many[:2])])
            assert (await store.search(many[3], k=1))[0].score < 0.99
            assert await store.count() == 2
            assert await store.delete(["a"]) == 1
            assert ids(await store.search(many[1], k=9)) == ["b"]

    async def test_words_are_those_of_the_analyser(self, milvus_options: Options) -> None:
        """Both sides go through our own analyser: endings, identifiers and scripts without spaces are found."""
        texts = {"en": "Running the marathons", "id": "error ERR-4021 in C++", "zh": "東京特許許可局", "none": "…"}
        async with MilvusVectorStore(**milvus_options, enable_bm25=True, dense=False) as store:
            await store.ensure_ready()
            await store.upsert([ChunkRecord("none", "d", "…")])
            assert await store.lexical_search("run", k=3) == []
            await store.upsert([ChunkRecord(name, "d", text) for name, text in texts.items()])
            for question, name in (("marathon runs", "en"), ("4021", "id"), ("c++", "id"), ("特許", "zh")):
                assert ids(await store.lexical_search(question, k=3)) == [name], question
            assert await store.lexical_search("…", k=3) == []
            assert await store.lexical_search("absent", k=3) == []
            assert await store.count() == 4

    async def test_lexical_backend_always_has_bm25(self, milvus_lite: Options, tmp_path: Path) -> None:
        """As the keyword leg it holds words alone, by the analyser of the settings, and no option changes that."""
        place = {"path": tmp_path, "index": f"t{uuid4().hex}", "analyzer": Analyzer("none")}
        async with open_lexical_store("milvus", **place, options=milvus_lite) as store:
            await store.ensure_ready(384)
            assert await store.upsert([ChunkRecord("a", "d", "running"), ChunkRecord("b", "d", "runs")]) == 0
            assert ids(await store.lexical_search("runs", k=3)) == ["b"]
            assert (await store.stats())["analyzer"] == "leadline-1/none"
        with pytest.raises(ConfigError, match="no option enable_bm25"):
            open_lexical_store("milvus", **place, options={**milvus_lite, "enable_bm25": False})

    async def test_what_it_does_not_have_is_said(self, milvus_options: Options) -> None:
        """Lexical search without BM25 and vector search without vectors are errors that name the option."""
        async with MilvusVectorStore(**milvus_options) as store:
            with pytest.raises(StoreError, match="enable_bm25=True"):
                await store.lexical_search("x", k=1)
        async with MilvusVectorStore(**milvus_options, enable_bm25=True, dense=False) as store:
            with pytest.raises(StoreError, match="dense=True"):
                await store.search(unit(1, 0), k=1)
        with pytest.raises(ConfigError, match="holds nothing"):
            MilvusVectorStore(**milvus_options, dense=False)
        async with MilvusVectorStore(**milvus_options) as store:
            with pytest.raises(StoreError, match="width of its vectors"):
                await store.ensure_ready()


class TestShape:
    """A collection is used only with the settings it was made with."""

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ({"metric_type": "L2"}, "has the metric COSINE, not L2"),
            ({"enable_bm25": True}, "has no BM25"),
            ({"enable_bm25": True, "dense": False}, "has vectors and has no BM25"),
        ],
    )
    async def test_other_settings_are_refused_on_opening(
        self, milvus_options: Options, other: Options, message: str
    ) -> None:
        """The error names what differs, and nothing is changed."""
        async with MilvusVectorStore(**milvus_options) as store:
            await store.upsert([ChunkRecord("a", "d", vectors=(unit(1, 0),))])
        with pytest.raises(ManifestMismatch, match=f"{milvus_options['collection']} at .* {message}"):
            async with MilvusVectorStore(**milvus_options, **other):
                pass
        async with MilvusVectorStore(**milvus_options) as store:
            assert await store.all_ids() == {"a"}

    async def test_another_width_is_refused(self, milvus_options: Options) -> None:
        """In ensure_ready, upsert and search; clear keeps the width."""
        async with MilvusVectorStore(**milvus_options) as store:
            await store.ensure_ready(2)
            await store.clear()
        async with MilvusVectorStore(**milvus_options) as store:
            for attempt in (
                store.ensure_ready(3),
                store.upsert([ChunkRecord("a", "d", vectors=(unit(1, 0, 0),))]),
                store.search(unit(1, 0, 0), k=1),
            ):
                with pytest.raises(ManifestMismatch, match="2 wide, not 3"):
                    await attempt

    async def test_another_analyser_is_refused(self, milvus_options: Options) -> None:
        """Terms of two analysers don't meet."""
        async with MilvusVectorStore(**milvus_options, enable_bm25=True, dense=False) as store:
            await store.ensure_ready()
        with pytest.raises(ManifestMismatch, match="has BM25 with leadline-1/english"):
            async with MilvusVectorStore(**milvus_options, enable_bm25=True, dense=False, analyzer=Analyzer("none")):
                pass

    async def test_somebody_elses_collection_is_left_alone(self, milvus_options: Options) -> None:
        """A collection that Leadline didn't make is an error, not overwritten."""
        client = MilvusClient(milvus_options["url"], dedicated=True)
        client.create_collection(milvus_options["collection"], dimension=2)
        client.close()
        with pytest.raises(StoreError, match="not made by Leadline"):
            async with MilvusVectorStore(**milvus_options):
                pass

    async def test_half_made_collection_is_finished(self, milvus_options: Options) -> None:
        """A process that died between making a collection and its indexes does no harm."""
        shape = milvus_rows.Shape(2, "COSINE", "leadline-1/english")
        client = MilvusClient(milvus_options["url"], dedicated=True)
        client.create_collection(milvus_options["collection"], schema=milvus_client._schema(shape))
        client.close()
        async with MilvusVectorStore(**milvus_options, enable_bm25=True) as store:
            await store.upsert([ChunkRecord("a", "d", "wombat", (unit(1, 0),))])
            assert ids(await store.search(unit(1, 0), k=1)) == ids(await store.lexical_search("wombat", k=1)) == ["a"]

    @pytest.mark.parametrize(("metric", "best", "score"), [("L2", "near", -1.0), ("IP", "far", 9.0)])
    async def test_scores_rise_with_every_metric(
        self, milvus_options: Options, metric: Any, best: str, score: float
    ) -> None:
        """Higher is better, also where Milvus gives distances."""
        async with MilvusVectorStore(**milvus_options, metric_type=metric) as store:
            chunks = [ChunkRecord("near", "d", vectors=(unit(1, 1),)), ChunkRecord("far", "d", vectors=(unit(9, 0),))]
            await store.upsert(chunks)
            hits = await store.search(unit(1, 0), k=2)
            assert hits[0].chunk_id == best
            assert hits[0].score == pytest.approx(score)
            assert hits[0].score > hits[1].score
