"""What tests of the catalog share: one that may be written, in either database, and versions of sources to put in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from leadline.drafts import ChunkDraft, SourceDraft
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import create_collection
from leadline.stores.catalog_pending import NewVersion, PlacedChunk, add_pending
from leadline.stores.catalog_sources import live_chunks
from leadline.stores.catalog_versions import publish
from leadline.stores.lease import hold_lease

LEGS = ["vector", "bm25"]
MODEL = "model-a"


@asynccontextmanager
async def writable(folder: Path, url: str | None = None) -> AsyncIterator[Catalog]:
    """An open catalog that may be written, with the collection `c`."""
    catalog = Catalog(folder, url)
    await asyncio.to_thread(catalog.open)
    try:
        async with hold_lease(catalog, 5):
            create_collection(catalog, "c", {"vector": {"model": MODEL}})
            yield catalog
    finally:
        catalog.close()


def version_of(doc_id: str, *texts: str, prefix: str = "") -> NewVersion:
    """A source whose chunk ids are the source's id and the text."""
    drafts = [ChunkDraft(text, 0, len(text), prefix) for text in texts]
    chunks = tuple(PlacedChunk(f"{doc_id}:{d.text}", f"hash:{d.text}", d) for d in drafts)
    draft = SourceDraft(
        f"{doc_id}.md", f"{doc_id}.md", f"bytes:{str(texts)[:60]}", tuple(drafts), metadata={"year": 2020}
    )
    return NewVersion(doc_id, f"print:{texts}", draft, chunks)


def add(catalog: Catalog, doc_id: str, *texts: str) -> int:
    """A pending version."""
    added, errors = add_pending(catalog, "c", [version_of(doc_id, *texts)], LEGS)
    assert not errors
    return added[doc_id].version


def put(catalog: Catalog, doc_id: str, *texts: str) -> int:
    """A live version."""
    version = add(catalog, doc_id, *texts)
    publish(catalog, "c", [version], LEGS)
    return version


def live(catalog: Catalog, *ids: str) -> list[str]:
    """Those of the ids that are live, without their source."""
    return sorted(chunk_id.partition(":")[2] for chunk_id in live_chunks(catalog, "c", ids))
