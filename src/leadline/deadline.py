"""Waiting for something no longer than a given time, also where it takes no notice of being cancelled.

Work in a thread can't be ended from outside, and some clients wait for their server when they are cancelled. Such work
is left to itself: what it gives or raises later is dropped.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

GRACE_S: Final = 1.0  # for work to end in order after it was cancelled from outside
GIVE_UP: Final = 10
_left: set[asyncio.Future[Any]] = set()


async def within(seconds: float, work: Coroutine[Any, Any, T], what: str) -> T:
    """The result of `work`. Raises TimeoutError, which says that `what` gave no answer, and whatever `work` raises."""
    task = asyncio.ensure_future(work)
    if await _ends(task, seconds):
        return task.result()
    leave(task)
    raise TimeoutError(f"{what} gave no answer within {seconds:g} s.")


class Patience:
    """How long to wait for each of several parts, such as the legs of a search.

    A part that gave no answer in time is not asked again before it has ended with that: each question to something that
    hangs would cost one more thread. After `GIVE_UP` times as long it is given up, and may be asked again.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._stuck: dict[str, tuple[asyncio.Future[Any], float]] = {}

    async def wait(self, part: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises TimeoutError, and whatever `work` raises."""
        if self._is_stuck(part):
            work.close()
            raise TimeoutError(f"{part} is still busy with what it was asked before.")
        task = asyncio.ensure_future(work)
        if await _ends(task, self.seconds):
            return task.result()
        # Not cancelled: of work in a thread it could not be told any more if it has ended.
        task.add_done_callback(_drop)
        self._stuck[part] = task, time.monotonic() + GIVE_UP * self.seconds
        raise TimeoutError(f"{part} gave no answer within {self.seconds:g} s.")

    def _is_stuck(self, part: str) -> bool:
        task, until = self._stuck.get(part, (None, 0.0))
        if task is None:
            return False
        if not task.done() and time.monotonic() < until:
            return True
        del self._stuck[part]
        leave(task)
        return False


async def _ends(task: asyncio.Future[Any], seconds: float) -> bool:
    """Whether the task ends in time. It is left where whoever waits for it is cancelled."""
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_S)
        leave(task)
        raise
    return task.done()


def leave(task: asyncio.Future[Any]) -> None:
    """Cancels a task and waits for it no longer."""
    task.cancel()
    _left.add(task)
    task.add_done_callback(_drop)


def _drop(task: asyncio.Future[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that nobody is told it was never retrieved
