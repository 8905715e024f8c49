"""The stores: the contract in `base`, one file a backend, and here the choice among them.

A backend's client library is imported when the backend is opened, never before.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from leadline.errors import ConfigError

if TYPE_CHECKING:
    from leadline.analysis import Analyzer
    from leadline.stores.base import ChunkStore, GraphStore, JointStore, LexicalStore, VectorStore
    from leadline.stores.catalog import Catalog


@dataclass(frozen=True, slots=True)
class _Backend:
    """Where a store's class is, and which of its parameters names an index on a server.

    `shared` is set for an engine that over a folder may be open in one process only: that one serves the others.
    `database` is the SQLite file that it keeps in the folder, where the engine doesn't say why it can't open it.
    `fixed` are parameters that no option changes; `joint` those that give an index vectors and words.
    """

    name: str
    module: str
    class_name: str
    index: str = "collection"
    shared: bool = False
    database: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    joint: Mapping[str, Any] | None = None

    def load(self) -> type[Any]:
        found: type[Any] = getattr(import_module(f"leadline.stores.{self.module}"), self.class_name)
        return found


def _by_name(*backends: _Backend) -> Mapping[str, _Backend]:
    return {backend.name: backend for backend in backends}


VECTOR_BACKENDS = _by_name(
    _Backend("chroma", "chroma", "ChromaVectorStore", shared=True, database="chroma.sqlite3"),
    _Backend("faiss", "faiss", "FaissVectorStore"),
    _Backend("opensearch", "opensearch", "OpenSearchVectorStore", index="index", joint={}),
    _Backend("milvus", "milvus", "MilvusVectorStore", joint={"enable_bm25": True}),
    _Backend("qdrant", "qdrant", "QdrantVectorStore", shared=True),
    _Backend("pinecone", "pinecone", "PineconeVectorStore", index="namespace"),
)
LEXICAL_BACKENDS = _by_name(
    _Backend("tantivy", "tantivy", "TantivyStore"),
    _Backend("rank-bm25", "rank_bm25", "RankBM25Store"),
    _Backend("opensearch", "opensearch", "OpenSearchVectorStore", index="index", fixed={"dense": False}),
    _Backend("milvus", "milvus", "MilvusVectorStore", fixed={"enable_bm25": True, "dense": False}),
)
CONTENT_BACKENDS = _by_name(
    _Backend("catalog", "catalog_content", "CatalogChunkStore"),
    _Backend("s3", "s3", "ObjectChunkStore"),
)
# The options that say which server a store is on; without one it is in the data folder.
_ELSEWHERE = ("url", "host", "index")


def check_backends(vector: str, lexical: str, content: str) -> None:
    """Raises ConfigError for the name of a backend that there isn't."""
    _named("vector", VECTOR_BACKENDS, vector)
    _named("lexical", LEXICAL_BACKENDS, lexical)
    _named("content", CONTENT_BACKENDS, content)


def is_elsewhere(options: Mapping[str, Any]) -> bool:
    """Whether a store with these options is on a server, not in the data folder."""
    return any(key in options for key in _ELSEWHERE)


def open_vector_store(
    backend: str, *, path: Path, index: str = "leadline", options: Mapping[str, Any] | None = None
) -> VectorStore:
    """The vector store of one collection; enter it to use it.

    It is kept in the folder `path`, or as `index` on the server that `options` (the parameters of the store's class)
    name. Raises ConfigError for an unknown backend or option, naming those there are, and StoreError for a folder with
    too long a path.
    """
    made = _make("vector", _named("vector", VECTOR_BACKENDS, backend), _place(path, index, options), options)
    return cast("VectorStore", made)


def open_lexical_store(
    backend: str, *, path: Path, analyzer: Analyzer, index: str = "leadline", options: Mapping[str, Any] | None = None
) -> LexicalStore:
    """The lexical store of one collection; enter it to use it. As `open_vector_store`."""
    found = _named("lexical", LEXICAL_BACKENDS, backend)
    made = _make("lexical", found, _place(path, index, options), options, analyzer=analyzer)
    return cast("LexicalStore", made)


def can_be_joint(vector: str, lexical: str) -> bool:
    """Whether one index of this backend can hold the vectors and the words."""
    return vector == lexical and VECTOR_BACKENDS[vector].joint is not None


def open_joint_store(
    backend: str, *, path: Path, analyzer: Analyzer, index: str = "leadline", options: Mapping[str, Any] | None = None
) -> JointStore:
    """One index for both legs of a collection; enter it to use it. As `open_vector_store`."""
    found = _named("vector", VECTOR_BACKENDS, backend)
    joint = replace(found, fixed=found.joint or {})
    return cast("JointStore", _make("vector", joint, _place(path, index, options), options, analyzer=analyzer))


def open_graph_store(catalog: Catalog, collection: str) -> GraphStore:
    """The entity graph of one collection, kept in the open catalog; enter it to use it."""
    from leadline.stores.entity_graph import EntityGraphStore

    return EntityGraphStore(catalog, collection)


def open_content_store(
    backend: str, *, catalog: Catalog, collection: str, options: Mapping[str, Any] | None = None
) -> ChunkStore:
    """The text of the chunks of one collection, in the open catalog or elsewhere; enter it to use it.

    Raises ConfigError for an unknown backend or option, naming those there are.
    """
    found = _named("content", CONTENT_BACKENDS, backend)
    return cast("ChunkStore", _make("content", found, {}, options, catalog=catalog, collection=collection))


def _place(path: Path, index: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"index": index} if is_elsewhere(options or {}) else {"path": path}


def _make(
    kind: str, backend: _Backend, place: Mapping[str, Any], options: Mapping[str, Any] | None, **provided: Any
) -> Any:
    made = backend.load()
    parameters = inspect.signature(made).parameters
    if "path" in place and "path" not in parameters:
        raise ConfigError(
            f"The {kind} backend {backend.name} is a server, not in the data folder.",
            hint=f"Say where it is: set its option {' or '.join(key for key in _ELSEWHERE if key in parameters)}.",
        )
    given = {backend.index if key == "index" else key: value for key, value in place.items()} | provided
    allowed = [key for key in parameters if key not in {"policy", "path", *given, *backend.fixed}]
    if unknown := sorted(set(options or {}) - set(allowed)):
        raise ConfigError(
            f"The {kind} backend {backend.name} has no option {', '.join(unknown)}.",
            hint=f"Allowed: {', '.join(allowed)}.",
        )
    given |= {**_typed(made, backend.name, options or {}), **backend.fixed}
    given = {key: value for key, value in given.items() if key in parameters}
    if backend.database and "path" in given:
        from leadline.stores.sqlite_file import check_path

        check_path(Path(given["path"], backend.database))
    if backend.shared and "path" in given:
        from leadline.stores.shared import SharedVectorStore

        return SharedVectorStore(lambda: made(**given), path=given["path"])
    return made(**given)


def _named(kind: str, backends: Mapping[str, _Backend], name: str) -> _Backend:
    if name not in backends:
        raise ConfigError(f"Unknown {kind} backend {name!r}.", hint=f"Allowed: {', '.join(backends)}.")
    return backends[name]


def _typed(made: type[Any], name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the constructor's own types: from the environment all of them come as text."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    hints = get_type_hints(made.__init__)
    typed = {}
    for key, value in options.items():
        try:
            adapter = TypeAdapter(hints[key], config=ConfigDict(arbitrary_types_allowed=True))
            typed[key] = adapter.validate_python(value)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise ConfigError(f"The option {key} of the backend {name} is wrong: {problem}.") from None
    return typed
