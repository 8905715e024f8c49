"""One open collection, as the functions of this package share it, and the embedding of texts into the cache."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from leadline.models.base import Embedder
from leadline.stores.base import GraphStore, LexicalStore, Store, VectorStore
from leadline.stores.catalog import Catalog
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


@dataclass(frozen=True, slots=True)
class Opened:
    """A collection with its indexes.

    `writing` lets one change at a time through, `embedding` one user of the model, in the order they came: the texts
    of the next put are embedded while the one before is stored.
    """

    name: str
    catalog: Catalog
    embedder: Embedder
    lease: Lease
    legs: Legs
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    embedding: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def stores(self) -> dict[str, Store]:
        """Leg → index."""
        return {"vector": self.legs.vector, "bm25": self.legs.bm25, "graph": self.legs.graph}

    @property
    def leg_names(self) -> list[str]:
        """The legs a change is owed to."""
        return list(self.stores)


async def embed_missing(opened: Opened, texts: Mapping[str, str]) -> dict[str, bool]:
    """Embeds the texts (content hash → text) the cache doesn't have. Hash → whether there is a usable vector.

    Kept slice by slice: what was embedded before a crash is not embedded again.
    """
    catalog, model = opened.catalog, opened.embedder.name
    usable = await asyncio.to_thread(cached_hashes, catalog, model, list(texts))
    # Neighbours of equal length share a slice, so that no slice waits for one long text at its end.
    missing = sorted(texts.keys() - usable.keys(), key=lambda key: (-len(texts[key]), key))
    if not missing:
        return usable
    async with opened.embedding:
        for start in range(0, len(missing), EMBED_SLICE):
            hashes = missing[start : start + EMBED_SLICE]
            matrix = await asyncio.to_thread(opened.embedder.embed_passages, [texts[key] for key in hashes])
            usable |= await asyncio.to_thread(save_vectors, catalog, model, hashes, matrix)
    return usable


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits `work`, and when cancelled lets it end first: indexes are not closed in the middle of a change."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise
