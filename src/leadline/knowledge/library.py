"""Opens a data folder: its catalog, the lease of it, the embedding model, and the collections one by one."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from leadline.analysis import Analyzer
from leadline.config import COLLECTION_PATTERN, Settings
from leadline.errors import CollectionUnknown, ConfigError, StoreDamaged, StoreError
from leadline.knowledge.base import KnowledgeBase
from leadline.knowledge.changes import replay
from leadline.knowledge.manifest import check_manifests, manifests_for
from leadline.knowledge.opened import Legs, Opened
from leadline.knowledge.verify import count_differences
from leadline.models import open_embedder
from leadline.models.base import Embedder
from leadline.stores import open_graph_store, open_lexical_store, open_vector_store
from leadline.stores.base import Retriever
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import (
    collection_names,
    create_collection,
    stored_manifests,
    total_generation,
)
from leadline.stores.catalog_sources import SourceInfo, list_sources
from leadline.stores.lease import Lease, hold_lease

INDEXES = "indexes"  # the folder of all that can be built again from the catalog
DEFAULT = "default"  # the collection that is always there


class Library:
    """An open data folder. Collections are opened when first asked for and closed with the library."""

    def __init__(self, settings: Settings, catalog: Catalog, stack: AsyncExitStack, lease: Lease | None) -> None:
        self.settings = settings
        self.catalog = catalog
        self.embedder: Embedder = open_embedder(settings.embedding_model)
        self._stack = stack
        self._lease = lease
        self._opening = asyncio.Lock()
        self._collections: dict[str, KnowledgeBase] = {}

    async def collections(self) -> list[str]:
        """The names of all collections; `default` is always one."""
        return sorted({DEFAULT, *await asyncio.to_thread(collection_names, self.catalog)})

    async def collection(self, name: str = DEFAULT, *, create: bool = False) -> KnowledgeBase:
        """The collection, its indexes open and in step with the catalog.

        Raises CollectionUnknown unless it is there, is `default`, or `create`; ManifestMismatch if its indexes were
        built with other settings; StoreDamaged.
        """
        if not re.fullmatch(COLLECTION_PATTERN, name):
            raise ConfigError(
                f"{name!r} can't be the name of a collection.", hint="Letters, digits, - and _; at most 63 of them."
            )
        async with self._opening:
            if name not in self._collections:
                self._collections[name] = await self._open(name, create)
            return self._collections[name]

    async def retrievers(self, collection: str = DEFAULT) -> dict[str, Retriever]:
        """Leg → retriever, of the collection."""
        return (await self.collection(collection)).retrievers()

    async def sources(self, collection: str = DEFAULT) -> list[SourceInfo]:
        """The sources of a collection, without opening its indexes. Raises CollectionUnknown."""
        await self._ensure_known(collection)
        return await asyncio.to_thread(list_sources, self.catalog, collection)

    async def generation(self) -> int:
        """Rises with every change of what a search in any collection can find."""
        return await asyncio.to_thread(total_generation, self.catalog)

    async def _ensure_known(self, name: str) -> None:
        names = await self.collections()
        if name not in names:
            raise CollectionUnknown(
                f"There is no collection {name} in {self.settings.data_dir}.", hint=f"There is: {', '.join(names)}."
            )

    async def _open(self, name: str, create: bool) -> KnowledgeBase:
        if self._lease is None:
            raise StoreError("The library was opened without its indexes.", hint="Open it with `indexes=True`.")
        if not create:
            await self._ensure_known(name)
        wanted = await asyncio.to_thread(manifests_for, self.settings, self.embedder)
        check_manifests(name, await asyncio.to_thread(stored_manifests, self.catalog, name), wanted)
        await asyncio.to_thread(create_collection, self.catalog, name, wanted)
        async with AsyncExitStack() as stack:
            legs = await self._open_legs(name, stack)
            opened = Opened(name, self.catalog, self.embedder, self._lease, legs)
            await replay(opened)
            kb = KnowledgeBase(opened, await count_differences(opened))
            self._stack.push_async_callback(stack.pop_all().aclose)
        return kb

    async def _open_legs(self, name: str, stack: AsyncExitStack) -> Legs:
        settings = self.settings
        vector, bm25 = (settings.data_dir / INDEXES / name / leg for leg in ("vector", "bm25"))
        analyzer = Analyzer(settings.stemmer)
        with _repairable(vector):
            vector_store = await stack.enter_async_context(open_vector_store(settings.vector_backend, path=vector))
        with _repairable(bm25):
            lexical_store = await stack.enter_async_context(
                open_lexical_store(settings.lexical_backend, path=bm25, analyzer=analyzer)
            )
        graph_store = await stack.enter_async_context(open_graph_store(self.catalog, name))
        legs = Legs(vector_store, lexical_store, graph_store)
        await legs.vector.ensure_ready(self.embedder.dimension)
        await legs.bm25.ensure_ready()
        await legs.graph.ensure_ready()
        return legs


@asynccontextmanager
async def open_library(settings: Settings, *, indexes: bool = True) -> AsyncIterator[Library]:
    """Opens the data folder of `settings`, made if there is none, and closes all of it again.

    With `indexes` it is this process's alone meanwhile: waits `lock_timeout_s` for another one, then raises
    LeaseHeld, which names the owner. Without, only the catalog is read, whoever else has the folder open. Raises
    StoreDamaged, StoreError, ConfigError.
    """
    catalog = Catalog(settings.data_dir)
    async with AsyncExitStack() as stack:
        stack.callback(catalog.close)
        await asyncio.to_thread(_open_catalog, catalog)
        lease = await stack.enter_async_context(hold_lease(catalog, settings.lock_timeout_s)) if indexes else None
        yield Library(settings, catalog, stack, lease)


@contextmanager
def _repairable(folder: Path) -> Iterator[None]:
    """Says of a damaged index how it is built again: that loses nothing, the catalog has all of it."""
    try:
        yield
    except StoreDamaged as error:
        hint = f"It was left as it is. Move {folder} away, then `leadline verify --repair` builds it from the catalog."
        raise StoreDamaged(error.message, hint=hint) from error


def _open_catalog(catalog: Catalog) -> None:
    """A missing catalog is an empty one, unless there are indexes that must have come from another."""
    indexes = catalog.path.parent / INDEXES
    if not catalog.path.exists() and indexes.is_dir() and any(indexes.iterdir()):
        raise StoreDamaged(
            f"The catalog {catalog.path} is missing, and the indexes made from it are still there.",
            hint=f"Put it back from a copy, or remove {indexes} to start empty.",
        )
    catalog.open()
