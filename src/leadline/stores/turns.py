"""Writes that any number of requests make: one after another, so that those who wait hold no thread.

A catalog that another process keeps locked would have them hold all threads of this one, which a request that only
reads needs too. Knows no catalog.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from leadline.errors import StoreBusy
from leadline.stores.catalog_database import BUSY_TIMEOUT_S

T = TypeVar("T")


class WriteTurns:
    """For one event loop. Whoever comes first is first."""

    def __init__(self, wait_s: float = BUSY_TIMEOUT_S) -> None:
        self._wait_s = wait_s
        self._turn = asyncio.Lock()

    async def take(self, write: Callable[[], T]) -> T:
        """What `write` returns, called in a thread. Raises StoreBusy where its turn doesn't come in time.

        Cancelled while it writes, it goes on, and the next turn comes after it: a thread can't be ended.
        """
        try:
            async with asyncio.timeout(self._wait_s):
                await self._turn.acquire()
        except TimeoutError:
            raise StoreBusy(
                f"The catalog could not be written to within {self._wait_s:g} s: others were before.",
                hint="Another process may be writing to it; try again when it is done.",
            ) from None
        writing = asyncio.ensure_future(asyncio.to_thread(write))
        writing.add_done_callback(lambda _: self._turn.release())
        return await asyncio.shield(writing)
