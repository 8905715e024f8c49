"""FAISS over vectors in an SQLite file: a vector store, exact by default, chosen by `vector_backend`.

The file is the store: one transaction a change, so that after a crash it holds the old or the new state, and a copy
of the folder is a copy of the store. The index is made of it in memory and kept up with it. With `hnsw` it is
approximate, dear to make, and so saved beside the file; what is deleted is out of every answer at once, and its
vector out of the saved index when a quarter of that is gone, or at `clear`. Holds vectors, chunk ids and filter
fields, never text. `score` is the cosine similarity (1 for the same direction, -1 for the opposite one); with `l2` it
is minus the squared distance, with `ip` the inner product.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from leadline.errors import ManifestMismatch, MissingExtra, StoreError
from leadline.stores import faiss_saved, filters, steps
from leadline.stores.base import (
    ChunkRecord,
    Hit,
    Policy,
    Stats,
    Vector,
    Where,
    check_ids,
    check_question,
    has_usable_vectors,
)
from leadline.stores.faiss_current import CurrentIndex
from leadline.stores.faiss_index import IndexType, Metric
from leadline.stores.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from leadline.stores.steps import Records, Step

FORMAT = 2
FILE = "vectors.sqlite"
# Ids of vectors only ever rise, whatever is deleted: an index that is behind never takes one vector for another.
TABLES = f"""
CREATE TABLE IF NOT EXISTS chunks (chunk_id TEXT PRIMARY KEY, fields TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY AUTOINCREMENT, chunk_id TEXT NOT NULL REFERENCES chunks,
    vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS vectors_of_chunk ON vectors (chunk_id);
CREATE TABLE IF NOT EXISTS width (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), dimension INTEGER NOT NULL);
{faiss_saved.TABLE}
"""
EXISTING = "SELECT chunk_id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"


class FaissVectorStore:
    """A FAISS index and the vectors it is made of, as a VectorStore. Its calls run in threads.

    `index_type` may be changed at any time: the vectors stay.
    """

    def __init__(
        self,
        *,
        path: Path | str,
        index_type: IndexType = "flat",
        metric_type: Metric = "cosine",
        policy: Policy | None = None,
    ) -> None:
        manifest: dict[str, str | int] = {"backend": "faiss", "format": FORMAT, "metric": metric_type}
        self._file = SqliteFile(Path(path), FILE, manifest, TABLES)
        self._type = index_type
        self._metric = metric_type
        self._policy = policy
        self._index = CurrentIndex(self._file, index_type, metric_type)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._close)

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates the file, or checks the width of the one that is there."""
        await asyncio.to_thread(self._ensure_ready, dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces in one transaction; returns how many were refused for a vector that can't be used."""
        check_ids(records)
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
        return await asyncio.to_thread(self._file.number, "SELECT count(*) FROM chunks")

    async def clear(self) -> None:
        """Removes all chunks, and the saved index; the width stays."""
        await asyncio.to_thread(self._clear)

    async def stats(self) -> Stats:
        """The backend, how many chunks, the width of the vectors, the metric and the kind of index."""
        figures = {"count": await self.count(), "dimension": await asyncio.to_thread(self._width)}
        return {"backend": "faiss", "metric": self._metric, "index_type": self._type, **figures}

    async def search(self, vector: Vector, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector, equal scores by chunk id."""
        filters.check(where)
        check_question(vector)
        return await asyncio.to_thread(self._search, vector, k, where)

    def save(self, upstream: Records, *, skip_existing: bool = False) -> Step:
        """A lazy step that stores the records of `upstream`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(self, upstream: Records, *, skip_existing: bool = False, allow_empty: bool = False) -> Step:
        """A lazy step like `save` that then removes what `upstream` did not yield."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    def _open(self) -> None:
        try:
            import faiss  # noqa: F401 - better now than at the first question
        except ImportError:
            raise MissingExtra(
                "The vector backend faiss needs the package faiss-cpu.", hint="pip install 'leadline[faiss-cpu]'"
            ) from None
        self._file.open()

    def _close(self) -> None:
        try:
            self._index.close()
        finally:
            self._file.close()

    def _width(self) -> int:
        return self._file.number("SELECT dimension FROM width")

    def _ids(self, statement: str, *values: str) -> set[str]:
        return {str(row[0]) for row in self._file.rows(statement, *values)}

    def _ensure_ready(self, dimension: int) -> None:
        if dimension < 1:
            raise StoreError(f"A vector store needs the width of its vectors, not {dimension}.")
        self._file.create()
        if not self._width():
            with self._file.transaction() as connection:
                connection.execute("INSERT OR IGNORE INTO width VALUES (1, ?)", (dimension,))
        self._check_width(dimension)

    def _check_width(self, width: int) -> None:
        if (stored := self._width()) not in (0, width):
            raise ManifestMismatch(
                f"The vectors in {self._file.folder} are {stored} wide, not {width}: they come from another embedding "
                "model.",
                hint="Set the embedding model back, or use another collection.",
            )

    def _upsert(self, records: Sequence[ChunkRecord]) -> int:
        last = {record.chunk_id: record for record in records}
        usable = [record for record in last.values() if has_usable_vectors(record)]
        for width in {len(vector) for record in usable for vector in record.vectors}:
            self._ensure_ready(width)
        if not self._file.is_open or not last:
            return len(last)
        chunks = [(record.chunk_id, json.dumps(filters.fields_of(record))) for record in usable]
        rows = [
            (record.chunk_id, np.asarray(vector, dtype="<f4").tobytes())
            for record in usable
            for vector in record.vectors
        ]
        with self._file.lock:
            with self._file.transaction() as connection:
                gone, _ = _remove(connection, list(last))
                connection.executemany("INSERT INTO chunks VALUES (?, ?)", chunks)
                connection.executemany("INSERT INTO vectors (chunk_id, vector) VALUES (?, ?)", rows)
            self._index.changed(gone)
        return len(last) - len(usable)

    def _delete(self, ids: Sequence[str]) -> int:
        if not self._file.is_open or not ids:
            return 0
        with self._file.lock:
            with self._file.transaction() as connection:
                gone, count = _remove(connection, ids)
            self._index.changed(gone)
        return count

    def _clear(self) -> None:
        if not self._file.is_open:
            return
        with self._file.lock:
            with self._file.transaction() as connection:
                connection.execute("DELETE FROM vectors")
                connection.execute("DELETE FROM chunks")
            self._index.cleared()

    def _search(self, vector: Vector, k: int, where: Where | None) -> list[Hit]:
        if not self._file.is_open or k < 1:
            return []
        self._check_width(len(vector))
        best = self._index.best(np.asarray(vector, dtype=np.float32), k, where)
        return [Hit(chunk_id, score, rank) for rank, (score, chunk_id) in enumerate(best)]


def _remove(connection: sqlite3.Connection, chunk_ids: Sequence[str]) -> tuple[list[int], int]:
    """The ids of the vectors removed, and how many chunks."""
    wanted = (json.dumps(list(chunk_ids)),)
    statement = "DELETE FROM vectors WHERE chunk_id IN (SELECT value FROM json_each(?)) RETURNING id"
    gone = [int(row[0]) for row in connection.execute(statement, wanted)]
    statement = "DELETE FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"
    return gone, connection.execute(statement, wanted).rowcount
