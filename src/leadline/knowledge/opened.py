"""One open collection, as the functions of this package share it, and the embedding of texts into the cache."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from leadline.knowledge.gate import Gate
from leadline.models.base import Embedder
from leadline.stores.base import ChunkStore, GraphStore, LexicalStore, Store, VectorStore
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import current_builds
from leadline.stores.catalog_outbox import CONTENT
from leadline.stores.catalog_vectors import cached_hashes, save_vectors
from leadline.stores.lease import Lease

T = TypeVar("T")
# Texts embedded between two writes of the cache: what a killed process loses, and what a cancelled one waits for.
EMBED_SLICE: Final = 256


@dataclass(frozen=True, slots=True)
class Legs:
    """The three indexes of a collection. The names of the legs are the names of the fields."""

    vector: VectorStore
    bm25: LexicalStore
    graph: GraphStore

    @property
    def joint(self) -> bool:
        """Whether one index holds the vectors and the words: it keeps chunks without a vector too."""
        twin: object = self.bm25
        return self.vector is twin


class BuildReplaced(Exception):
    """Other indexes have taken the place of these: nothing was changed, and the change is to be made on those."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A collection with its indexes, and its texts in `content`.

    `builds` says which of the indexes made for each leg these are. `finish` does what an interrupted change left to
    do. `embedding` lets one user of the model through at a time: the texts of the next put are embedded while the one
    before is stored. `stack` closes the indexes.
    """

    name: str
    catalog: Catalog
    embedder: Embedder
    gate: Gate
    legs: Legs
    content: ChunkStore
    builds: Mapping[str, int]
    finish: Callable[["Opened"], Awaitable[None]]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    embedding: asyncio.Lock = field(default_factory=asyncio.Lock)
    without_text: set[str] = field(default_factory=set)  # live chunks that searches found and whose text is missing

    @property
    def stores(self) -> dict[str, Store]:
        """Leg → index."""
        return {"vector": self.legs.vector, "bm25": self.legs.bm25, "graph": self.legs.graph}

    @property
    def followers(self) -> dict[str, Store]:
        """All that follows the catalog: the indexes, and the texts last, so that no index leads to a missing text."""
        return {**self.stores, CONTENT: self.content}

    def without_twins(self, legs: Collection[str]) -> list[str]:
        """The legs, but for those whose index is that of an earlier one."""
        return [leg for leg in legs if leg != "bm25" or not self.legs.joint or "vector" not in legs]

    @property
    def leg_names(self) -> list[str]:
        """The legs a change is owed to."""
        return list(self.stores)

    @property
    def lease(self) -> Lease:
        """The lease of the change that is being made. Raises StoreError outside of `writing`."""
        return self.gate.lease

    @property
    def writing(self) -> AbstractAsyncContextManager[None]:
        """A change is made within the block, one at a time among all processes. What another one was interrupted in
        is finished first. Raises LeaseHeld, BuildReplaced."""
        return self._writing()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        async with self.gate.hold():
            if await asyncio.to_thread(current_builds, self.catalog, self.name) != self.builds:
                raise BuildReplaced
            await self.finish(self)
            yield


async def embed_missing(opened: Opened, texts: Mapping[str, str], *, fresh: bool = False) -> dict[str, bool]:
    """Embeds the texts (content hash → text) the cache doesn't have, or all if `fresh`.

    Returns hash → whether there is a usable vector.
    """
    usable = {} if fresh else await _cached(opened.catalog, opened.embedder, texts)
    if texts.keys() == usable.keys():
        return usable
    async with opened.embedding:
        return usable | await embed_into_cache(opened.catalog, opened.embedder, texts, fresh=fresh)


async def embed_into_cache(
    catalog: Catalog, embedder: Embedder, texts: Mapping[str, str], *, fresh: bool = False
) -> dict[str, bool]:
    """`embed_missing` without an open collection, for the only user of the model.

    Kept slice by slice: what was embedded before a crash is not embedded again.
    """
    usable = {} if fresh else await _cached(catalog, embedder, texts)
    # Neighbours of equal length share a slice, so that no slice waits for one long text at its end.
    missing = sorted(texts.keys() - usable.keys(), key=lambda key: (-len(texts[key]), key))
    for start in range(0, len(missing), EMBED_SLICE):
        hashes = missing[start : start + EMBED_SLICE]
        matrix = await asyncio.to_thread(embedder.embed_passages, [texts[key] for key in hashes])
        usable |= await asyncio.to_thread(save_vectors, catalog, embedder.name, hashes, matrix)
    return usable


async def _cached(catalog: Catalog, embedder: Embedder, texts: Mapping[str, str]) -> dict[str, bool]:
    return await asyncio.to_thread(cached_hashes, catalog, embedder.name, list(texts))


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits `work`, and when cancelled lets it end first: indexes are not closed in the middle of a change."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise
