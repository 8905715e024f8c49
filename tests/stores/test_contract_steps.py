"""What `save` and `sync` of every index promise, run against each backend's real engine."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.stores.engines import ENGINES, HERE, Backend, opened, record

from leadline.errors import StoreError
from leadline.events import DocumentEmbedded, DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.stores import steps
from leadline.stores.base import ChunkRecord, Failed, Policy
from leadline.stores.lazy import Summary, Tell

SMALL = Policy(batch_size=3, window_s=5)


async def stream(*items: ChunkRecord | Failed) -> AsyncIterator[ChunkRecord | Failed]:
    """The items one after the other."""
    for item in items:
        yield item


async def broken(*items: ChunkRecord) -> AsyncIterator[ChunkRecord]:
    """The items, then an error."""
    for item in items:
        yield item
    raise RuntimeError("the source is gone")


class Headers:
    """A source that gives ids first, and says which records it was asked to make whole."""

    def __init__(self, records: Sequence[ChunkRecord]) -> None:
        self._records = {each.chunk_id: each for each in records}
        self.completed: list[str] = []

    def __aiter__(self) -> AsyncIterator[ChunkRecord | Failed]:
        return stream(*self._records.values())

    def headers(self) -> AsyncIterator[ChunkRecord | Failed]:
        """Ids and fields."""
        return stream(*(replace(each, text="", vectors=()) for each in self._records.values()))

    async def complete(self, headers: Sequence[ChunkRecord], *, fresh: bool, tell: Tell) -> list[ChunkRecord]:
        """All of the records."""
        self.completed += [each.chunk_id for each in headers]
        for each in headers:
            tell(DocumentEmbedded(chunk_id=each.chunk_id, cached=False))
        return [self._records[each.chunk_id] for each in headers]


@pytest.fixture(params=HERE)
async def unready(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Each backend in turn, open, with nothing created yet."""
    engine = ENGINES[request.param]
    served: Mapping[str, Any] = request.getfixturevalue(engine.server) if engine.server else {}
    async with opened(engine, tmp_path, {**engine.options, **served}, ready=False) as backend:
        yield backend


def numbered(numbers: Iterable[int], topic: str = "Quokka") -> list[ChunkRecord]:
    """Records about one topic, `c0`, `c1` and so on."""
    return [record(f"c{number}", topic) for number in numbers]


class TestSave:
    """save stores a stream, batch by batch, when it is iterated or run."""

    async def test_does_nothing_until_it_is_run(self, unready: Backend) -> None:
        """Making the step neither reads the stream nor touches the store; running it makes the index ready."""
        read: list[str] = []

        async def watched() -> AsyncIterator[ChunkRecord]:
            for each in numbered(range(5)):
                read.append(each.chunk_id)
                yield each

        step = unready.store.save(watched())
        assert read == []
        assert await unready.store.all_ids() == set()
        assert await step.run() == Summary(saved=5)
        assert await unready.find_ids("Quokka") == ["c0", "c1", "c2", "c3", "c4"]

    async def test_yields_each_record_and_says_what_was_there(self, backend: Backend) -> None:
        """In their order, each with an event; a record that the store has is cached, and is left as it is."""
        await backend.store.upsert([record("c1", "Numbat")])
        events: list[Event] = []
        step = steps.save(backend.store, stream(*numbered(range(4))), SMALL).on_event(events.append)
        saved = [each async for each in step]
        assert [each.record.chunk_id for each in saved] == ["c0", "c1", "c2", "c3"]
        assert [each.cached for each in saved] == [False, True, False, False]
        assert events == [DocumentSaved(chunk_id=each.record.chunk_id, cached=each.cached) for each in saved]
        assert await backend.find_ids("Numbat") == ["c1"]

    async def test_can_be_run_once(self, backend: Backend) -> None:
        """A second run is refused, since the stream is used up."""
        step = backend.store.save(stream(record("a")))
        assert await step.run() == Summary(saved=1)
        with pytest.raises(StoreError, match="run already"):
            await step.run()

    async def test_last_of_repeated_ids_wins(self, backend: Backend) -> None:
        """Two records of one id in a batch are one chunk, as given last; both are yielded."""
        records = [record("a", "Quokka"), record("b", "Numbat"), record("a", "Wombat")]
        saved = [each async for each in backend.store.save(stream(*records))]
        assert [each.record.chunk_id for each in saved] == ["a", "b", "a"]
        assert await backend.store.count() == 2
        assert await backend.find_ids("Quokka") == []
        assert await backend.find_ids("Wombat") == ["a"]

    async def test_recreate_writes_everything_again(self, backend: Backend) -> None:
        """With recreate_cache what the store has is replaced, not skipped."""
        await backend.store.upsert([record("c1", "Numbat")])
        policy = Policy(batch_size=2, recreate_cache=True)
        assert await steps.save(backend.store, stream(*numbered(range(3))), policy).run() == Summary(saved=3)
        assert await backend.find_ids("Numbat") == []
        assert await backend.find_ids("Quokka") == ["c0", "c1", "c2"]

    async def test_asks_the_store_before_a_record_is_made(self, unready: Backend) -> None:
        """With skip_existing only what the store lacks is made whole; the rest comes back by its id alone."""
        source = Headers(numbered(range(4)))
        assert await unready.store.save(source, skip_existing=True).run() == Summary(saved=4)
        assert source.completed == ["c0", "c1", "c2", "c3"]
        await unready.store.delete(["c2"])
        source, events = Headers(numbered(range(4))), list[Event]()
        step = unready.store.save(source, skip_existing=True).on_event(events.append)
        saved = {each.record.chunk_id: each async for each in step}
        assert source.completed == ["c2"]
        assert [each.cached for each in saved.values()] == [True, True, False, True]
        assert (saved["c0"].record.text, saved["c0"].record.vectors) == ("", ())
        embedded = {event.chunk_id: event.cached for event in events if isinstance(event, DocumentEmbedded)}
        assert embedded == {"c0": True, "c1": True, "c2": False, "c3": True}
        assert await unready.find_ids("Quokka") == ["c0", "c1", "c2", "c3"]

    async def test_a_record_that_is_refused_is_told_and_not_yielded(self, unready: Backend) -> None:
        """A vector store takes no record without vectors; the others, and other stores, go on."""
        bare = replace(record("a"), vectors=())
        events: list[Event] = []
        step = unready.store.save(stream(bare, record("b"))).on_event(events.append)
        stored = [each.record.chunk_id async for each in step]
        assert stored == (["b"] if unready.kind == "vector" else ["a", "b"])
        assert await unready.store.all_ids() == set(stored)
        assert [event.item for event in events if isinstance(event, ItemFailed)] == ["a"][: 2 - len(stored)]


class TestSync:
    """sync saves, then removes what a clean run did not yield."""

    async def test_removes_what_the_run_did_not_yield(self, backend: Backend) -> None:
        """What was there before and came again stays; the rest goes, also more than one call takes."""
        await backend.store.upsert(numbered(range(1003)))
        step = backend.store.sync(stream(*numbered([1002, 2000])))
        pruned = DocumentsPruned(deleted=1002, kept=2)
        assert await step.run() == Summary(saved=1, cached=1, pruned=pruned)
        assert await backend.store.all_ids() == {"c1002", "c2000"}
        assert await backend.find_ids("Quokka") == ["c1002", "c2000"]

    async def test_removes_nothing_after_a_failed_item(self, backend: Backend) -> None:
        """What is missing from the run may be what failed."""
        await backend.store.upsert([record("old")])
        events: list[Event] = []
        step = backend.store.sync(stream(record("a"), Failed("b.pdf", "it is damaged"), record("c")))
        summary = await step.on_event(events.append).run()
        assert (summary.saved, summary.failed) == (2, 1)
        assert ItemFailed(item="b.pdf", error="it is damaged") in events
        assert events[-1] == summary.pruned
        assert summary.pruned is not None
        assert (summary.pruned.deleted, summary.pruned.skipped) == (0, True)
        assert "1 items failed" in summary.pruned.reason
        assert await backend.store.all_ids() == {"old", "a", "c"}

    async def test_stopped_early_stores_what_was_read_and_removes_nothing(self, backend: Backend) -> None:
        """The reader of the step had enough: what it was given is stored, and what was there stays."""
        await backend.store.upsert([record("old")])
        step = steps.sync(backend.store, stream(*numbered(range(50))), SMALL)
        async with aclosing(step):
            async for each in step:
                assert each.record.chunk_id == "c0"
                break
        assert step.summary.pruned is not None
        assert (step.summary.pruned.deleted, step.summary.pruned.skipped) == (0, True)
        assert "stopped early" in step.summary.pruned.reason
        stored = await backend.store.all_ids()
        assert stored >= {"old", "c0", "c1", "c2"}
        assert len(stored) == 1 + step.summary.saved < 50

    async def test_removes_nothing_when_the_stream_breaks(self, backend: Backend) -> None:
        """What came before the error is stored, the error is raised."""
        await backend.store.upsert([record("old")])
        step = steps.sync(backend.store, broken(*numbered(range(4))), SMALL)
        with pytest.raises(RuntimeError, match="source is gone"):
            await step.run()
        assert step.summary.pruned is not None
        assert "source is gone" in step.summary.pruned.reason
        assert await backend.store.all_ids() == {"old", "c0", "c1", "c2", "c3"}

    async def test_an_empty_run_removes_nothing_unless_it_may(self, backend: Backend) -> None:
        """A source that suddenly has nothing is more likely broken than empty."""
        await backend.store.upsert([record("old")])
        summary = await backend.store.sync(stream()).run()
        assert summary.pruned == DocumentsPruned(deleted=0, kept=0, skipped=True, reason="empty run")
        assert await backend.store.all_ids() == {"old"}
        summary = await backend.store.sync(stream(), allow_empty=True).run()
        assert summary.pruned == DocumentsPruned(deleted=1, kept=0)
        assert await backend.store.all_ids() == set()

    async def test_what_only_came_by_its_id_is_kept(self, backend: Backend) -> None:
        """With skip_existing the records that were not made whole count as yielded."""
        await backend.store.upsert(numbered(range(3)))
        source = Headers(numbered([0, 2, 5]))
        summary = await backend.store.sync(source, skip_existing=True).run()
        assert summary.pruned == DocumentsPruned(deleted=1, kept=3)
        assert source.completed == ["c5"]
        assert await backend.store.all_ids() == {"c0", "c2", "c5"}
