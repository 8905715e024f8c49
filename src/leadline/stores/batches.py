"""An async stream worked through in batches: read ahead, several under way, results in order.

Knows when a batch is full and how a run ends. Knows nothing of stores or of what is done with a batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from leadline.stores.base import Policy

T = TypeVar("T")
R = TypeVar("R")


class _End:
    """Stands in the queue after the last item."""


_Queue = asyncio.Queue[Any]  # items, then one _End


async def in_batches(
    upstream: AsyncIterable[T],
    work: Callable[[list[T]], Awaitable[R]],
    policy: Policy,
    *,
    weigh: Callable[[T], int] = lambda _: 1,
    ahead: int = 0,
) -> AsyncGenerator[R, None]:
    """What `work` makes of each batch, in the order of the batches.

    A batch is full when its items weigh `policy.batch_size`, or `policy.window_s` after its first one came. `ahead`
    items are read before their batch begins, at most (0: as many as make a batch). A batch that is done counts as
    under way until its result is taken, so a slow reader holds the stream up.

    What was read is worked through when the generator is closed before its end, and before an error of `upstream` is
    raised. When the task is cancelled, batches under way are cancelled and the rest is dropped. An error of `work` ends
    the run at once; batches under way are waited for.
    """
    queue: _Queue = asyncio.Queue()
    free = asyncio.Semaphore(ahead or policy.batch_size)
    room = asyncio.Semaphore(policy.concurrency)
    begun: asyncio.Queue[asyncio.Task[R] | None] = asyncio.Queue()
    reader = asyncio.create_task(_read(upstream, queue, free))
    reader.add_done_callback(lambda _: queue.put_nowait(_End()))
    starter = asyncio.create_task(_start(queue, free, room, begun, work, policy, weigh))
    running = _Running(begun, room)
    try:
        while await running.next_done():
            yield running.take()
        reader.result()  # raises what upstream raised
        starter.result()
    finally:
        task = asyncio.current_task()
        cancelled = task is not None and task.cancelling() > 0
        reader.cancel()
        try:
            while not (cancelled or running.failed) and await running.next_done():
                running.take()
        finally:
            starter.cancel()
            left = running.left()
            for each in left if cancelled else ():
                each.cancel()
            await asyncio.gather(reader, starter, *left, return_exceptions=True)


class Turns:
    """Lets batches that share a key go one after the other, in the order they came: the later one must win."""

    def __init__(self) -> None:
        self._under_way: list[tuple[set[str], asyncio.Event]] = []

    @asynccontextmanager
    async def after(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Waits for those before that have one of the keys."""
        mine = (set(keys), asyncio.Event())
        before = [done for others, done in self._under_way if not others.isdisjoint(mine[0])]
        self._under_way.append(mine)
        try:
            for done in before:
                await done.wait()
            yield
        finally:
            mine[1].set()
            self._under_way.remove(mine)


class _Running(Generic[R]):
    """The batches that were begun, taken in turn."""

    def __init__(self, begun: asyncio.Queue[asyncio.Task[R] | None], room: asyncio.Semaphore) -> None:
        self._begun = begun
        self._room = room
        self._task: asyncio.Task[R] | None = None
        self._ended = False
        self.failed = False

    async def next_done(self) -> bool:
        """Waits until the next batch is done; False when there is none any more. Cancelling it cancels no batch."""
        if self._task is None and not self._ended:
            self._task = await self._begun.get()
            self._ended = self._task is None
        if self._task is None:
            return False
        await asyncio.wait([self._task])
        return True

    def take(self) -> R:
        """The result of that batch, or what it raised; makes room for another."""
        assert self._task is not None
        task, self._task = self._task, None
        self._room.release()
        self.failed = True  # until it is known better
        result = task.result()
        self.failed = False
        return result

    def left(self) -> list[asyncio.Task[R]]:
        """The batches that nobody took."""
        tasks = [self._task]
        while not self._begun.empty():
            tasks.append(self._begun.get_nowait())
        return [task for task in tasks if task is not None]


async def _read(upstream: AsyncIterable[T], queue: _Queue, free: asyncio.Semaphore) -> None:
    iterator = aiter(upstream)
    try:
        while True:
            await free.acquire()
            try:
                item = await anext(iterator)
            except StopAsyncIteration:
                return
            queue.put_nowait(item)
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()


async def _start(  # noqa: PLR0913 - the parts of one run
    queue: _Queue,
    free: asyncio.Semaphore,
    room: asyncio.Semaphore,
    begun: asyncio.Queue[asyncio.Task[R] | None],
    work: Callable[[list[T]], Awaitable[R]],
    policy: Policy,
    weigh: Callable[[T], int],
) -> None:
    async def begin(batch: list[T]) -> R:
        return await work(batch)

    try:
        while batch := await _next_batch(queue, free, policy, weigh):
            await room.acquire()
            begun.put_nowait(asyncio.create_task(begin(batch)))
    finally:
        begun.put_nowait(None)


async def _next_batch(queue: _Queue, free: asyncio.Semaphore, policy: Policy, weigh: Callable[[T], int]) -> list[T]:
    """Items until they make a full batch, the window is over or the stream has ended; empty: it had."""
    batch: list[T] = []
    weight, deadline = 0, None
    while weight < policy.batch_size:
        try:
            item = queue.get_nowait() if queue.qsize() else await _get(queue, deadline)
        except TimeoutError:
            break
        if isinstance(item, _End):
            queue.put_nowait(item)  # for the next call
            break
        free.release()
        batch.append(item)
        weight += weigh(item)
        deadline = deadline or asyncio.get_running_loop().time() + policy.window_s
    return batch


async def _get(queue: _Queue, deadline: float | None) -> Any:
    async with asyncio.timeout_at(deadline):
        return await queue.get()
