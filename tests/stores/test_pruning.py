"""A sync deletes what its run did not yield, and only when it may: every way a run can go, over a store in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import ManifestMismatch, StoreError
from leadline.events import DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.stores import steps
from leadline.stores.base import ChunkRecord, Failed, Policy, Stats, has_usable_vectors
from leadline.stores.lazy import LazyRun

VECTOR = (np.ones(4, dtype=np.float32),)


class Shelf:
    """A vector store in memory that notes its calls and fails where it is told to."""

    def __init__(
        self,
        ids: Sequence[str] = (),
        *,
        failures: int = 0,
        error: type[StoreError] = StoreError,
        deletes: int | None = None,
    ) -> None:
        self.rows = {chunk_id: ChunkRecord(chunk_id, "old", vectors=VECTOR) for chunk_id in ids}
        self.calls: list[str] = []
        self.deleted: list[int] = []
        self._failures, self._error, self._deletes = failures, error, deletes

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    async def ensure_ready(self, dimension: int = 0) -> None:
        self.calls.append(f"ensure_ready({dimension})")

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        self.calls.append("upsert")
        await asyncio.sleep(0)
        if self._failures:
            self._failures -= 1
            raise self._error("the store does not answer")
        usable = [record for record in records if has_usable_vectors(record)]
        self.rows |= {record.chunk_id: record for record in usable}
        return len(records) - len(usable)

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        self.calls.append("existing_ids")
        await asyncio.sleep(0)
        return self.rows.keys() & set(ids)

    async def all_ids(self) -> set[str]:
        return set(self.rows)

    async def delete(self, ids: Sequence[str]) -> int:
        if len(self.deleted) == self._deletes:
            await asyncio.Event().wait()  # for ever
        self.deleted.append(len(ids))
        return sum(self.rows.pop(chunk_id, None) is not None for chunk_id in ids)

    async def count(self) -> int:
        return len(self.rows)

    async def clear(self) -> None:
        self.rows.clear()

    async def stats(self) -> Stats:
        return {"backend": "shelf", "count": len(self.rows)}

    async def search(self, vector: object, *, k: int, where: object = None) -> list[object]:
        """Says by being there that this is a store of vectors."""
        return []

    def save(self, upstream: steps.Records, *, skip_existing: bool = False) -> steps.Step:
        return steps.save(self, upstream, skip_existing=skip_existing)

    def sync(self, upstream: steps.Records, *, skip_existing: bool = False, allow_empty: bool = False) -> steps.Step:
        return steps.sync(self, upstream, skip_existing=skip_existing, allow_empty=allow_empty)


End = Literal["clean", "broken stream", "closed", "cancelled", "broken store"]


@dataclass(frozen=True)
class Run:
    """One run: what is in the store before, what the stream gives (None: a failed item), and how it ends."""

    before: frozenset[str]
    items: tuple[str | None, ...]
    unusable: frozenset[str]
    end: End
    after: int  # items that the reader of a closed or cancelled run takes
    allow_empty: bool
    policy: Policy


IDS = st.sampled_from("abcdefgh")
RUNS = st.builds(
    Run,
    before=st.frozensets(IDS),
    items=st.lists(st.one_of(IDS, IDS, IDS, st.none()), max_size=12).map(tuple),
    unusable=st.frozensets(IDS, max_size=1),
    end=st.sampled_from(["clean", "clean", "broken stream", "closed", "cancelled", "broken store"]),
    after=st.integers(0, 4),
    allow_empty=st.booleans(),
    policy=st.builds(
        Policy,
        batch_size=st.integers(1, 4),
        window_s=st.just(0.01),
        concurrency=st.integers(1, 3),
        recreate_cache=st.booleans(),
    ),
)


async def stream(run: Run) -> AsyncIterator[ChunkRecord | Failed]:
    """What the run's source gives."""
    for item in run.items:
        if item is None:
            yield Failed("a file", "it is damaged")
        else:
            yield ChunkRecord(item, "new", vectors=() if item in run.unusable else VECTOR)
    if run.end == "broken stream":
        raise OSError("the source is gone")


async def played(run: Run, step: steps.Step) -> tuple[list[str], bool]:
    """What the run yielded to its reader, and whether it came to its end."""
    yielded: list[str] = []

    async def read() -> None:
        async with aclosing(step):
            async for saved in step:
                yielded.append(saved.record.chunk_id)
                if run.end in ("closed", "cancelled") and len(yielded) > run.after:
                    if run.end == "closed":
                        return
                    asyncio.current_task().cancel()  # type: ignore[union-attr] - it runs in one
                    await asyncio.sleep(0)

    task = asyncio.create_task(read())
    await asyncio.wait([task])
    stopped = run.end in ("closed", "cancelled") and len(yielded) > run.after
    return yielded, not (stopped or task.cancelled() or task.exception() is not None)


@given(run=RUNS)
@settings(deadline=None, max_examples=300)
def test_nothing_is_deleted_but_after_a_clean_run(run: Run) -> None:
    """Then the store holds exactly what was yielded; after any other run all that was there before, and one event in
    every case says which it was."""

    async def whole() -> tuple[Shelf, list[str], bool, list[Event], steps.Step]:
        shelf = Shelf(sorted(run.before), failures=99 if run.end == "broken store" else 0)
        events: list[Event] = []
        step = steps.sync(shelf, stream(run), run.policy, allow_empty=run.allow_empty).on_event(events.append)
        yielded, ended = await played(run, step)
        return shelf, yielded, ended, events, step

    shelf, yielded, ended, events, step = asyncio.run(whole())
    began = bool(events)  # a run that was stopped before its first item is none
    refused = {item for item in run.items if item in run.unusable}
    missing = None in run.items or any(item not in run.before or run.policy.recreate_cache for item in refused)
    may = ended and not missing and (bool(yielded) or run.allow_empty)
    pruned = [event for event in events if isinstance(event, DocumentsPruned)]
    assert len(pruned) == began
    for outcome in pruned:
        assert outcome.skipped == (not may)
        assert bool(outcome.reason) == outcome.skipped
        assert outcome.deleted == (len(run.before - set(yielded)) if may else 0)
        assert step.summary.pruned == outcome
    if may:
        assert shelf.rows.keys() == set(yielded)
    else:
        assert shelf.rows.keys() >= run.before - (refused if run.policy.recreate_cache else set())
        assert shelf.deleted == []


@given(run=RUNS)
@settings(deadline=None, max_examples=100)
def test_a_clean_run_yields_and_tells_every_item_once(run: Run) -> None:
    """In order: each record that was taken in with a DocumentSaved, each other item with an ItemFailed."""
    run = Run(run.before, run.items, run.unusable, "clean", 0, run.allow_empty, run.policy)

    async def whole() -> tuple[Shelf, list[str], list[Event], steps.Step]:
        shelf, events = Shelf(sorted(run.before)), list[Event]()
        step = steps.save(shelf, stream(run), run.policy).on_event(events.append)
        return shelf, (await played(run, step))[0], events, step

    shelf, yielded, events, step = asyncio.run(whole())
    skips = not run.policy.recreate_cache
    taken = [i for i in run.items if i is not None and (i not in run.unusable or (skips and i in run.before))]
    assert yielded == taken
    saved = [event for event in events if isinstance(event, DocumentSaved)]
    assert [event.chunk_id for event in saved] == taken
    assert step.summary.saved + step.summary.cached == len(taken)
    failed = [event for event in events if isinstance(event, ItemFailed)]
    assert step.summary.failed == len(failed) >= run.items.count(None)
    assert set(taken) <= shelf.rows.keys()
    if skips:
        assert all(shelf.rows[event.chunk_id].doc_id == "old" for event in saved if event.chunk_id in run.before)
    else:
        assert all(shelf.rows[event.chunk_id].doc_id == "new" for event in saved)


def records(*ids: str) -> AsyncIterator[ChunkRecord | Failed]:
    """A stream of these."""
    policy = Policy()
    return stream(Run(frozenset(), ids, frozenset(), "clean", 0, False, policy))


async def test_a_batch_asks_once_and_writes_once() -> None:
    """The store is made ready before the first batch; what it has isn't written."""
    shelf = Shelf(["b", "d", "e"])
    await steps.save(shelf, records(*"abcde"), Policy(batch_size=2)).run()
    assert shelf.calls == ["ensure_ready(4)", *["existing_ids", "upsert"] * 2, "existing_ids"]


async def test_recreate_asks_nothing() -> None:
    """Everything is written, unasked."""
    shelf = Shelf("ab")
    await steps.save(shelf, records(*"ab"), Policy(recreate_cache=True)).run()
    assert shelf.calls == ["ensure_ready(4)", "upsert"]


async def test_a_failed_batch_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as the policy says; what is told is told once."""
    monkeypatch.setattr(steps, "RETRY_PAUSE_S", 0.001)
    shelf, events = Shelf(failures=2), list[Event]()
    await steps.save(shelf, records("a"), Policy(retries=2)).on_event(events.append).run()
    assert events == [DocumentSaved(chunk_id="a", cached=False)]
    assert shelf.calls.count("upsert") == 3


@pytest.mark.parametrize(("error", "attempts"), [(StoreError, 3), (ManifestMismatch, 1)])
async def test_a_batch_that_fails_for_good_ends_the_run(
    error: type[StoreError], attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store's error is raised, at once where no attempt can help; nothing is deleted."""
    monkeypatch.setattr(steps, "RETRY_PAUSE_S", 0.001)
    shelf = Shelf("z", failures=99, error=error)
    step = steps.sync(shelf, records("a"), Policy(retries=2))
    with pytest.raises(error, match="does not answer"):
        await step.run()
    assert shelf.calls.count("upsert") == attempts
    assert shelf.rows.keys() == {"z"}
    assert step.summary.pruned is not None
    assert "does not answer" in step.summary.pruned.reason


async def test_deletes_a_thousand_ids_a_call() -> None:
    """Never more."""
    shelf = Shelf([f"c{number}" for number in range(2500)])
    summary = await steps.sync(shelf, records("a")).run()
    assert summary.pruned == DocumentsPruned(deleted=2500, kept=1)
    assert shelf.deleted == [1000, 1000, 500]


async def test_stopped_while_it_deletes_it_does_not_call_that_a_clean_run() -> None:
    """What is counted was deleted; the reason says that the run did not come to its end."""
    shelf = Shelf([f"c{number}" for number in range(2500)], deletes=2)
    step = steps.sync(shelf, records("a"))
    run = asyncio.create_task(step.run())
    while len(shelf.deleted) < 2:  # noqa: ASYNC110 - the store in memory has nothing to wait for
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert step.summary.pruned is not None
    assert (step.summary.pruned.deleted, step.summary.pruned.skipped) == (2000, False)
    assert "stopped while it deleted" in step.summary.pruned.reason
    assert len(shelf.rows) == 501


async def test_the_later_of_two_batches_with_one_id_wins() -> None:
    """Also when both are under way at once."""

    async def twice() -> AsyncIterator[ChunkRecord]:
        for doc_id in ("first", "second", "third"):
            yield ChunkRecord("a", doc_id, vectors=VECTOR)

    shelf = Shelf()
    await steps.save(shelf, twice(), Policy(batch_size=1, concurrency=3, recreate_cache=True)).run()
    assert shelf.rows["a"].doc_id == "third"


async def test_a_listener_may_hold_the_step() -> None:
    """Events reach every listener; None is none."""
    shelf, seen = Shelf(), list[Event]()
    step: LazyRun[object] = steps.save(shelf, records("a"))
    await step.on_event(None).on_event(seen.append).on_event(seen.append).run()
    assert seen == [DocumentSaved(chunk_id="a", cached=False)] * 2
