"""The stores: the contract in `base`, one file a backend, and here the choice among them.

A backend's client library is imported when the backend is opened, never before.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import ConfigError

if TYPE_CHECKING:
    from leadline.analysis import Analyzer
    from leadline.stores.base import GraphStore, LexicalStore, VectorStore
    from leadline.stores.catalog import Catalog


def open_vector_store(backend: str, *, path: Path) -> VectorStore:
    """The vector store of one collection, kept in the folder `path`; enter it to use it."""
    match backend:
        case "chroma":
            from leadline.stores.chroma import ChromaVectorStore

            return ChromaVectorStore(path=path)
        case "faiss":
            from leadline.stores.faiss import FaissVectorStore

            return FaissVectorStore(path=path)
    raise ConfigError(f"Unknown vector backend {backend!r}.", hint="Allowed: chroma, faiss.")


def open_lexical_store(backend: str, *, path: Path, analyzer: Analyzer) -> LexicalStore:
    """The lexical store of one collection, kept in the folder `path`; enter it to use it."""
    match backend:
        case "tantivy":
            from leadline.stores.tantivy import TantivyStore

            return TantivyStore(path=path, analyzer=analyzer)
        case "rank-bm25":
            from leadline.stores.rank_bm25 import RankBM25Store

            return RankBM25Store(path=path, analyzer=analyzer)
    raise ConfigError(f"Unknown lexical backend {backend!r}.", hint="Allowed: tantivy, rank-bm25.")


def open_graph_store(catalog: Catalog, collection: str) -> GraphStore:
    """The entity graph of one collection, kept in the open catalog; enter it to use it."""
    from leadline.stores.entity_graph import EntityGraphStore

    return EntityGraphStore(catalog, collection)
