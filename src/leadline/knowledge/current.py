"""The indexes of a collection that are in use now, also after another process has built new ones.

A reindex puts new indexes in the place of the old at one moment. Whoever was using the old ones ends with them; the
next one finds the new. Knows when to open and close; doesn't know how.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from leadline.deadline import Patience
from leadline.errors import StoreError
from leadline.knowledge.opened import BuildReplaced, Opened
from leadline.models.base import Embedder
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import current_builds

log = logging.getLogger(__name__)

T = TypeVar("T")

LEG_TIMEOUT_S = 20.0


class Current:
    """Gives out the open indexes; opens new ones with `reopen` when the catalog names others than those.

    `leg_timeout_s` is how long a search waits for one of them.
    """

    def __init__(
        self, opened: Opened, reopen: Callable[[], Awaitable[Opened]], *, leg_timeout_s: float = LEG_TIMEOUT_S
    ) -> None:
        self.patience = Patience(leg_timeout_s)
        self._opened = opened
        self._reopen = reopen
        self._users: Counter[int] = Counter()  # by identity
        self._renewing = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """The collection."""
        return self._opened.name

    @property
    def catalog(self) -> Catalog:
        """The catalog it is in."""
        return self._opened.catalog

    @property
    def embedder(self) -> Embedder:
        """The model of its vectors."""
        return self._opened.embedder

    @property
    def without_text(self) -> int:
        """Of how many chunks searches missed the text since the last change."""
        return len(self._opened.without_text)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Opened]:
        """The indexes as they are now; they stay open until the block ends."""
        await self._renew()
        opened = self._opened
        self._users[id(opened)] += 1
        try:
            yield opened
        finally:
            self._users[id(opened)] -= 1
            if self._closed:
                await self._close_unused(opened)
            elif opened is not self._opened:
                self._close_former(opened)

    async def change(self, work: Callable[[Opened], Awaitable[T]]) -> T:
        """Does `work`, which passes the gate before it changes anything, on the indexes as they are then."""
        while True:
            async with self.use() as opened:
                try:
                    return await work(opened)
                except BuildReplaced:
                    continue

    async def close(self) -> None:
        """Closes the indexes, as soon as nobody uses them."""
        self._closed = True
        await asyncio.gather(*self._closing)
        await self._close_unused(self._opened)

    async def _renew(self) -> None:
        if self._closed:
            raise StoreError(f"The collection {self._opened.name} is closed.", hint="Open its library again.")
        if await self._is_current():
            return
        async with self._renewing:
            if not await self._is_current():
                former, self._opened = self._opened, await self._reopen()
                self._close_former(former)

    async def _is_current(self) -> bool:
        opened = self._opened
        return await asyncio.to_thread(current_builds, opened.catalog, opened.name) == opened.builds

    def _close_former(self, opened: Opened) -> None:
        """Closes indexes that others took the place of, beside whatever is asked of those."""
        task = asyncio.create_task(self._close_quietly(opened))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_quietly(self, opened: Opened) -> None:
        try:
            await self._close_unused(opened)
        except Exception as error:  # noqa: BLE001 - a named degrade: their files may be gone by now, and nobody needs them
            log.warning("The former indexes of the collection %s were not closed in order: %s", opened.name, error)

    async def _close_unused(self, opened: Opened) -> None:
        if not self._users[id(opened)]:
            await opened.stack.aclose()
