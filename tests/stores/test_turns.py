"""Writes of many requests, one after another."""

import asyncio
import threading

import pytest

from leadline.stores.turns import WriteTurns


async def test_a_write_whose_request_is_gone_keeps_its_turn() -> None:
    """Its thread can't be ended, so the next one begins after it: those who leave never hold more than one thread."""
    turns, free, first, begun = WriteTurns(), threading.Event(), threading.Event(), list[int]()

    def write(number: int) -> int:
        begun.append(number)
        first.set()
        free.wait(10)
        return number

    for number in range(4):
        leaving = asyncio.create_task(turns.take(lambda number=number: write(number)))
        await asyncio.to_thread(first.wait, 10)
        await asyncio.sleep(0.01)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
    staying = asyncio.create_task(turns.take(lambda: write(9)))
    await asyncio.sleep(0.05)
    assert begun == [0]
    free.set()
    assert await staying == 9
    assert begun == [0, 9]


async def test_a_write_that_fails_ends_its_turn() -> None:
    """Whoever asked for it gets the error, and the next one its turn."""
    turns = WriteTurns()

    def fail() -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        await turns.take(fail)
    assert await asyncio.wait_for(turns.take(lambda: 1), 5) == 1
