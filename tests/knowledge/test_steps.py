"""Streams of sources into a collection: lazy, in step in every index, and pruned only after a clean run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import ModelUnavailable, StoreError
from leadline.events import DocumentEmbedded, DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.knowledge import KnowledgeBase, Library, open_library, put
from leadline.models.base import Vectors
from leadline.stores.base import ChunkRecord, Failed, Policy
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.lazy import Summary
from leadline.stores.tantivy import TantivyStore


async def stream(*items: SourceDraft | Failed) -> AsyncIterator[SourceDraft | Failed]:
    """The items one after the other."""
    for item in items:
        yield item


async def uris(kb: KnowledgeBase) -> list[str]:
    """What the collection holds."""
    return sorted(source.uri for source in await kb.list_sources())


@pytest.fixture
def embedded(library: Library, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the library's model is given from now on."""
    texts: list[str] = []
    real = library.embedder.embed_passages

    def counted(passages: Sequence[str]) -> Vectors:
        texts.extend(passages)
        return real(passages)

    monkeypatch.setattr(library.embedder, "embed_passages", counted)
    return texts


class TestSave:
    """save puts a stream of sources in when it is iterated or run."""

    async def test_does_nothing_until_it_is_run(self, kb: KnowledgeBase, draft: Any) -> None:
        """Making the step reads nothing and stores nothing."""
        read: list[str] = []

        async def watched() -> AsyncIterator[SourceDraft]:
            read.append("a.md")
            yield draft("a.md", "The quokka sleeps.", "Otters eat at noon.")

        step = kb.save(watched())
        await asyncio.sleep(0.05)
        assert (read, await kb.count()) == ([], 0)
        assert await step.run() == Summary(saved=2)
        assert "Otters" in (await kb.search("who eats at noon"))[0]["content"]
        with pytest.raises(StoreError, match="run already"):
            await step.run()

    async def test_yields_a_report_for_each_item_in_order(self, kb: KnowledgeBase, draft: Any) -> None:
        """Also for what failed before it came here; the others go in."""
        events: list[Event] = []
        items = draft("b.md", "Numbat."), Failed("deep/x.pdf", "it is damaged"), draft("a.md", "Quokka."), draft("e.md")
        reports = [each async for each in kb.save(stream(*items), root="r").on_event(events.append)]
        assert [(each.uri, each.status) for each in reports] == [
            ("b.md", "added"),
            ("deep/x.pdf", "failed"),
            ("a.md", "added"),
            ("e.md", "failed"),
        ]
        assert reports[1].file_name == "x.pdf"
        failed = {event.item: event.error for event in events if isinstance(event, ItemFailed)}
        assert failed["deep/x.pdf"] == "it is damaged"
        assert "no text" in failed["e.md"]
        assert {source.root for source in await kb.list_sources()} == {"r"}
        assert (await kb.verify()).ok

    async def test_says_what_was_embedded_and_what_was_there(self, kb: KnowledgeBase, draft: Any) -> None:
        """Per chunk; a passage that only moved to another source is stored anew and not embedded again."""
        await kb.put([draft("a.md", "Quokka.")])
        events: list[Event] = []
        step = kb.save(stream(draft("a.md", "Quokka."), draft("b.md", "Quokka.", "Numbat.")))
        assert await step.on_event(events.append).run() == Summary(saved=2, cached=1)
        assert [event.cached for event in events if isinstance(event, DocumentEmbedded)] == [True, True, False]
        assert [event.cached for event in events if isinstance(event, DocumentSaved)] == [True, False, False]

    async def test_sources_share_puts_in_their_order(
        self, kb: KnowledgeBase, draft: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A batch is counted in chunks and is no larger than the policy says."""
        sizes: list[int] = []
        real = put.put

        async def counted(opened: Any, drafts: Sequence[SourceDraft], *args: Any, **options: Any) -> Any:
            sizes.append(len(drafts))
            return await real(opened, drafts, *args, **options)

        monkeypatch.setattr(put, "put", counted)
        drafts = [draft(f"{n:02}.md", f"Fact {n}.", f"And another {n}.") for n in range(20)]
        reports = [each async for each in kb.save(stream(*drafts), policy=Policy(batch_size=8, window_s=5))]
        assert [each.uri for each in reports] == [each.uri for each in drafts]
        assert sizes == [4] * 5

    async def test_the_later_of_equal_sources_wins(self, kb: KnowledgeBase, draft: Any) -> None:
        """In one batch and in two that are under way at once."""
        versions = [draft("a.md", f"The fee is {fee} euros.") for fee in (10, 20, 30, 40)]
        policy = Policy(batch_size=2, concurrency=3)
        statuses = [each.status async for each in kb.save(stream(*versions), policy=policy)]
        assert statuses == ["added", "replaced", "replaced", "replaced"]
        assert [hit["content"] for hit in await kb.search("fee")] == ["The fee is 40 euros."]
        assert (await kb.verify()).ok

    async def test_what_every_index_has_is_not_embedded(
        self, library: Library, kb: KnowledgeBase, draft: Any, embedded: list[str]
    ) -> None:
        """The indexes are asked first, so not even the cache of vectors is needed."""
        sources = [draft("a.md", "Quokka."), draft("b.md", "Numbat.")]
        await kb.save(stream(*sources)).run()
        with library.catalog.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM vectors")
        embedded.clear()
        assert await kb.save(stream(*sources)).run() == Summary(cached=2)
        assert embedded == []
        assert await kb.save(stream(*sources), skip_existing=False).run() == Summary(cached=2)
        assert sorted(embedded) == ["Numbat.", "Quokka."]

    @pytest.mark.parametrize("leg", ["vector", "bm25", "graph"])
    async def test_what_one_index_lacks_is_put_back(self, kb: KnowledgeBase, draft: Any, leg: str) -> None:
        """A source counts as there only if every index has all of it."""
        sources = [draft("a.md", "Dana Fox feeds the Otters."), draft("b.md", "Numbat.")]
        await kb.save(stream(*sources)).run()
        async with kb._current.use() as opened, opened.writing:
            await opened.stores[leg].delete(sorted(await opened.stores[leg].all_ids())[:1])
        statuses = [each.status async for each in kb.save(stream(*sources))]
        assert sorted(statuses) == ["restored", "unchanged"]
        assert (await kb.verify()).ok

    async def test_recreate_embeds_and_writes_everything_again(
        self, kb: KnowledgeBase, draft: Any, embedded: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also what is unchanged, into every index, in spite of the stored vectors."""
        sources = [draft("a.md", "Quokka."), draft("b.md", "Numbat.")]
        await kb.save(stream(*sources)).run()
        embedded.clear()
        written: dict[str, list[str]] = {}
        for kind in (ChromaVectorStore, TantivyStore):
            _note_upserts(monkeypatch, kind, written)
        step = kb.save(stream(*sources), policy=Policy(recreate_cache=True))
        events: list[Event] = []
        assert await step.on_event(events.append).run() == Summary(saved=2)
        assert sorted(embedded) == ["Numbat.", "Quokka."]
        ids = sorted(event.chunk_id for event in events if isinstance(event, DocumentSaved))
        assert {kind: sorted(got) for kind, got in written.items()} == {"ChromaVectorStore": ids, "TantivyStore": ids}
        assert not any(event.cached for event in events if isinstance(event, DocumentEmbedded))
        assert (await kb.verify()).ok

    async def test_a_batch_whose_model_failed_is_tried_again(
        self, library: Library, kb: KnowledgeBase, draft: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As often as the policy says; then the error is raised, and nothing of the batch is there."""
        real, failures = library.embedder.embed_passages, 2

        def moody(passages: Sequence[str]) -> Vectors:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise ModelUnavailable("the model does not answer")
            return real(passages)

        monkeypatch.setattr(library.embedder, "embed_passages", moody)
        monkeypatch.setattr("leadline.stores.steps.RETRY_PAUSE_S", 0.001)
        with pytest.raises(ModelUnavailable):
            await kb.save(stream(draft("a.md", "Quokka.")), policy=Policy(retries=1)).run()
        assert await kb.count() == 0
        failures = 2
        assert await kb.save(stream(draft("a.md", "Quokka.")), policy=Policy(retries=2)).run() == Summary(saved=1)

    async def test_a_dry_run_changes_nothing(self, kb: KnowledgeBase, draft: Any, embedded: list[str]) -> None:
        """It gives the reports; no chunk is embedded or saved."""
        await kb.put([draft("a.md", "Quokka."), draft("b.md", "Numbat.")])
        embedded.clear()
        events: list[Event] = []
        changed = stream(draft("a.md", "Quokka."), draft("b.md", "Wombat."), draft("c.md", "Potoroo."))
        step = kb.save(changed, dry_run=True).on_event(events.append)
        assert [each.status async for each in step] == ["unchanged", "replaced", "added"]
        assert (events, embedded, await uris(kb)) == ([], [], ["a.md", "b.md"])


class TestSync:
    """sync saves, then removes the sources that a clean run did not yield."""

    async def test_removes_what_the_run_did_not_yield(self, kb: KnowledgeBase, draft: Any) -> None:
        """From everywhere; without a root from the whole collection."""
        await kb.put([draft("a.md", "Quokka."), draft("old.md", "Secret of Quentin Fox.")], root="r")
        await kb.put([draft("upload.md", "Numbat.")])
        events: list[Event] = []
        summary = (
            await kb.sync(stream(draft("a.md", "Quokka."), draft("b.md", "Wombat."))).on_event(events.append).run()
        )
        pruned = DocumentsPruned(deleted=2, kept=2, items=("old.md", "upload.md"))
        assert summary == Summary(saved=1, cached=1, pruned=pruned)
        assert events[-1] == pruned
        assert await uris(kb) == ["a.md", "b.md"]
        assert await kb.retrievers()["bm25"].search("secret", k=5) == []
        assert (await kb.verify()).ok

    async def test_leaves_alone_what_came_from_elsewhere(self, kb: KnowledgeBase, draft: Any) -> None:
        """With a root, or roots by URI, only what was put under them can be gone from them."""
        await kb.put([draft("a.md", "Quokka."), draft("gone.md", "Gone.")], root="one")
        await kb.put([draft("b.md", "Wombat."), draft("lost.md", "Lost.")], root="two")
        await kb.put([draft("upload.md", "Numbat.")])
        assert (await kb.sync(stream(draft("a.md", "Quokka.")), root="one").run()).pruned == DocumentsPruned(
            deleted=1, kept=1, items=("gone.md",)
        )
        both = stream(draft("a.md", "Quokka."), draft("b.md", "Wombat."), draft("named.md", "Given by name."))
        summary = await kb.sync(both, root={"a.md": "one", "b.md": "two", "named.md": ""}).run()
        assert summary.pruned == DocumentsPruned(deleted=1, kept=3, items=("lost.md",))
        assert await uris(kb) == ["a.md", "b.md", "named.md", "upload.md"]

    async def test_without_a_root_of_any_source_nothing_is_gone(self, kb: KnowledgeBase, draft: Any) -> None:
        """Roots by URI that are all empty cover nothing."""
        await kb.put([draft("upload.md", "Numbat.")])
        await kb.sync(stream(draft("a.md", "Quokka.")), root={"a.md": ""}).run()
        assert await uris(kb) == ["a.md", "upload.md"]

    @pytest.mark.parametrize("bad", [Failed("x.pdf", "it is damaged"), "empty"])
    async def test_removes_nothing_after_a_failed_item(self, kb: KnowledgeBase, draft: Any, bad: Any) -> None:
        """Whether it failed before or here."""
        await kb.put([draft("old.md", "Quokka.")])
        summary = await kb.sync(stream(draft("a.md", "Wombat."), draft("e.md") if bad == "empty" else bad)).run()
        assert summary.pruned is not None
        assert (summary.pruned.deleted, summary.pruned.skipped, summary.failed) == (0, True, 1)
        assert await uris(kb) == ["a.md", "old.md"]

    async def test_removes_nothing_after_an_empty_run_unless_it_may(self, kb: KnowledgeBase, draft: Any) -> None:
        """And then everything."""
        await kb.put([draft("old.md", "Quokka.")])
        summary = await kb.sync(stream()).run()
        assert summary.pruned == DocumentsPruned(deleted=0, kept=0, skipped=True, reason="empty run")
        assert await uris(kb) == ["old.md"]
        await kb.sync(stream(), allow_empty=True).run()
        assert await uris(kb) == []
        assert (await kb.verify()).ok

    async def test_stopped_early_puts_in_what_was_read_and_removes_nothing(self, kb: KnowledgeBase, draft: Any) -> None:
        """The reader has seen enough: no source is half there, and what was there stays."""
        await kb.put([draft("old.md", "Quokka.")])
        drafts = [draft(f"{number:03}.md", f"Fact {number}.") for number in range(300)]
        step = kb.sync(stream(*drafts), policy=Policy(batch_size=4))
        async with aclosing(step):
            async for report in step:
                assert report.uri == "000.md"
                break
        assert step.summary.pruned is not None
        assert "stopped early" in step.summary.pruned.reason
        there = await uris(kb)
        assert {"old.md", "000.md", "003.md"} <= set(there)
        assert len(there) == 1 + step.summary.saved < 100
        assert (await kb.verify()).ok

    async def test_cancelled_it_ends_soon_and_removes_nothing(self, kb: KnowledgeBase, draft: Any) -> None:
        """What was being stored is whole or not there."""
        await kb.put([draft("old.md", "Quokka.")])
        drafts = [draft(f"{number:03}.md", f"Fact {number}.") for number in range(300)]
        step = kb.sync(stream(*drafts), policy=Policy(batch_size=4))
        first = asyncio.Event()
        run = asyncio.create_task(step.on_event(lambda _: first.set()).run())
        await first.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        there = await uris(kb)
        assert "old.md" in there
        assert len(there) < 50
        assert (await kb.verify()).ok

    async def test_removes_nothing_when_the_stream_breaks(self, kb: KnowledgeBase, draft: Any) -> None:
        """What came before the error is in."""
        await kb.put([draft("old.md", "Quokka.")])

        async def broken() -> AsyncIterator[SourceDraft]:
            yield draft("a.md", "Wombat.")
            raise OSError("the share is gone")

        step = kb.sync(broken())
        with pytest.raises(OSError, match="share is gone"):
            await step.run()
        assert step.summary.pruned == DocumentsPruned(
            deleted=0, kept=1, skipped=True, reason="the run failed: the share is gone"
        )
        assert await uris(kb) == ["a.md", "old.md"]

    async def test_removes_nothing_while_an_index_is_behind(
        self, kb: KnowledgeBase, draft: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An index that could not take back what it lacks: the sources are there, but not all indexes finished."""
        await kb.put([draft("a.md", "Quokka."), draft("old.md", "Numbat.")])
        async with kb._current.use() as opened, opened.writing:
            await opened.stores["bm25"].delete(sorted(await opened.stores["bm25"].all_ids()))

        async def full(self: TantivyStore, records: Sequence[ChunkRecord]) -> int:
            raise StoreError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(TantivyStore, "upsert", full)
            summary = await kb.sync(stream(draft("a.md", "Quokka."))).run()
        assert summary.pruned is not None
        assert (summary.pruned.deleted, summary.pruned.skipped) == (0, True)
        assert "not reached an index" in summary.pruned.reason
        assert await uris(kb) == ["a.md", "old.md"]
        assert (await kb.sync(stream(draft("a.md", "Quokka."))).run()).pruned == DocumentsPruned(
            deleted=1, kept=1, items=("old.md",)
        )
        assert (await kb.verify()).ok

    async def test_a_dry_run_only_says_what_would_go(self, kb: KnowledgeBase, draft: Any) -> None:
        """By name."""
        await kb.put([draft("a.md", "Quokka."), draft("old.md", "Numbat.")])
        summary = await kb.sync(stream(draft("a.md", "Quokka.")), dry_run=True).run()
        assert summary.pruned == DocumentsPruned(deleted=1, kept=1, items=("old.md",))
        assert await uris(kb) == ["a.md", "old.md"]


async def test_no_run_skips_what_another_model_embedded(
    settings: Settings, draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another embedding model the collection is refused before a step can be made."""
    async with open_library(settings) as library:
        await (await library.collection()).save(stream(draft("a.md", "Quokka."))).run()
    monkeypatch.setattr("leadline.models.minilm.MiniLM.name", property(lambda _: "another-model"))
    async with open_library(settings) as library:
        with pytest.raises(StoreError, match="another-model"):
            await library.collection()


def _note_upserts(monkeypatch: pytest.MonkeyPatch, kind: type[Any], written: dict[str, list[str]]) -> None:
    real = kind.upsert

    async def noted(self: Any, records: Sequence[ChunkRecord]) -> int:
        written.setdefault(kind.__name__, []).extend(record.chunk_id for record in records)
        return int(await real(self, records))

    monkeypatch.setattr(kind, "upsert", noted)
