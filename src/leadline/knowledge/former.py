"""Removes indexes that others have taken the place of."""

import asyncio
import logging
from collections.abc import Mapping

from leadline.analysis import Analyzer
from leadline.config import Settings
from leadline.errors import LeadlineError
from leadline.knowledge import places
from leadline.knowledge.manifest import MADE_WITH, Manifest
from leadline.stores import is_elsewhere, open_graph_store, open_joint_store, open_lexical_store, open_vector_store
from leadline.stores.base import Store
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import identity

log = logging.getLogger(__name__)


async def remove_replaced(
    settings: Settings,
    catalog: Catalog,
    name: str,
    stored: Mapping[str, Manifest],
    replaced: Mapping[str, int],
) -> list[str]:
    """Empties the indexes that were built as `stored` says under the numbers `replaced`, if they are outside of the
    data folder. Returns the names of those that these settings don't reach.
    """
    own = await asyncio.to_thread(identity, catalog)
    left = []
    for leg, build in replaced.items():
        label = places.index_name(own, name, leg, build)
        if leg == "graph":
            await _empty(open_graph_store(catalog, places.graph_key(name, build)))
        elif leg == "bm25" and stored[leg]["joint"]:
            continue  # it is the vector leg's
        elif not stored[leg][MADE_WITH][f"{_KIND[leg]}_elsewhere"]:
            continue  # its folder is removed
        elif not _reached(settings, leg, stored[leg]):
            left.append(label)
        else:
            try:
                await _empty(_store(settings, leg, label, stored[leg]))
            except LeadlineError as error:
                log.warning("The former index %s could not be emptied: %s", label, error)
                left.append(label)
    return left


_KIND = {"vector": "vector", "bm25": "lexical"}


def _reached(settings: Settings, leg: str, manifest: Manifest) -> bool:
    """Whether these settings say where the server is that the index is on."""
    kind = _KIND[leg]
    same = getattr(settings, f"{kind}_backend") == manifest["backend"]
    return same and is_elsewhere(getattr(settings, f"{kind}_options"))


async def _empty(store: Store) -> None:
    async with store:
        if await store.count():
            await store.clear()


def _store(settings: Settings, leg: str, index: str, manifest: Manifest) -> Store:
    backend = manifest["backend"]
    options = getattr(settings, f"{_KIND[leg]}_options")
    nowhere = settings.data_dir / places.INDEXES  # it is elsewhere
    analyzer = Analyzer(manifest[MADE_WITH]["stemmer"])
    if manifest["joint"]:
        return open_joint_store(backend, path=nowhere, analyzer=analyzer, index=index, options=options)
    if leg == "vector":
        return open_vector_store(backend, path=nowhere, index=index, options=options)
    return open_lexical_store(backend, path=nowhere, analyzer=analyzer, index=index, options=options)
