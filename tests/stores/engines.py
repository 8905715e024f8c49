"""The engines that the contract is run against, and what its tests share: records, and one way of asking all kinds.

A new backend is one more line in `ENGINES`, and for one with a server a fixture in `tests/servers` that starts it.
"""

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leadline.analysis import Analyzer
from leadline.stores import open_graph_store, open_lexical_store, open_vector_store
from leadline.stores.base import ChunkRecord, Hit, Vector, Where
from leadline.stores.catalog import Catalog
from leadline.stores.lease import hold_lease

DIMENSION = 16
OPENSEARCH = "LEADLINE_TEST_OPENSEARCH_URL"


@dataclass(frozen=True)
class Engine:
    """How a backend is opened: its kind, its name in the registry, its options, and the fixture that gives more of
    them for an engine that runs as a server (it skips where there is no such server).

    `needs` names the variable of the environment that tells where the server of an engine is that no package index has.
    `joined`: another store has the folder open already, as in another process, and serves this one.
    """

    kind: Literal["vector", "lexical", "graph"]
    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)
    server: str | None = None
    joined: bool = False
    needs: str | None = None


ENGINES = {
    "chroma": Engine("vector", "chroma"),
    "chroma-joined": Engine("vector", "chroma", joined=True),
    "chroma-server": Engine("vector", "chroma", server="chroma_server"),
    "faiss": Engine("vector", "faiss"),
    "faiss-hnsw": Engine("vector", "faiss", {"index_type": "hnsw"}),
    "qdrant": Engine("vector", "qdrant"),
    "qdrant-standin": Engine("vector", "qdrant", server="qdrant_standin_options"),
    "qdrant-server": Engine("vector", "qdrant", server="qdrant_server_options", needs="LEADLINE_TEST_QDRANT_URL"),
    "pinecone-standin": Engine("vector", "pinecone", server="pinecone_standin_options"),
    "pinecone": Engine("vector", "pinecone", server="pinecone_options", needs="LEADLINE_TEST_PINECONE_API_KEY"),
    "tantivy": Engine("lexical", "tantivy"),
    "rank-bm25": Engine("lexical", "rank-bm25"),
    "opensearch-standin": Engine("vector", "opensearch", server="opensearch_standin_options"),
    "opensearch": Engine("vector", "opensearch", server="opensearch_options", needs=OPENSEARCH),
    "opensearch-bm25": Engine("lexical", "opensearch", server="opensearch_words_options"),
    "opensearch-bm25-server": Engine("lexical", "opensearch", server="opensearch_options", needs=OPENSEARCH),
    "graph": Engine("graph", "graph"),
    "graph-postgres": Engine("graph", "graph", server="postgres_options"),
    "milvus-lite": Engine("vector", "milvus", server="milvus_lite"),
    "milvus-lite-bm25": Engine("lexical", "milvus", server="milvus_lite"),
    "milvus": Engine("vector", "milvus", server="milvus", needs="LEADLINE_TEST_MILVUS_URL"),
    "milvus-bm25": Engine("lexical", "milvus", server="milvus", needs="LEADLINE_TEST_MILVUS_URL"),
}

# Those that can be run here; the variables are read before a test's environment is cleaned.
HERE = {name: engine for name, engine in ENGINES.items() if engine.needs is None or os.environ.get(engine.needs)}

Opener = Callable[[], AbstractAsyncContextManager["Backend"]]
OpenAt = Callable[[Path], AbstractAsyncContextManager["Backend"]]


@dataclass
class Backend:
    """A store, and one way of asking that fits all kinds: for the records that are about `topic`."""

    kind: str
    store: Any

    async def find(self, topic: str, *, k: int = 10, where: Where | None = None) -> list[Hit]:
        """Chunks about a topic: by its vector, by its word, or by its name."""
        match self.kind:
            case "vector":
                return await self.store.search(vector_of(topic), k=k, where=where)
            case "graph":
                return await self.store.search(f"what of {topic.lower()}", k=k, where=where)
            case _:
                return await self.store.lexical_search(topic.upper(), k=k, where=where)

    async def find_ids(self, topic: str, *, k: int = 10, where: Where | None = None) -> list[str]:
        """The chunk ids of `find`, of those that are really about the topic."""
        hits = await self.find(topic, k=k, where=where)
        return [hit.chunk_id for hit in hits if self.kind != "vector" or hit.score > 0.99]


def vector_of(topic: str) -> Vector:
    """A direction of its own for each topic."""
    return np.random.default_rng(list(topic.encode())).normal(size=DIMENSION).astype(np.float32)


def record(chunk_id: str, topics: Sequence[str] | str = "Quokka", **fields: Any) -> ChunkRecord:
    """A chunk about one or more topics, in words, names and vectors."""
    names = [topics] if isinstance(topics, str) else list(topics)
    text = " ".join(f"they wrote about {name} again." for name in names)
    vectors = tuple(map(vector_of, names))
    return ChunkRecord(chunk_id, f"doc-{chunk_id}", text=text, vectors=vectors, fields=fields)


def made(engine: Engine, folder: Path, options: Mapping[str, Any], catalog: Catalog | None = None) -> Any:
    """The store of the backend over `folder`, not opened; on a server, over an index of the folder's own."""
    place: dict[str, Any] = {"path": folder / engine.kind, "index": index_of(folder), "options": options}
    match engine.kind:
        case "vector":
            return open_vector_store(engine.backend, **place)
        case "lexical":
            return open_lexical_store(engine.backend, analyzer=Analyzer("english"), **place)
        case "graph":
            return open_graph_store(catalog or catalog_of(folder, options), "default")


def index_of(folder: Path) -> str:
    """The name of the index, or the database, for a folder."""
    return f"t{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"


def catalog_of(folder: Path, options: Mapping[str, Any]) -> Catalog:
    """The catalog that a graph over `folder` is kept in, not opened."""
    database = options.get("database")
    return Catalog(folder / "catalog", database and database(index_of(folder)))


@asynccontextmanager
async def opened(
    engine: Engine, folder: Path, options: Mapping[str, Any], *, ready: bool = True
) -> AsyncIterator[Backend]:
    """The backend over `folder`, open and `ready`."""
    async with AsyncExitStack() as stack:
        catalog = None
        if engine.kind == "graph":
            catalog = catalog_of(folder, options)
            catalog.open()
            stack.callback(catalog.close)
            await stack.enter_async_context(hold_lease(catalog, 5))
        if engine.joined:
            await stack.enter_async_context(made(engine, folder, options))
        store = await stack.enter_async_context(made(engine, folder, options, catalog))
        if ready:
            await store.ensure_ready(DIMENSION)
        yield Backend(engine.kind, store)
