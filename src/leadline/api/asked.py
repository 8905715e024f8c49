"""Work that is waited for until it is done, or nobody waits any more."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request

from leadline.state import Result

T = TypeVar("T")

CLIENT_GONE: Final = 499  # nobody reads it; named so that the access log tells it from an error
POLL_S: Final = 0.25


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """Its result. Whoever waits may be cancelled again and again, as servers do; the work is cancelled once."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
        return task.result()
    finally:
        task.cancel()


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result, or None when the client went away first; the run is cancelled then."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=POLL_S)
            if not task.done() and await request.is_disconnected():
                return None
        return task.result()
    finally:
        task.cancel()
