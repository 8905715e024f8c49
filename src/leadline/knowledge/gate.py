"""The gate to a data folder: one change at a time, in this process and among all that have the folder open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from leadline.errors import LeaseHeld, StoreError
from leadline.stores.catalog import Catalog
from leadline.stores.lease import Lease, hold_lease


class Gate:
    """Lets changes through one by one, each under the folder's lease."""

    def __init__(self, catalog: Catalog, timeout_s: float) -> None:
        self._catalog = catalog
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()
        self._lease: Lease | None = None

    @property
    def lease(self) -> Lease:
        """The lease, of the change that is being made."""
        if self._lease is None:
            raise StoreError("Nothing may be changed outside of the gate.")
        return self._lease

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """A change is made within the block. Waits for those of this process, and `timeout_s` for other processes';
        then raises LeaseHeld, which names the owner."""
        async with self._hold(self._timeout_s):
            yield

    @asynccontextmanager
    async def hold_if_free(self) -> AsyncIterator[bool]:
        """As `hold`, but waits for nobody. Whether the gate is held."""
        if self._turn.locked():
            yield False
            return
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._hold(0))
            except LeaseHeld:
                yield False
                return
            yield True

    @asynccontextmanager
    async def _hold(self, timeout_s: float) -> AsyncIterator[None]:
        async with self._turn, hold_lease(self._catalog, timeout_s) as lease:
            self._lease = lease
            try:
                yield
            finally:
                self._lease = None
