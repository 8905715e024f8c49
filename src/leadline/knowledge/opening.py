"""Opens the indexes of one collection, and brings them in step with the catalog."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from leadline.analysis import Analyzer
from leadline.config import Settings
from leadline.deadline import within
from leadline.errors import StoreDamaged
from leadline.knowledge import places
from leadline.knowledge.changes import replay
from leadline.knowledge.gate import Gate
from leadline.knowledge.manifest import check_content, check_manifests, is_joint, manifests_for
from leadline.knowledge.opened import Legs, Opened
from leadline.knowledge.verify import count_differences
from leadline.models.base import Embedder
from leadline.stores import (
    is_elsewhere,
    open_content_store,
    open_graph_store,
    open_joint_store,
    open_lexical_store,
    open_vector_store,
)
from leadline.stores.base import ChunkStore
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import create_collection, current_builds, identity, stored_manifests
from leadline.stores.catalog_outbox import read_owed
from leadline.stores.catalog_schema import BUILDING
from leadline.stores.catalog_versions import abandon, pending_versions, retired_sources


async def open_collection(name: str, settings: Settings, catalog: Catalog, embedder: Embedder, gate: Gate) -> Opened:
    """The collection with the indexes that the catalog names; made where there are none yet.

    Raises ManifestMismatch if they were built with other settings, StoreDamaged, StoreError.
    """
    wanted = await asyncio.to_thread(manifests_for, settings, embedder)
    stored = await asyncio.to_thread(stored_manifests, catalog, name)
    check_content(name, stored, settings)
    check_manifests(name, stored, wanted)
    builds = await asyncio.to_thread(current_builds, catalog, name)
    if builds.keys() == wanted.keys() and await asyncio.to_thread(_are_there, settings, name, builds):
        return await open_build(name, settings, catalog, embedder, gate, builds)
    async with gate.hold():
        builds = await asyncio.to_thread(current_builds, catalog, name) or dict.fromkeys(wanted, 0)
        opened = await open_build(name, settings, catalog, embedder, gate, builds)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(opened.stack.aclose)
            # Not before: what can't be opened pins no settings.
            await asyncio.to_thread(create_collection, catalog, name, wanted)
            stack.pop_all()
        return opened


async def finish_and_compare(opened: Opened, settings: Settings) -> list[str]:
    """Finishes what an interrupted process left, unless another is at work; what differs then, in words."""
    async with opened.gate.hold_if_free() as held:
        if not held:
            return []
        await asyncio.to_thread(places.remove_former, settings.data_dir, opened.name, opened.builds)
        await finish(opened)
        return await count_differences(opened)


async def open_build(
    name: str, settings: Settings, catalog: Catalog, embedder: Embedder, gate: Gate, builds: Mapping[str, int]
) -> Opened:
    """The collection with the indexes of these numbers; made where there are none."""
    async with AsyncExitStack() as stack:
        legs = await _open_legs(name, settings, catalog, builds, stack)
        await legs.vector.ensure_ready(embedder.dimension)
        if not legs.joint:
            await legs.bm25.ensure_ready()
        await legs.graph.ensure_ready()
        content = await stack.enter_async_context(open_content(name, settings, catalog))
        return Opened(name, catalog, embedder, gate, legs, content, builds, finish, stack.pop_all())


@asynccontextmanager
async def open_content(name: str, settings: Settings, catalog: Catalog) -> AsyncIterator[ChunkStore]:
    """The texts of the collection, ready for the length of the block. Raises StoreError."""
    backend, key = settings.content_backend, name
    if backend != "catalog":  # others may keep texts there too
        key = places.index_name(await asyncio.to_thread(identity, catalog), name, "content", 0)
    store = open_content_store(backend, catalog=catalog, collection=key, options=settings.content_options)
    async with store as content:
        await content.ensure_ready()
        yield content


async def _open_legs(
    name: str, settings: Settings, catalog: Catalog, builds: Mapping[str, int], stack: AsyncExitStack
) -> Legs:
    open_leg = await _leg_opener(name, settings, catalog, builds, stack)
    graph = await open_leg("graph")
    vector = await open_leg("vector")
    return Legs(vector, vector if is_joint(settings) else await open_leg("bm25"), graph)


async def _leg_opener(
    name: str, settings: Settings, catalog: Catalog, builds: Mapping[str, int], stack: AsyncExitStack
) -> Callable[[str], Awaitable[Any]]:
    """What opens the index of a leg, to be closed with the stack."""
    own = await asyncio.to_thread(identity, catalog)
    analyzer = Analyzer(settings.stemmer)

    def store_of(leg: str) -> Any:
        if leg == "graph":
            return open_graph_store(catalog, places.graph_key(name, builds["graph"]))
        place = (name, leg, builds[leg])
        at: dict[str, Any] = {
            "path": places.folder(settings.data_dir, *place),
            "index": places.index_name(own, *place),
        }
        if leg == "bm25":
            return open_lexical_store(
                settings.lexical_backend, analyzer=analyzer, options=settings.lexical_options, **at
            )
        if is_joint(settings):
            return open_joint_store(settings.vector_backend, analyzer=analyzer, options=settings.vector_options, **at)
        return open_vector_store(settings.vector_backend, options=settings.vector_options, **at)

    async def open_leg(leg: str) -> Any:
        with _repairable(places.folder(settings.data_dir, name, leg, builds[leg])):
            return await stack.enter_async_context(store_of(leg))

    return open_leg


async def open_for_search(name: str, settings: Settings, catalog: Catalog, embedder: Embedder, gate: Gate) -> Opened:
    """The collection as far as it can be opened, for searching only. A leg that can't be opened says why when searched.

    Raises StoreError where none can be opened, or the texts can't.
    """
    builds = await asyncio.to_thread(current_builds, catalog, name)
    check_manifests(
        name,
        await asyncio.to_thread(stored_manifests, catalog, name),
        await asyncio.to_thread(manifests_for, settings, embedder),
    )
    async with AsyncExitStack() as stack:
        open_leg = await _leg_opener(name, settings, catalog, builds, stack)

        async def opened_or_not(leg: str) -> Any:
            async def opening() -> Any:
                store = await open_leg(leg)
                await (store.ensure_ready(embedder.dimension) if leg == "vector" else store.ensure_ready())
                return store

            try:
                return await within(settings.leg_timeout_s, opening(), f"The opening of the leg {leg}")
            except Exception as error:  # noqa: BLE001 - a named degrade point: the other legs can be searched
                return Unopened(error)

        vector = await opened_or_not("vector")
        bm25 = vector if is_joint(settings) else await opened_or_not("bm25")
        graph = await opened_or_not("graph")
        legs = Legs(vector, bm25, graph)
        if isinstance(vector, Unopened) and isinstance(bm25, Unopened) and isinstance(graph, Unopened):
            raise vector.error
        content = await stack.enter_async_context(open_content(name, settings, catalog))
        return Opened(name, catalog, embedder, gate, legs, content, builds, finish, stack.pop_all())


class Unopened:
    """In the place of an index that could not be opened: whatever is asked of it raises why."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, _: str) -> Callable[..., Awaitable[Any]]:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise self.error

        return refuse


def _are_there(settings: Settings, name: str, builds: Mapping[str, int]) -> bool:
    """Whether the folders of the indexes are there, as far as they are kept in the data folder."""
    options = {"vector": settings.vector_options}
    if not is_joint(settings):
        options["bm25"] = settings.lexical_options
    return all(
        is_elsewhere(options[leg]) or places.folder(settings.data_dir, name, leg, builds[leg]).is_dir()
        for leg in options
    )


async def finish(opened: Opened) -> None:
    """Finishes what an interrupted change left to do, if anything. What was being built anew is given up."""
    for version in await asyncio.to_thread(pending_versions, opened.catalog, opened.name, BUILDING):
        await asyncio.to_thread(abandon, opened.catalog, opened.name, version, opened.leg_names)
    for left in (pending_versions, read_owed, retired_sources):
        if await asyncio.to_thread(left, opened.catalog, opened.name):
            await replay(opened)
            return


@contextmanager
def _repairable(folder: Path) -> Iterator[None]:
    """Says of a damaged index how it is built again: that loses nothing, the catalog has all of it."""
    try:
        yield
    except StoreDamaged as error:
        hint = f"It was left as it is. Move {folder} away, then `leadline verify --repair` builds it from the catalog."
        raise StoreDamaged(error.message, hint=hint) from error
