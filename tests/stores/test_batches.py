"""Streams in batches: nothing lost or out of order, and an end that is clear however it comes."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import ConfigError
from leadline.stores.base import Policy
from leadline.stores.batches import Turns, in_batches

LONG = 30.0  # seconds that no test waits


class Stream:
    """Numbers one after the other; notes how many were read and that it was closed."""

    def __init__(self, count: int, *, then: BaseException | None = None, pause_after: int | None = None) -> None:
        self.read = 0
        self.closed = False
        self._count, self._then, self._pause_after = count, then, pause_after

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            for number in range(self._count):
                if number == self._pause_after:
                    await asyncio.sleep(LONG)
                self.read += 1
                yield number
            if self._then is not None:
                raise self._then
        finally:
            self.closed = True


class Work:
    """Notes the batches it began and ended, and can be made to wait or to fail."""

    def __init__(self, *, gate: asyncio.Event | None = None, fail_at: int | None = None) -> None:
        self.begun: list[list[int]] = []
        self.ended: list[list[int]] = []
        self.most = 0
        self._gate, self._fail_at = gate, fail_at

    async def __call__(self, batch: list[int]) -> list[int]:
        self.begun.append(batch)
        self.most = max(self.most, len(self.begun) - len(self.ended))
        if self._gate is not None:
            await self._gate.wait()
        await asyncio.sleep(0)
        if self._fail_at in batch:
            raise RuntimeError("no room")
        self.ended.append(batch)
        return batch


async def until(condition: Callable[[], bool]) -> None:
    """Returns as soon as the condition holds."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


async def drained(items: AsyncIterator[list[int]]) -> list[list[int]]:
    """All results."""
    return [each async for each in items]


@given(
    weights=st.lists(st.integers(1, 5), max_size=40),
    size=st.integers(1, 12),
    concurrency=st.integers(1, 4),
    ahead=st.integers(0, 6),
)
@settings(deadline=None, max_examples=60)
def test_every_item_is_worked_once_and_in_order(weights: list[int], size: int, concurrency: int, ahead: int) -> None:
    """Whatever the sizes; a batch is as heavy as it must be and no heavier, and no more are under way than may be."""
    work = Work()
    policy = Policy(batch_size=size, window_s=LONG, concurrency=concurrency)

    async def run() -> list[list[int]]:
        stream = Stream(len(weights))
        return await drained(in_batches(stream, work, policy, weigh=lambda item: weights[item], ahead=ahead))

    batches = asyncio.run(run())
    assert [item for batch in batches for item in batch] == list(range(len(weights)))
    assert all(sum(weights[item] for item in batch[:-1]) < size for batch in batches)
    assert all(sum(weights[item] for item in batch) >= size for batch in batches[:-1])
    assert work.most <= concurrency


async def test_a_batch_does_not_wait_for_a_silent_stream() -> None:
    """After the window what has come is worked, though the batch isn't full and the stream goes on."""
    policy = Policy(batch_size=100, window_s=0.05)
    async with aclosing(in_batches(Stream(10, pause_after=3), Work(), policy)) as batches:
        assert await asyncio.wait_for(anext(batches), 5) == [0, 1, 2]


async def test_batches_run_beside_each_other_and_come_out_in_order() -> None:
    """As many as the policy allows are begun before the first has ended."""
    gate = asyncio.Event()
    work = Work(gate=gate)
    run = asyncio.create_task(drained(in_batches(Stream(8), work, Policy(batch_size=2, concurrency=3))))
    await until(lambda: len(work.begun) == 3)
    await asyncio.sleep(0.05)
    assert work.begun == [[0, 1], [2, 3], [4, 5]]
    gate.set()
    assert await run == [[0, 1], [2, 3], [4, 5], [6, 7]]


async def test_a_slow_reader_holds_the_stream_up() -> None:
    """Nobody takes the results: what is read stays a few batches."""
    stream = Stream(1000)
    async with aclosing(in_batches(stream, Work(), Policy(batch_size=2, concurrency=2))) as batches:
        await anext(batches)
        await asyncio.sleep(0.1)
        assert stream.read < 20


async def test_closed_early_what_was_read_is_worked() -> None:
    """The stream is closed, and everything it gave has been worked when the closing returns."""
    stream, work = Stream(1000), Work()
    batches = in_batches(stream, work, Policy(batch_size=3))
    async with aclosing(batches):
        assert await anext(batches) == [0, 1, 2]
    assert stream.closed
    assert [item for batch in work.ended for item in batch] == list(range(stream.read))
    assert stream.read < 20


async def test_left_in_the_middle_what_was_read_is_worked_later() -> None:
    """A loop that is broken out of without closing: the same, as soon as the loop gives a turn."""
    stream, work = Stream(1000), Work()
    async for _ in in_batches(stream, work, Policy(batch_size=3)):
        break
    gc.collect()
    await until(lambda: stream.closed and sum(map(len, work.ended)) == stream.read)


async def test_cancelled_nothing_more_is_begun() -> None:
    """Whoever cancels wants out now: batches under way are cancelled, what was read for later ones is dropped."""
    stream, work = Stream(1000), Work(gate=asyncio.Event())
    run = asyncio.create_task(drained(in_batches(stream, work, Policy(batch_size=3, concurrency=2))))
    await until(lambda: len(work.begun) == 2)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 5)
    assert stream.closed
    assert (len(work.begun), work.ended) == (2, [])


async def test_an_error_of_the_stream_comes_after_what_was_read() -> None:
    """The items before the error are worked and given out, then the error is raised."""
    work = Work()
    batches = in_batches(Stream(5, then=OSError("gone")), work, Policy(batch_size=2))
    assert [await anext(batches) for _ in range(3)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(OSError, match="gone"):
        await anext(batches)


async def test_an_error_of_the_work_ends_the_run() -> None:
    """No batch is begun after it, those under way end, the stream is closed."""
    stream, work = Stream(1000), Work(fail_at=4)
    with pytest.raises(RuntimeError, match="no room"):
        await drained(in_batches(stream, work, Policy(batch_size=2, concurrency=2)))
    assert stream.closed
    assert len(work.begun) <= 4
    assert len(work.ended) == len(work.begun) - 1


async def test_turns_keep_the_order_of_what_shares_a_key() -> None:
    """The later one waits for all before it that have a key of its own; others pass."""
    turns, order = Turns(), []
    first_may_end = asyncio.Event()

    async def one(name: str, keys: list[str], until: asyncio.Event | None = None) -> None:
        async with turns.after(keys):
            if until is not None:
                await until.wait()
            order.append(name)

    first = asyncio.create_task(one("first", ["a", "b"], first_may_end))
    await asyncio.sleep(0)
    second = asyncio.create_task(one("second", ["b", "c"]))
    third = asyncio.create_task(one("third", ["c"]))
    await one("other", ["d"])
    assert order == ["other"]
    first_may_end.set()
    await asyncio.gather(first, second, third)
    assert order == ["other", "first", "second", "third"]


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"concurrency": 0}, {"retries": -1}, {"window_s": -1.0}])
def test_a_policy_that_can_not_work_is_refused(wrong: dict[str, float]) -> None:
    """At once, and not as a run that stores nothing."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Policy(**wrong)  # type: ignore[arg-type] - any of the fields
