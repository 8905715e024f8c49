"""A store works inside `async with` and nowhere else, whatever its backend; and a place that is none is refused."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.stores.engines import DIMENSION, ENGINES, HERE, Backend, Opener, catalog_of, made, record

from leadline.errors import ConfigError, StoreError
from leadline.stores.milvus import MilvusVectorStore
from leadline.stores.opensearch import OpenSearchVectorStore
from leadline.stores.qdrant import QdrantVectorStore


def calls(backend: Backend) -> Iterator[Callable[[], Awaitable[Any]]]:
    """Everything a store can be asked to do."""
    store = backend.store
    yield lambda: store.ensure_ready(DIMENSION)
    yield lambda: store.upsert([record("b")])
    yield lambda: store.existing_ids(["a"])
    yield store.all_ids
    yield lambda: store.delete(["a"])
    yield store.count
    yield store.clear
    yield store.stats
    yield lambda: backend.find("Quokka")


async def test_nothing_is_answered_or_written_once_closed(open_store: Opener) -> None:
    """Each call raises StoreError; what was stored is there on opening again."""
    async with open_store() as backend:
        await backend.store.upsert([record("a")])
    for call in calls(backend):
        with pytest.raises(StoreError, match=r"open.*async with"):
            await call()
    async with open_store() as again:
        assert await again.store.all_ids() == {"a"}


@pytest.mark.parametrize("name", [name for name, engine in HERE.items() if not engine.joined])
async def test_nothing_is_answered_or_written_before_opening(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A store that was only made refuses every call, and makes no file; the graph also in a catalog that is open."""
    engine = ENGINES[name]
    served = request.getfixturevalue(engine.server) if engine.server else {}
    options = {**engine.options, **served}
    catalog = catalog_of(tmp_path, options) if engine.kind == "graph" else None
    if catalog:
        catalog.open()
    there = set(tmp_path.rglob("*"))  # noqa: ASYNC240 - a test
    backend = Backend(engine.kind, made(engine, tmp_path, options, catalog))
    try:
        for call in calls(backend):
            with pytest.raises(StoreError, match=r"open.*async with"):
                await call()
    finally:
        if catalog:
            catalog.close()
    assert set(tmp_path.rglob("*")) <= there  # noqa: ASYNC240 - a test


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "https://[::1", "http://", "not a url"])
@pytest.mark.parametrize("kind", [QdrantVectorStore, MilvusVectorStore, OpenSearchVectorStore])
def test_what_is_no_address_is_refused(kind: type[Any], url: str) -> None:
    """A bad `url` is an error of the settings, told before anything is asked of it."""
    with pytest.raises(ConfigError, match="url"):
        kind(url=url)
