"""The save and sync of a store: records out of a stream into one index, and out of it what the stream has no more.

The index step alone: neither knows of the catalog or of other indexes. `KnowledgeBase.save` and `sync` do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from leadline.errors import LeaseLost, ManifestMismatch, ModelError, StoreDamaged, StoreError
from leadline.events import DocumentEmbedded, DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.stores.base import ChunkRecord, Failed, Policy, SavedChunk, Store, has_usable_vectors
from leadline.stores.batches import Turns, in_batches
from leadline.stores.lazy import LazyRun, Tell
from leadline.stores.pruning import Pruning, then_prune

T = TypeVar("T")
Records: TypeAlias = AsyncIterable[ChunkRecord | Failed]
Step: TypeAlias = LazyRun[SavedChunk]

PAGE: Final = 1000  # ids deleted in one call
RETRY_PAUSE_S: Final = 0.2  # before the first retry; doubles with each
_POINTLESS: Final = (LeaseLost, ManifestMismatch, StoreDamaged)  # no retry can help


@runtime_checkable
class Unfinished(Protocol):
    """A stream that can tell its records by id before it has made them, for a save that asks the store first.

    Iterated, it gives whole records like any other.
    """

    def __aiter__(self) -> AsyncIterator[ChunkRecord | Failed]: ...

    def headers(self) -> Records:
        """The records as far as they cost nothing: ids and fields, perhaps neither text nor vectors."""
        ...

    async def complete(
        self, headers: Sequence[ChunkRecord], *, fresh: bool, tell: Tell
    ) -> Sequence[ChunkRecord | Failed]:
        """The same records whole, in the same order, or what failed; what is gone by now is left out.

        `fresh`: stored embeddings are not used. `tell` gets DocumentEmbedded from a stream that embeds.
        """
        ...


def save(store: Store, upstream: Records, policy: Policy | None = None, *, skip_existing: bool = False) -> Step:
    """See `Store.save`."""
    return LazyRun(lambda tell: _save(_Saving(store, upstream, policy or Policy(), skip_existing, tell)))


def sync(
    store: Store,
    upstream: Records,
    policy: Policy | None = None,
    *,
    skip_existing: bool = False,
    allow_empty: bool = False,
) -> Step:
    """See `Store.sync`."""

    def start(tell: Tell) -> AsyncGenerator[SavedChunk, None]:
        saving = _Saving(store, upstream, policy or Policy(), skip_existing, tell)
        pruning = Pruning(_chunk_id, lambda: saving.failed, saving.prune, allow_empty)
        return then_prune(_save(saving), pruning, tell)

    return LazyRun(start)


async def retried(policy: Policy, attempt: Callable[[], Awaitable[T]]) -> T:
    """What the first attempt that succeeds gives, after `policy.retries` more at most, each after a longer pause."""
    for number in range(policy.retries):
        try:
            return await attempt()
        except _POINTLESS:
            raise
        except (StoreError, ModelError):
            await asyncio.sleep(RETRY_PAUSE_S * 2**number)
    return await attempt()


async def _save(saving: _Saving) -> AsyncGenerator[SavedChunk, None]:
    async with aclosing(in_batches(saving.records(), saving.batch, saving.policy)) as batches:
        async for batch in batches:
            for saved in batch:
                yield saved


class _Saving:
    """One run of a save: what it works with, and what it has done so far."""

    def __init__(self, store: Store, upstream: Records, policy: Policy, skip_existing: bool, tell: Tell) -> None:
        self.store = store
        self.policy = policy
        self.failed = 0
        self._tell = tell
        self._upstream = upstream
        self._unfinished = upstream if isinstance(upstream, Unfinished) else None
        self._ask_first = skip_existing and self._unfinished is not None
        self._preparing = asyncio.Lock()
        self._ready = False
        self._turns = Turns()

    def tell(self, event: Event) -> None:
        """Hands an event on; counts the failures."""
        self.failed += isinstance(event, ItemFailed)
        self._tell(event)

    async def records(self) -> AsyncGenerator[ChunkRecord, None]:
        """The records to save; what failed on the way is told."""
        iterator = aiter(self._upstream if self._unfinished is None else self._unfinished.headers())
        try:
            async for item in iterator:
                if isinstance(item, Failed):
                    self.tell(_failure(item))
                else:
                    yield item
        finally:
            if isinstance(iterator, AsyncGenerator):
                await iterator.aclose()

    async def batch(self, records: Sequence[ChunkRecord]) -> list[SavedChunk]:
        """Saves the records; of an id that comes twice the last. Gives each of them back, but for what failed."""
        last = {record.chunk_id: record for record in records}
        async with self._turns.after(last):
            saved, events = await retried(self.policy, lambda: self._attempt(list(last.values())))
        for event in events:
            self.tell(event)
        done = [saved[record.chunk_id] for record in records if record.chunk_id in saved]
        for each in done:
            self.tell(DocumentSaved(chunk_id=each.record.chunk_id, cached=each.cached))
        return done

    async def prune(self, kept: set[str]) -> AsyncIterator[DocumentsPruned]:
        """Deletes all but `kept`, a page a call."""
        gone = sorted(await self.store.all_ids() - kept)
        deleted = 0
        yield DocumentsPruned(deleted=0, kept=len(kept))
        for start in range(0, len(gone), PAGE):
            deleted += await self.store.delete(gone[start : start + PAGE])
            yield DocumentsPruned(deleted=deleted, kept=len(kept))

    async def _attempt(self, records: Sequence[ChunkRecord]) -> tuple[dict[str, SavedChunk], list[Event]]:
        """Chunk id → what became of it, and what is to be told."""
        events: list[Event] = []
        if self._ask_first:
            known, unknown = await self._divided(records)
            events += [DocumentEmbedded(chunk_id=record.chunk_id, cached=True) for record in known]
            absent = await self._complete(unknown, events)
        else:
            whole = await self._complete(records, events)
            await self._make_ready(whole)
            known, absent = await self._divided(whole)
        taken = await self._upsert(absent, events)
        saved = {record.chunk_id: SavedChunk(record, cached=True) for record in known}
        return saved | {record.chunk_id: SavedChunk(record, cached=False) for record in taken}, events

    async def _complete(self, records: Sequence[ChunkRecord], events: list[Event]) -> list[ChunkRecord]:
        if self._unfinished is None or not records:
            return list(records)
        made = await self._unfinished.complete(records, fresh=self.policy.recreate_cache, tell=events.append)
        events += [_failure(item) for item in made if isinstance(item, Failed)]
        return [item for item in made if isinstance(item, ChunkRecord)]

    async def _divided(self, records: Sequence[ChunkRecord]) -> tuple[list[ChunkRecord], list[ChunkRecord]]:
        """Those the store has, and those it is to be given."""
        if self.policy.recreate_cache or not records:
            return [], list(records)
        there = await self.store.existing_ids([record.chunk_id for record in records])
        known = [record for record in records if record.chunk_id in there]
        return known, [record for record in records if record.chunk_id not in there]

    async def _make_ready(self, records: Sequence[ChunkRecord]) -> None:
        """Once a run, as soon as a record shows how wide its vectors are.

        A store that can't be searched by vectors needs no width. Others are left as they are by records without.
        """
        width = next((len(vector) for record in records for vector in record.vectors), 0)
        async with self._preparing:
            if not self._ready and (width or not hasattr(self.store, "search")):
                await self.store.ensure_ready(width)
                self._ready = True

    async def _upsert(self, records: Sequence[ChunkRecord], events: list[Event]) -> list[ChunkRecord]:
        """The records that the store took in."""
        if not records:
            return []
        await self._make_ready(records)
        if not await self.store.upsert(records):
            return list(records)
        refused = [record for record in records if not has_usable_vectors(record)]
        events += [ItemFailed(item=record.chunk_id, error="it has no vector that can be stored") for record in refused]
        return [record for record in records if has_usable_vectors(record)]


def _chunk_id(saved: SavedChunk) -> str:
    return saved.record.chunk_id


def _failure(item: Failed) -> ItemFailed:
    return ItemFailed(item=item.item, error=item.error)
