"""FAISS over vectors in an SQLite file: an exact vector store, chosen by `vector_backend`.

The file is the store: one transaction a change, so that after a crash it holds the old or the new state, and a copy of
the folder is a copy of the store. The FAISS index is made of it in memory, on the first search after a change (a
second at 100,000 vectors). Holds vectors, chunk ids and filter fields, never text. `score` is the cosine similarity:
1 for the same direction, -1 for the opposite one.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from leadline.errors import ManifestMismatch, MissingExtra, StoreError
from leadline.stores import filters, index_files
from leadline.stores.base import ChunkRecord, Hit, Stats, Vector, Where, has_usable_vectors
from leadline.stores.faiss_index import FlatIndex

FORMAT = 1
FILE = "vectors.sqlite"
BUSY_TIMEOUT_S = 30
TABLES = """
CREATE TABLE IF NOT EXISTS chunks (chunk_id TEXT PRIMARY KEY, fields TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (chunk_id TEXT NOT NULL REFERENCES chunks, part INTEGER NOT NULL,
    vector BLOB NOT NULL, PRIMARY KEY (chunk_id, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS width (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), dimension INTEGER NOT NULL);
"""
EXISTING = "SELECT chunk_id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"


class FaissVectorStore:
    """An exact FAISS index and the vectors it is made of, as a VectorStore. Its calls run in threads."""

    def __init__(self, *, path: Path | str) -> None:
        self._path = Path(path)
        self._manifest: dict[str, str | int] = {"backend": "faiss", "format": FORMAT, "metric": "cosine"}
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._index: FlatIndex | None = None
        self._version = -1

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        connection, self._connection, self._index = self._connection, None, None
        if connection is not None:
            await asyncio.to_thread(connection.close)

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates the file, or checks the width of the one that is there."""
        await asyncio.to_thread(self._ensure_ready, dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces in one transaction; returns how many were refused for a vector that can't be used."""
        return await asyncio.to_thread(self._upsert, records)

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a vector."""
        return await asyncio.to_thread(self._ids, EXISTING, json.dumps(list(ids)))

    async def all_ids(self) -> set[str]:
        """The ids of all chunks."""
        return await asyncio.to_thread(self._ids, "SELECT chunk_id FROM chunks")

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their vectors; returns how many were there."""
        return await asyncio.to_thread(self._delete, ids)

    async def count(self) -> int:
        """How many chunks have a vector."""
        return await asyncio.to_thread(lambda: sum(row[0] for row in self._rows("SELECT count(*) FROM chunks")))

    async def clear(self) -> None:
        """Removes all chunks; the width stays."""
        await asyncio.to_thread(self._delete, None)

    async def stats(self) -> Stats:
        """The backend, how many chunks, the width of the vectors and the metric."""
        width = await asyncio.to_thread(self._width)
        return {"backend": "faiss", "metric": "cosine", "count": await self.count(), "dimension": width}

    async def search(self, vector: Vector, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector, equal scores by chunk id."""
        filters.check(where)
        return await asyncio.to_thread(self._search, vector, k, where)

    def _open(self) -> None:
        try:
            import faiss  # noqa: F401 - better now than at the first question
        except ImportError:
            raise MissingExtra(
                "The vector backend faiss needs the package faiss-cpu.", hint="pip install 'leadline[faiss-cpu]'"
            ) from None
        if (self._path / FILE).exists() or (self._path / index_files.MANIFEST).exists():
            index_files.check_manifest(self._path, self._manifest)
            self._connect()

    def _connect(self) -> None:
        with self._lock:
            if self._connection is not None:
                return
            self._path.mkdir(parents=True, exist_ok=True)
            if not (self._path / FILE).exists():
                index_files.write_manifest(self._path, self._manifest)
            with self._errors_named():
                connection = sqlite3.connect(
                    self._path / FILE, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
                )
                try:
                    _prepare(connection)
                except sqlite3.Error:
                    connection.close()
                    raise
            self._connection = connection

    def _width(self) -> int:
        return sum(int(row[0]) for row in self._rows("SELECT dimension FROM width"))

    def _ensure_ready(self, dimension: int) -> None:
        if dimension < 1:
            raise StoreError(f"A vector store needs the width of its vectors, not {dimension}.")
        self._connect()
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO width VALUES (1, ?)", (dimension,))
        self._check_width(dimension)

    def _check_width(self, width: int) -> None:
        if (stored := self._width()) not in (0, width):
            raise ManifestMismatch(
                f"The vectors in {self._path} are {stored} wide, not {width}: they come from another embedding model.",
                hint="Set the embedding model back, or use another collection.",
            )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreError(f"The index in {self._path} could not be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise index_files.damaged(self._path / FILE, str(error)) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors_named():
            assert self._connection is not None
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
            self._index = None

    def _rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        with self._lock, self._errors_named():
            return [] if self._connection is None else self._connection.execute(statement, values).fetchall()

    def _ids(self, statement: str, *values: str) -> set[str]:
        return {str(row[0]) for row in self._rows(statement, *values)}

    def _upsert(self, records: Sequence[ChunkRecord]) -> int:
        last = {record.chunk_id: record for record in records}
        usable = [record for record in last.values() if has_usable_vectors(record)]
        for width in {len(vector) for record in usable for vector in record.vectors}:
            self._ensure_ready(width)
        if self._connection is None:
            return len(last)
        rows = [
            (record.chunk_id, part, np.asarray(vector, dtype="<f4").tobytes())
            for record in usable
            for part, vector in enumerate(record.vectors)
        ]
        with self._transaction() as connection:
            _remove(connection, list(last))
            fields = [(record.chunk_id, json.dumps(filters.fields_of(record))) for record in usable]
            connection.executemany("INSERT INTO chunks VALUES (?, ?)", fields)
            connection.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)
        return len(last) - len(usable)

    def _delete(self, ids: Sequence[str] | None) -> int:
        """Removes `ids`, or all chunks for None."""
        if self._connection is None or (ids is not None and not ids):
            return 0
        with self._transaction() as connection:
            return _remove(connection, ids)

    def _search(self, vector: Vector, k: int, where: Where | None) -> list[Hit]:
        if self._connection is None or k < 1:
            return []
        self._check_width(len(vector))
        best = self._current_index().best(np.asarray(vector, dtype=np.float32), k, where)
        return [Hit(chunk_id, score, rank) for rank, (score, chunk_id) in enumerate(best)]

    def _current_index(self) -> FlatIndex:
        """The index of what is stored now, also where another process stored it."""
        with self._lock:
            version = int(self._rows("PRAGMA data_version")[0][0])
            if self._index is None or version != self._version:
                fields = dict(self._rows("SELECT chunk_id, fields FROM chunks"))
                vectors = self._rows("SELECT chunk_id, vector FROM vectors ORDER BY chunk_id, part")
                self._index = FlatIndex(vectors, fields, self._width())
                self._version = version
            return self._index


def _remove(connection: sqlite3.Connection, ids: Sequence[str] | None) -> int:
    if ids is None:
        connection.execute("DELETE FROM vectors")
        return connection.execute("DELETE FROM chunks").rowcount
    wanted = (json.dumps(list(ids)),)
    connection.execute("DELETE FROM vectors WHERE chunk_id IN (SELECT value FROM json_each(?))", wanted)
    statement = "DELETE FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"
    return connection.execute(statement, wanted).rowcount


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA synchronous = FULL")
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)
    connection.executescript(TABLES)
