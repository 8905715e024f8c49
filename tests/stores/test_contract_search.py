"""What every index promises of a search: at most k hits, best first, filtered before the cut."""

import numpy as np
import pytest
from tests.stores.engines import DIMENSION, Backend, record

from leadline.errors import InvalidFilter, StoreError


async def test_ranks_count_from_zero_and_scores_fall(backend: Backend) -> None:
    """Rank 0 is the best; no later hit has a higher score."""
    await backend.store.upsert([record(f"c{n}", ["Quokka"] * (n % 3 + 1)) for n in range(9)])
    hits = await backend.find("Quokka", k=5)
    assert [hit.rank for hit in hits] == [0, 1, 2, 3, 4]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(type(hit.score) is float for hit in hits)


async def test_equal_chunks_come_in_the_same_order(backend: Backend) -> None:
    """Ties are broken by chunk id, whatever the order they came in."""
    await backend.store.upsert([record("b"), record("c"), record("a")])
    await backend.store.upsert([record("d")])
    assert await backend.find_ids("Quokka") == ["a", "b", "c", "d"]


async def test_k_may_exceed_what_is_stored(backend: Backend) -> None:
    """Fewer than k hits are no error."""
    await backend.store.upsert([record("a"), record("b")])
    assert len(await backend.find("Quokka", k=5000)) == 2
    assert len(await backend.find("Quokka", k=10**9)) == 2
    assert await backend.find("Quokka", k=0) == []


async def test_empty_store_has_no_hits(backend: Backend) -> None:
    """Nothing stored, nothing found."""
    assert await backend.find("Quokka") == []
    assert await backend.find("Quokka", where={"page": 1}) == []


async def test_filter_applies_before_the_cut(backend: Backend) -> None:
    """One matching chunk behind many better ones that don't match is found."""
    await backend.store.upsert([record(f"c{n}", ["Quokka"] * 3, page=1) for n in range(60)])
    await backend.store.upsert([record("wanted", ["Quokka", "Numbat"], page=2.5, lang="de")])
    for where in (
        {"page": {"$gt": 2.25}},
        {"lang": {"$gte": "de"}},
        {"$not": {"page": 1}},
        {"page": {"$lt": 2.75, "$gte": 1.5}},
        {"doc_id": "doc-wanted"},
        {"chunk_id": {"$in": ["wanted", "c999"]}},
    ):
        hits = await backend.find("Quokka", k=1, where=where)
        assert [hit.chunk_id for hit in hits] == ["wanted"], where
    assert await backend.find("Quokka", where={"page": "1"}) == []


@pytest.mark.parametrize("number", [np.nan, np.inf, 0.0])
async def test_a_question_that_is_no_direction_is_refused(vectors: Backend, number: float) -> None:
    """Not finite or all zero: an error, also on an empty store."""
    with pytest.raises(StoreError, match="finite and not all zero"):
        await vectors.store.search(np.full(DIMENSION, number, dtype=np.float32), k=1)


async def test_empty_filter_is_none(backend: Backend) -> None:
    """{} lets everything through."""
    await backend.store.upsert([record("a")])
    assert await backend.find_ids("Quokka", where={}) == ["a"]


async def test_bad_filter_is_refused(backend: Backend) -> None:
    """A filter that isn't in the portable form is an error, also on an empty store."""
    with pytest.raises(InvalidFilter, match=r"\$near"):
        await backend.find("Quokka", where={"page": {"$near": 1}})


async def test_field_names_are_free(backend: Backend) -> None:
    """A source's metadata may have any key, also ones an engine keeps for itself."""
    fields = {"#odd": 1, "chroma:document": "x", "leadline:vectors": 3, "a.b": True, "ключ": "значение"}
    await backend.store.upsert([record("a", **fields), record("b")])
    for key, value in fields.items():
        assert await backend.find_ids("Quokka", where={key: value}) == ["a"], key


async def test_best_vector_of_a_chunk_counts(vectors: Backend) -> None:
    """A chunk of several vectors is one hit, by the one that is nearest; k counts chunks."""
    topics = ["Quokka", "Numbat", "Wombat", "Bilby"]
    await vectors.store.upsert([record("many", topics), record("one", "Quokka"), record("other", "Dingo")])
    for topic in topics:
        hits = await vectors.find(topic, k=3)
        assert hits[0].chunk_id in ("many", "one")
        assert hits[0].score > 0.99
        assert len({hit.chunk_id for hit in hits}) == len(hits) == 3
    await vectors.store.upsert([record("many", topics[:1])])
    assert await vectors.find_ids("Bilby") == []
    assert await vectors.store.count() == 3
