"""Opens a data folder: its catalog, the embedding model, and the collections one by one."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import CollectionUnknown, StoreDamaged
from leadline.knowledge import opening
from leadline.knowledge.base import KnowledgeBase
from leadline.knowledge.calibrations import Calibrations
from leadline.knowledge.current import Current
from leadline.knowledge.degraded import Degraded
from leadline.knowledge.gate import Gate
from leadline.knowledge.manifest import check_content, settings_of
from leadline.knowledge.opened import Opened
from leadline.knowledge.places import INDEXES, check_name
from leadline.knowledge.reindex import Reindex
from leadline.knowledge.reports import ReindexReport
from leadline.models import open_embedder
from leadline.models.base import Embedder
from leadline.records import Origin
from leadline.stores import check_backends
from leadline.stores.base import Retriever
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import collection_names, identity, stored_manifests, total_generation
from leadline.stores.catalog_origins import still_there
from leadline.stores.catalog_sources import SourceInfo, list_sources
from leadline.stores.turns import WriteTurns

DEFAULT = "default"  # the collection that is always there


class Library:
    """An open data folder. Collections are opened when first asked for and closed with the library."""

    def __init__(self, settings: Settings, catalog: Catalog, stack: AsyncExitStack) -> None:
        self.settings = settings
        self.catalog = catalog
        self.embedder: Embedder = open_embedder(settings.embedding_model)
        self.gate = Gate(catalog, settings.lock_timeout_s)
        self.turns = WriteTurns()
        self.calibrations = Calibrations(catalog, self.gate, settings.max_wrong)
        self._stack = stack
        self._opening = asyncio.Lock()
        self._collections: dict[str, KnowledgeBase] = {}
        self._degraded = Degraded(self._open_for_search, patience_s=settings.leg_timeout_s)
        stack.push_async_callback(self._degraded.close)

    async def collections(self) -> list[str]:
        """The names of all collections; `default` is always one."""
        return sorted({DEFAULT, *await asyncio.to_thread(collection_names, self.catalog)})

    async def collection(self, name: str = DEFAULT, *, create: bool = False) -> KnowledgeBase:
        """The collection, its indexes open and in step with the catalog.

        Raises CollectionUnknown unless it is there, is `default`, or `create`; ManifestMismatch if its indexes were
        built with other settings; StoreDamaged.
        """
        check_name(name)
        async with self._opening:
            if name not in self._collections:
                if not create:
                    await self._ensure_known(name)
                self._collections[name] = await self._open(name)
            return self._collections[name]

    def is_open(self, collection: str) -> bool:
        """Whether all of the collection is open, so that asking for it costs nothing."""
        return collection in self._collections

    async def retrievers(self, collection: str = DEFAULT) -> dict[str, Retriever]:
        """Leg → retriever, of the collection.

        Where an index of it can't be opened, the others can be searched all the same, and that leg raises why.
        """
        return await self._degraded.retrievers(collection, self.collection)

    async def sources(self, collection: str = DEFAULT) -> list[SourceInfo]:
        """The sources of a collection, without opening its indexes. Raises CollectionUnknown."""
        await self._ensure_known(collection)
        return await asyncio.to_thread(list_sources, self.catalog, collection)

    async def generation(self) -> int:
        """Rises with every change of what a search in any collection can find."""
        return await asyncio.to_thread(total_generation, self.catalog)

    async def identity(self) -> str:
        """What tells this library's catalog from every other: 32 hexadecimal digits."""
        return await asyncio.to_thread(identity, self.catalog)

    async def still_there(self, origins: Sequence[Origin]) -> set[str]:
        """The ids of those chunks whose text is still in the library: neither deleted nor replaced by another."""
        return await asyncio.to_thread(still_there, self.catalog, origins)

    async def reindex(
        self,
        name: str = DEFAULT,
        *,
        recut: Callable[[SourceDraft], SourceDraft],
        everything: bool = False,
        dry_run: bool = False,
        told: Callable[[str, int, int], None] = lambda *_: None,
    ) -> ReindexReport:
        """Builds the indexes of a collection as the settings say, where they differ (or all, with `everything`), beside
        the ones that are in use, and then has them take their place.

        `recut` cuts a source anew, where the settings say other chunks. `told` is called with what is being done, how
        much of it is done, and of how much. A dry run only says what would be built. Raises CollectionUnknown,
        StoreError, ModelError, LeaseHeld.
        """
        await self._ensure_known(name)
        check_content(name, await asyncio.to_thread(stored_manifests, self.catalog, name), self.settings)
        async with opening.open_content(name, self.settings, self.catalog) as content:
            building = Reindex(name, self.settings, self.catalog, content, self.embedder, self.gate, recut, told)
            return await building.run(everything=everything, dry_run=dry_run)

    async def _ensure_known(self, name: str) -> None:
        names = await self.collections()
        if name not in names:
            raise CollectionUnknown(
                f"There is no collection {name} in {self.settings.data_dir}.", hint=f"There is: {', '.join(names)}."
            )

    async def _open(self, name: str) -> KnowledgeBase:
        opened = await opening.open_collection(name, self.settings, self.catalog, self.embedder, self.gate)
        problems = await opening.finish_and_compare(opened, self.settings)
        current = Current(opened, lambda: self._reopen(name), leg_timeout_s=self.settings.leg_timeout_s)
        self._stack.push_async_callback(current.close)
        return KnowledgeBase(current, problems)

    async def _open_for_search(self, name: str) -> Current:
        opened = await opening.open_for_search(name, self.settings, self.catalog, self.embedder, self.gate)
        return Current(opened, lambda: self._reopen(name), leg_timeout_s=self.settings.leg_timeout_s)

    async def _reopen(self, name: str) -> Opened:
        """The collection with indexes that another process has built meanwhile, with whatever settings."""
        settings = settings_of(self.settings, await asyncio.to_thread(stored_manifests, self.catalog, name))
        embedder = self.embedder
        if settings.embedding_model != self.settings.embedding_model:
            embedder = open_embedder(settings.embedding_model)
        return await opening.open_collection(name, settings, self.catalog, embedder, self.gate)


@asynccontextmanager
async def open_library(settings: Settings) -> AsyncIterator[Library]:
    """Opens the data folder of `settings`, made if there is none, and closes all of it again.

    Any number of processes may have it open at once; changes take turns. Raises StoreDamaged, StoreError,
    ConfigError.
    """
    check_backends(settings.vector_backend, settings.lexical_backend, settings.content_backend)
    url = settings.catalog_url
    catalog = Catalog(settings.data_dir, None if url is None else url.get_secret_value())
    async with AsyncExitStack() as stack:
        stack.callback(catalog.close)
        await asyncio.to_thread(_open_catalog, catalog, settings.data_dir / INDEXES)
        yield Library(settings, catalog, stack)


def _open_catalog(catalog: Catalog, indexes: Path) -> None:
    """A missing catalog is an empty one, unless there are indexes that must have come from another."""
    if indexes.is_dir() and any(indexes.iterdir()) and catalog.is_missing():
        raise StoreDamaged(
            f"The catalog {catalog.place} is missing, and the indexes made from it are still there.",
            hint=f"Put it back from a copy, or remove {indexes} to start empty.",
        )
    catalog.open()
