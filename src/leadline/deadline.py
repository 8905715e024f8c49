"""Waiting for something no longer than a given time, also where it takes no notice of being cancelled.

Work in a thread can't be ended from outside, and some clients wait for their server when they are cancelled. Such work
is left to itself: what it gives or raises later is dropped.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

GRACE_S: Final = 1.0  # for work to end in order after it was cancelled from outside
_left: set[asyncio.Future[Any]] = set()


async def within(seconds: float, work: Coroutine[Any, Any, T], what: str) -> T:
    """The result of `work`. Raises TimeoutError, which says that `what` gave no answer, and whatever `work` raises."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_S)
        leave(task)
        raise
    if task.done():
        return task.result()
    leave(task)
    raise TimeoutError(f"{what} gave no answer within {seconds:g} s.")


def leave(task: asyncio.Future[Any]) -> None:
    """Cancels a task and waits for it no longer."""
    task.cancel()
    _left.add(task)
    task.add_done_callback(_drop)


def _drop(task: asyncio.Future[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that nobody is told it was never retrieved
