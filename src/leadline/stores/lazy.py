"""What a save or a sync gives back: a run that begins when somebody iterates it.

Knows how a run is iterated, told of and summed up. Knows nothing of what it does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from leadline.errors import StoreError
from leadline.events import DocumentSaved, DocumentsPruned, Event, ItemFailed

T = TypeVar("T")
Tell = Callable[[Event], None]


@dataclass(slots=True)
class Summary:
    """What a run did, counted from its events: chunks written, chunks that were there, items that failed.

    `pruned` is set by a sync.
    """

    saved: int = 0
    cached: int = 0
    failed: int = 0
    pruned: DocumentsPruned | None = None

    def add(self, event: Event) -> None:
        """Counts an event."""
        match event:
            case DocumentSaved(cached=True):
                self.cached += 1
            case DocumentSaved():
                self.saved += 1
            case ItemFailed():
                self.failed += 1
            case DocumentsPruned():
                self.pruned = event


class LazyRun(Generic[T]):
    """A run that has not begun: no I/O until it is iterated, or `run` is awaited. It can be run once.

        summary = await store.save(records).on_event(show).run()

    To stop early, close it (`async with aclosing(step): async for …`): what was read by then is written before
    `aclose` returns. A loop that is only broken out of does the same when Python gets round to it, which may be after
    the store was closed. A cancelled run doesn't begin another batch.
    """

    def __init__(self, start: Callable[[Tell], AsyncGenerator[T, None]]) -> None:
        self._start = start
        self._listeners: list[Tell] = []
        self._items: AsyncGenerator[T, None] | None = None
        self.summary = Summary()

    def on_event(self, listener: Tell | None) -> Self:
        """Calls `listener` with each event of the run: DocumentEmbedded, DocumentSaved, ItemFailed, DocumentsPruned."""
        if listener is not None:
            self._listeners.append(listener)
        return self

    def __aiter__(self) -> AsyncGenerator[T, None]:
        if self._items is not None:
            raise StoreError("This step was run already.", hint="Make a new one: its stream is used up.")
        # The run must not hold the step: of a cycle of the two, nobody could tell that a loop was left.
        self._items = self._start(_teller(self.summary, self._listeners))
        return self._items

    async def run(self) -> Summary:
        """Runs it to its end."""
        async with aclosing(aiter(self)) as items:
            async for _ in items:
                pass
        return self.summary

    async def aclose(self) -> None:
        """Ends the run where it is."""
        if self._items is not None:
            await self._items.aclose()


def _teller(summary: Summary, listeners: Sequence[Tell]) -> Tell:
    def tell(event: Event) -> None:
        summary.add(event)
        for listener in listeners:
            listener(event)

    return tell
