"""Hits become documents: in order, with text and place, live ones only, and enough of them."""

import logging
from collections.abc import Callable, Sequence

import pytest

from leadline.drafts import SourceDraft
from leadline.errors import StoreError, TextMissing
from leadline.knowledge import KnowledgeBase, Library, retrievers
from leadline.records import Document
from leadline.stores.base import Hit
from leadline.stores.catalog_pending import NewVersion, PlacedChunk, add_pending

MakeDraft = Callable[..., SourceDraft]


def hits(*ids: str) -> list[Hit]:
    """Hits of these chunks, best first."""
    return [Hit(chunk_id, 1.0 / (rank + 1), rank) for rank, chunk_id in enumerate(ids)]


async def test_hits_keep_their_order_and_scores(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Any order of hits is the order of documents; ranks are counted among what is shown."""
    (put,) = await kb.put([draft("a.md", *(f"Fact {i}." for i in range(6)))])
    ids = [put.chunk_ids[i] for i in (4, 0, 5, 2)]
    documents = await kb.hydrate(hits(*ids), "vector")
    assert [d["content"] for d in documents] == ["Fact 4.", "Fact 0.", "Fact 5.", "Fact 2."]
    assert [d["metadata"]["found_by"] for d in documents] == [
        {"vector": {"rank": rank, "score": 1.0 / (rank + 1)}} for rank in range(4)
    ]
    assert await kb.hydrate([], "vector") == []


async def test_a_hit_without_text_is_left_out_and_counted(
    kb: KnowledgeBase, draft: MakeDraft, caplog: pytest.LogCaptureFixture
) -> None:
    """The others move up."""
    (put,) = await kb.put([draft("a.md", "One.", "Two.")])
    with caplog.at_level(logging.INFO, "leadline.knowledge"):
        documents = await kb.hydrate(hits("stranger", put.chunk_ids[1]), "bm25")
    assert [(d["content"], d["metadata"]["found_by"]["bm25"]["rank"]) for d in documents] == [("Two.", 0)]
    assert "1 of 2 hits" in caplog.text


async def test_hits_that_are_all_unknown_are_an_error(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """An index that belongs to another catalog is not an empty answer."""
    await kb.put([draft("a.md", "One.")])
    with pytest.raises(TextMissing, match="leadline verify"):
        await kb.hydrate(hits("stranger", "other"), "graph")


async def test_hits_on_their_way_in_are_not_an_error(library: Library, kb: KnowledgeBase) -> None:
    """Between catalog and switch an index is ahead: nothing is shown and nothing is wrong."""
    from leadline.drafts import ChunkDraft

    chunk = ChunkDraft("soon", 0, 4)
    new = NewVersion("d", "f", SourceDraft("u", "u", "h", (chunk,)), (PlacedChunk("soon", "hash", chunk),))
    async with library.gate.hold():
        add_pending(library.catalog, kb.name, [new], ["vector"])
    assert await kb.hydrate(hits("soon"), "vector") == []


async def test_a_leg_asks_for_more_until_enough_are_live(
    kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hits that aren't live don't make the list shorter while there are others."""
    await kb.put([draft("a.md", *(f"Acme Corp fact {i}." for i in range(12)))])
    real = retrievers.live_chunks

    def only_late(catalog: object, collection: str, ids: list[str]) -> object:
        """As if the best eight hits were of versions not live."""
        found = real(catalog, collection, ids)  # type: ignore[arg-type] - handed through
        return {chunk_id: found[chunk_id] for chunk_id in ids[8:]}

    monkeypatch.setattr(retrievers, "live_chunks", only_late)
    together = await retrievers.search_all(kb.retrievers(), "acme corp", k=3)
    for leg in kb.retrievers().values():
        documents = await leg.search("acme corp", k=3)
        assert len(documents) == 3
        assert [d["metadata"]["found_by"][leg.name]["rank"] for d in documents] == [0, 1, 2]
        assert len(await leg.search("acme corp", k=10)) == 4
        assert together[leg.name] == documents


class Broken:
    """A leg from elsewhere that fails."""

    name = "broken"

    async def search(self, query: str, *, k: int, where: object = None) -> list[Document]:
        raise StoreError(f"no {query} of {k} under {where}")


async def test_a_batch_of_texts_that_fails_is_no_leg_s_end(
    kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then each leg has its texts fetched alone: only the one whose texts can't be had fails."""
    await kb.put([draft("a.md", *(f"Acme Corp fact {i}." for i in range(6)))])
    legs = kb.retrievers()
    alone = {name: await leg.search("acme corp", k=3) for name, leg in legs.items()}
    content = kb._current._opened.content
    real = content.fetch
    bad = alone["graph"][0]["metadata"]["chunk_id"]

    async def fetch(ids: Sequence[str]) -> dict[str, str]:
        if bad in ids:
            raise StoreError("one object can't be read")
        return await real(ids)

    monkeypatch.setattr(content, "fetch", fetch)
    found = await retrievers.search_all(legs, "acme corp", k=3)
    for name, documents in alone.items():
        if bad in {document["metadata"]["chunk_id"] for document in documents}:
            assert isinstance(found[name], StoreError)
        else:
            assert found[name] == documents


async def test_legs_asked_together_answer_as_each_alone(
    kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same documents, their texts fetched in one batch; what fails stands under its name beside the others."""
    await kb.put([draft("a.md", *(f"Acme Corp fact {i}." for i in range(6)))])
    legs = kb.retrievers()
    alone = {name: await leg.search("acme corp", k=4) for name, leg in legs.items()}
    content = kb._current._opened.content
    fetched: list[int] = []
    real = content.fetch

    async def counted(ids: Sequence[str]) -> dict[str, str]:
        fetched.append(len(ids))
        return await real(ids)

    monkeypatch.setattr(content, "fetch", counted)
    found = await retrievers.search_all({**legs, "broken": Broken()}, "acme corp", k=4, where={"a": 1})
    assert str(found.pop("broken")) == "no acme corp of 4 under {'a': 1}"
    assert list(found.values()) == [[], [], []]
    fetched.clear()
    assert await retrievers.search_all(legs, "acme corp", k=4) == alone
    assert fetched == [len({d["metadata"]["chunk_id"] for documents in alone.values() for d in documents})]


async def test_a_search_joins_the_legs(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """A chunk that several legs found stands above one that a single leg found, and says who found it."""
    await kb.put([draft("a.md", "Acme Corp hired Dana Fox.", "The weather was fine.", "Somebody employed a person.")])
    documents = await kb.search("who did acme corp hire", 3)
    assert documents[0]["content"] == "Acme Corp hired Dana Fox."
    assert set(documents[0]["metadata"]["found_by"]) == {"vector", "bm25", "graph"}
    assert len(await kb.search("who did acme corp hire", 1)) == 1


async def test_an_empty_collection_finds_nothing(kb: KnowledgeBase) -> None:
    """The first question on a fresh store is no error."""
    assert await kb.search("hi") == []
