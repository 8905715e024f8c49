"""A collection streamed into a vector store of one's own: what the store has is neither read nor embedded again."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.events import DocumentEmbedded, DocumentsPruned, Event, ItemFailed
from leadline.knowledge import KnowledgeBase, Library
from leadline.knowledge.embedding import Embedded
from leadline.knowledge.opened import Opened
from leadline.models.base import Embedder, Vectors
from leadline.stores import open_vector_store, steps
from leadline.stores.base import ChunkRecord, Failed, Policy, VectorStore
from leadline.stores.catalog_records import CatalogRecords
from leadline.stores.lazy import Summary


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[VectorStore]:
    """A store outside of the data folder."""
    async with open_vector_store("chroma", path=tmp_path / "elsewhere") as store:
        yield store


@pytest.fixture
async def opened(kb: KnowledgeBase, draft: Any) -> AsyncIterator[Opened]:
    """A collection of three sources with four chunks."""
    await kb.put(
        [draft("a.md", "Quokka one.", "Quokka two.", lang="en"), draft("b.md", "Numbat."), draft("c.md", "Wombat.")]
    )
    async with kb._current.use() as opened:
        yield opened


class Counted:
    """The library's embedder; notes what it is given."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.texts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """As the library's."""
        self.texts += texts
        return self._embedder.embed_passages(texts)


@pytest.fixture
def embedder(library: Library) -> Any:
    """The library's embedder, counted."""
    return Counted(library.embedder)


@pytest.fixture
def fetched(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the chunks whose text is read from now on."""
    ids: list[str] = []
    real = type(opened.content).fetch

    async def noted(self: Any, wanted: Sequence[str]) -> dict[str, str]:
        ids.extend(wanted)
        return await real(self, wanted)

    monkeypatch.setattr(type(opened.content), "fetch", noted)
    return ids


def records(opened: Opened, model: str | None = None) -> CatalogRecords:
    """The collection as a stream, with the vectors of its own model unless another is named."""
    return CatalogRecords(opened.catalog, opened.content, opened.name, model or opened.embedder.name)


async def test_a_collection_fills_another_store_without_embedding(
    opened: Opened, store: VectorStore, embedder: Any
) -> None:
    """Ids, fields and vectors are those of the collection's own index."""
    events: list[Event] = []
    step = store.save(Embedded(records(opened), embedder), skip_existing=True).on_event(events.append)
    assert await step.run() == Summary(saved=4)
    assert embedder.texts == []
    assert [event.cached for event in events if isinstance(event, DocumentEmbedded)] == [True] * 4
    assert await store.all_ids() == await opened.legs.vector.all_ids()
    question = embedder.embed_query("quokka")
    assert await store.search(question, k=4, where={"lang": "en"}) == await opened.legs.vector.search(
        question, k=4, where={"lang": "en"}
    )


async def test_only_what_the_store_lacks_is_read_and_embedded(
    opened: Opened, store: VectorStore, embedder: Any, fetched: list[str]
) -> None:
    """The stream gives ids first; the text of the others is never read."""
    whole = Embedded(records(opened, "another"), embedder)
    assert await store.save(whole, skip_existing=True).run() == Summary(saved=4)
    assert len(embedder.texts) == len(fetched) == 4
    (numbat,) = [hit.chunk_id for hit in await store.search(embedder.embed_query("numbat"), k=1)]
    await store.delete([numbat])
    embedder.texts.clear()
    fetched.clear()
    events: list[Event] = []
    step = store.sync(Embedded(records(opened, "another"), embedder), skip_existing=True).on_event(events.append)
    assert await step.run() == Summary(saved=1, cached=3, pruned=DocumentsPruned(deleted=0, kept=4))
    assert (embedder.texts, fetched) == (["Numbat."], [numbat])
    embedded = {event.chunk_id: event.cached for event in events if isinstance(event, DocumentEmbedded)}
    assert [chunk_id for chunk_id, cached in embedded.items() if not cached] == [numbat]
    assert len(embedded) == 4


async def test_without_skip_existing_everything_is_embedded_first(
    opened: Opened, store: VectorStore, embedder: Any
) -> None:
    """The store is asked when the vectors are there, as for any stream."""
    await store.save(Embedded(records(opened), embedder)).run()
    assert await store.save(Embedded(records(opened, "another"), embedder)).run() == Summary(cached=4)
    assert len(embedder.texts) == 4


async def test_a_filter_of_the_text_has_to_see_all_of_it(
    opened: Opened, store: VectorStore, embedder: Any, fetched: list[str]
) -> None:
    """A stage of one's own between source and model: all texts are read, and still only what is new is embedded."""

    async def without_wombats(stream: CatalogRecords) -> AsyncIterator[ChunkRecord | Failed]:
        async for record in stream:
            if isinstance(record, Failed) or "Wombat" not in record.text:
                yield record

    for saved, cached, embedded in ((3, 0, 3), (0, 3, 0)):
        embedder.texts.clear()
        fetched.clear()
        whole = Embedded(without_wombats(records(opened, "another")), embedder)
        assert await store.save(whole, skip_existing=True).run() == Summary(saved=saved, cached=cached)
        assert (len(fetched), len(embedder.texts)) == (4, embedded)


async def test_recreate_uses_no_stored_vector(opened: Opened, store: VectorStore, embedder: Any) -> None:
    """Everything is embedded again and written again, though store and cache have it."""
    await store.save(Embedded(records(opened), embedder)).run()
    again = steps.save(store, Embedded(records(opened), embedder), Policy(recreate_cache=True), skip_existing=True)
    assert await again.run() == Summary(saved=4)
    assert sorted(embedder.texts) == ["Numbat.", "Quokka one.", "Quokka two.", "Wombat."]


async def test_a_text_that_is_missing_is_a_failed_item(opened: Opened, store: VectorStore, embedder: Any) -> None:
    """The others go on, and a sync deletes nothing."""
    await store.save(Embedded(records(opened), embedder)).run()
    (lost,) = [
        each.chunk_id async for each in records(opened).headers() if each.doc_id and each.fields["file_name"] == "b.md"
    ]
    async with opened.writing:
        await opened.content.delete([lost])
    events: list[Event] = []
    summary = await store.sync(Embedded(records(opened), embedder)).on_event(events.append).run()
    assert [event.item for event in events if isinstance(event, ItemFailed)] == [lost]
    assert summary.pruned is not None
    assert (summary.failed, summary.pruned.skipped) == (1, True)
    assert len(await store.all_ids()) == 4


async def test_a_vector_that_is_none_is_a_failed_item(opened: Opened, store: VectorStore, embedder: Any) -> None:
    """A model that gives nothing finite for a text: the store refuses it, and that is told."""

    class Broken(Counted):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            vectors = super().embed_passages(texts)
            vectors[[text == "Numbat." for text in texts]] = np.nan
            return vectors

    broken: Any = Broken(embedder)
    summary = await store.save(Embedded(records(opened, "another"), broken), skip_existing=True).run()
    assert (summary.saved, summary.failed) == (3, 1)
    assert await store.count() == 3


async def test_the_records_can_be_iterated_by_themselves(opened: Opened, embedder: Any) -> None:
    """With text and vectors, in the order of the sources; vectors that are there are kept, what failed is handed on."""
    own = ChunkRecord("own", "d", "Potoroo.", (np.ones(384, dtype=np.float32),))

    async def more() -> AsyncIterator[ChunkRecord | Failed]:
        yield own
        yield Failed("x.pdf", "it is damaged")
        async for record in records(opened, "another"):
            yield record

    items = [item async for item in Embedded(more(), embedder)]
    assert items[0] is own
    assert Failed("x.pdf", "it is damaged") in items
    made = [item for item in items if isinstance(item, ChunkRecord)]
    assert [record.text for record in made] == ["Potoroo.", "Quokka one.", "Quokka two.", "Numbat.", "Wombat."]
    assert all(record.vectors[0].shape == (384,) for record in made)
    assert "Potoroo." not in embedder.texts
