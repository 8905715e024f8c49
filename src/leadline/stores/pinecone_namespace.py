"""The requests that the Pinecone store makes to one namespace of an index.

Pinecone acknowledges a write before searches see it. The answer to an upsert names its place in the namespace's log,
and the answer to a query how far along that log it looked, so a write here ends when a query has got that far. The
answer to a deletion names no place: it ends when a query for what was deleted finds nothing. Looking up, listing and
counting follow a moment later; an index that keeps no such log (one on pods) is not waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from leadline.errors import StoreError
from leadline.stores import pinecone_client
from leadline.stores.pinecone_client import Account
from leadline.stores.pinecone_payloads import Filter, Metadata

if TYPE_CHECKING:
    from pinecone import AsyncIndex
    from pinecone.models.vectors.responses import QueryResponse

T = TypeVar("T")

DEFAULT = "__default__"  # what statistics call the namespace without a name
IDS_AT_ONCE = 1000
ADDRESS_CHARS = 6000  # ids are looked up by the address of a GET, and servers cut long addresses off
REQUESTS_AT_ONCE = 8
LARGEST_QUERY = 10_000
PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.5)


class PineconeNamespace:
    """One namespace of an open index whose vectors have `dimension` numbers."""

    def __init__(self, client: AsyncIndex, account: Account, name: str) -> None:
        self.client = client
        self.dimension = 0
        self._account = account
        self._name = name

    async def look(self) -> None:
        """Reads the width of the index. Raises ManifestMismatch for one of another metric."""
        stats = await self._ask(self.client.describe_index_stats)
        wanted = pinecone_client.METRICS[self._account.metric]
        if stats.metric and stats.metric != wanted:
            raise self._account.mismatch(f"measures by {stats.metric}, not by {wanted}")
        if not stats.dimension:
            raise self._account.mismatch("holds no dense vectors")
        self.dimension = stats.dimension

    async def vector_count(self) -> int:
        """How many vectors there are."""
        stats = await self._ask(self.client.describe_index_stats)
        found = stats.namespaces.get(self._name or DEFAULT) or stats.namespaces.get(self._name)
        return found.vector_count if found else 0

    async def fetch(self, vector_ids: Sequence[str]) -> dict[str, Metadata]:
        """Vector id → payload, of those stored."""
        at_once = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def part(ids: list[str]) -> Mapping[str, Any]:
            async with at_once:
                return (await self._ask(partial(self.client.fetch, ids=ids, namespace=self._name))).vectors

        parts = await asyncio.gather(*(part(ids) for ids in _addressable(vector_ids)))
        return {key: vector.metadata or {} for found in parts for key, vector in found.items()}

    async def list_ids(self, prefix: str | None = None) -> AsyncIterator[str]:
        """The ids of all vectors, or of those that begin so, in pages."""
        ask = partial(self.client.list_paginated, prefix=prefix, namespace=self._name)
        token: str | None = None
        while True:
            page = await self._ask(partial(ask, pagination_token=token))
            for item in page.vectors:
                if item.id is not None:
                    yield item.id
            token = page.pagination.next if page.pagination else None
            if token is None:
                return

    async def upsert(self, batch: list[dict[str, Any]]) -> int | None:
        """Writes vectors; their place in the log, where there is one."""
        answer = await self._ask(partial(self.client.upsert, vectors=batch, namespace=self._name))
        if answer.upserted_count != len(batch):
            raise StoreError(
                f"The Pinecone index {self._account.index} took {answer.upserted_count} of {len(batch)} vectors.",
                hint="Run it again.",
            )
        return answer.response_info.lsn_committed if answer.response_info else None

    async def delete(self, vector_ids: Sequence[str]) -> None:
        """Deletes vectors by id; unknown ones do no harm."""
        for start in range(0, len(vector_ids), IDS_AT_ONCE):
            ids = list(vector_ids[start : start + IDS_AT_ONCE])
            await self._unless_missing(partial(self.client.delete, ids=ids, namespace=self._name))

    async def delete_all(self) -> None:
        """Empties the namespace, and waits until no search finds anything."""
        await self._unless_missing(partial(self.client.delete, delete_all=True, namespace=self._name))
        await self.until_gone(None)

    async def query(self, vector: list[float], top_k: int, narrowed: Filter | None, *, payloads: bool) -> QueryResponse:
        """The nearest vectors that the filter lets through, best first."""
        return await self._ask(
            partial(
                self.client.query,
                vector=vector,
                top_k=top_k,
                filter=narrowed,
                include_metadata=payloads,
                namespace=self._name,
            )
        )

    async def until_written(self, place: int) -> None:
        """Waits until searches see the log as far as `place`."""

        def has_reached(found: QueryResponse) -> bool:
            seen = found.response_info.lsn_reconciled if found.response_info else None
            return seen is None or seen >= place

        await self._until(None, has_reached)

    async def until_gone(self, narrowed: Filter | None) -> None:
        """Waits until no search finds anything that the filter lets through."""
        await self._until(narrowed, lambda found: not found.matches)

    async def _until(self, narrowed: Filter | None, is_so: Callable[[QueryResponse], bool]) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._account.timeout
        pauses = iter(PAUSES_S)
        while not is_so(await self.query([1.0] * self.dimension, 1, narrowed, payloads=False)):
            if loop.time() > end:
                raise StoreError(
                    f"The Pinecone index {self._account.index} took a change, but after {self._account.timeout:g} s "
                    "searches don't see it yet.",
                    hint="Nothing is lost; run it again, or set a longer timeout.",
                )
            await asyncio.sleep(next(pauses, PAUSES_S[-1]))

    async def _ask(self, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with pinecone_client.errors_named(self._account):
            return await request()

    async def _unless_missing(self, request: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """As `_ask`; a namespace that isn't there yet has nothing to delete."""
        from pinecone import NotFoundError

        with pinecone_client.errors_named(self._account):
            try:
                await request()
            except NotFoundError:
                return


def _addressable(vector_ids: Sequence[str]) -> Iterator[list[str]]:
    """Parts of the ids, each short enough for an address."""
    part: list[str] = []
    room = ADDRESS_CHARS
    for each in vector_ids:
        length = len(quote(each, safe="")) + len("&ids=")
        if part and (len(part) == IDS_AT_ONCE or length > room):
            yield part
            part, room = [], ADDRESS_CHARS
        part.append(each)
        room -= length
    if part:
        yield part
