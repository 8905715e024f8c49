"""Searching a collection of which an index can't be opened: a damaged file, a server that is down or hangs.

Knows when to try again. Nothing can be changed in such a collection: that takes all of its indexes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from leadline.deadline import within
from leadline.errors import CollectionUnknown, ManifestMismatch, StoreError
from leadline.knowledge.base import KnowledgeBase
from leadline.knowledge.current import Current
from leadline.stores.base import Retriever

RETRY_S: Final = 30.0  # until it is tried again to open all of it


class Degraded:
    """The collections of a library that are open in part, for searching."""

    def __init__(self, opening: Callable[[str], Awaitable[Current]], *, patience_s: float) -> None:
        self._open = opening
        self._patience_s = patience_s
        self._parts: dict[str, tuple[Current, float]] = {}
        self._turn = asyncio.Lock()

    async def retrievers(self, name: str, whole: Callable[[str], Awaitable[KnowledgeBase]]) -> dict[str, Retriever]:
        """The legs of the collection, of all of it where that can be opened. Raises CollectionUnknown, StoreError."""
        part, until = self._parts.get(name, (None, 0.0))
        if part is not None and time.monotonic() < until:
            return KnowledgeBase(part).retrievers()
        try:
            found = await within(2 * self._patience_s, _awaited(whole(name)), f"The opening of the collection {name}")
        except (CollectionUnknown, ManifestMismatch):
            raise
        except (StoreError, TimeoutError) as error:
            return KnowledgeBase(await self._in_part(name, error)).retrievers()
        await self._forget(name)
        return found.retrievers()

    async def close(self) -> None:
        """Closes what is open."""
        for name in list(self._parts):
            await self._forget(name)

    async def _in_part(self, name: str, error: Exception) -> Current:
        async with self._turn:
            part, _ = self._parts.get(name, (None, 0.0))
            if part is None:
                try:
                    part = await self._open(name)
                except (StoreError, TimeoutError):
                    raise error from None  # nothing of it can be opened
            self._parts[name] = part, time.monotonic() + RETRY_S
            return part

    async def _forget(self, name: str) -> None:
        part, _ = self._parts.pop(name, (None, 0.0))
        if part is not None:
            await part.close()


async def _awaited(work: Awaitable[KnowledgeBase]) -> KnowledgeBase:
    return await work
