"""rank-bm25 over an SQLite file: a lexical store for small collections, chosen by `lexical_backend`.

Holds the terms our analyser makes of a chunk, its id and its filter fields, never text. `score` is BM25+ (k1 1.5,
b 0.75, delta 1): above 0 and higher for the better chunk, however few chunks there are. The model lives in memory and
is built anew on the first search after a change, so writes are cheap and that search is not: seconds at 100,000
chunks, where tantivy needs milliseconds.
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
from typing import Self

from leadline.analysis import Analyzer
from leadline.errors import StoreError
from leadline.stores import filters, index_files
from leadline.stores.base import ChunkRecord, Hit, Stats, Where
from leadline.stores.rank_bm25_model import Model

FORMAT = 1
FILE = "terms.sqlite"
BUSY_TIMEOUT_S = 30
TABLE = """
CREATE TABLE IF NOT EXISTS chunks (chunk_id TEXT PRIMARY KEY, terms TEXT NOT NULL, fields TEXT NOT NULL) WITHOUT ROWID
"""
EXISTING = "SELECT chunk_id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"


class RankBM25Store:
    """A rank-bm25 model and the terms it is made of, as a LexicalStore. Its calls run in threads, one at a time."""

    def __init__(self, *, path: Path | str, analyzer: Analyzer) -> None:
        self._path = Path(path)
        self._analyzer = analyzer
        self._manifest: dict[str, str | int] = {"backend": "rank-bm25", "format": FORMAT, "analyzer": analyzer.name}
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._model: Model | None = None
        self._version = -1

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        connection, self._connection, self._model = self._connection, None, None
        if connection is not None:
            await asyncio.to_thread(connection.close)

    async def ensure_ready(self, dimension: int = 0) -> None:  # noqa: ARG002 - a width means nothing here
        """Creates the file where there is none. One of another analyser was refused on opening."""
        await asyncio.to_thread(self._ensure_ready)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces in one transaction; refuses nothing, so returns 0."""
        await asyncio.to_thread(self._upsert, records)
        return 0

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` are stored."""
        return await asyncio.to_thread(self._existing_ids, ids)

    async def all_ids(self) -> set[str]:
        """The ids of all chunks."""
        return await asyncio.to_thread(lambda: {str(row[0]) for row in self._rows("SELECT chunk_id FROM chunks")})

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes by id in one transaction; returns how many were there."""
        return await asyncio.to_thread(self._delete, ids)

    async def count(self) -> int:
        """How many chunks are stored."""
        return await asyncio.to_thread(self._count)

    async def clear(self) -> None:
        """Removes all chunks."""
        await asyncio.to_thread(self._clear)

    async def stats(self) -> Stats:
        """The backend, how many chunks and the analyser."""
        return {"backend": "rank-bm25", "count": await self.count(), "analyzer": self._analyzer.name}

    async def lexical_search(self, text: str, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks that share a term with `text`, best first, equal scores by chunk id."""
        filters.check(where)
        return await asyncio.to_thread(self._search, text, k, where)

    def _open(self) -> None:
        if (self._path / FILE).exists() or (self._path / index_files.MANIFEST).exists():
            index_files.check_manifest(self._path, self._manifest)
            self._ensure_ready()

    def _ensure_ready(self) -> None:
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
            self._model = None

    def _rows(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        with self._lock, self._errors_named():
            return [] if self._connection is None else self._connection.execute(statement, values).fetchall()

    def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        self._ensure_ready()
        rows = [
            (record.chunk_id, json.dumps(self._analyzer.terms(record.text)), json.dumps(filters.fields_of(record)))
            for record in {record.chunk_id: record for record in records}.values()
        ]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", rows)

    def _existing_ids(self, ids: Sequence[str]) -> set[str]:
        return {str(row[0]) for row in self._rows(EXISTING, json.dumps(list(ids)))}

    def _delete(self, ids: Sequence[str]) -> int:
        if self._connection is None:
            return 0
        with self._transaction() as connection:
            wanted = json.dumps(list(ids))
            return connection.execute(
                "DELETE FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))", (wanted,)
            ).rowcount

    def _count(self) -> int:
        return sum(int(row[0]) for row in self._rows("SELECT count(*) FROM chunks"))

    def _clear(self) -> None:
        self._ensure_ready()
        with self._transaction() as connection:
            connection.execute("DELETE FROM chunks")

    def _search(self, text: str, k: int, where: Where | None) -> list[Hit]:
        if self._connection is None or k < 1:
            return []
        model = self._current_model()
        best = model.best(self._analyzer.query_terms(text), k, where)
        return [Hit(chunk_id, score, rank) for rank, (score, chunk_id) in enumerate(best)]

    def _current_model(self) -> Model:
        """The model of what is stored now, also where another process stored it."""
        with self._lock:
            version = int(self._rows("PRAGMA data_version")[0][0])
            if self._model is None or version != self._version:
                rows = self._rows("SELECT chunk_id, terms, fields FROM chunks ORDER BY chunk_id")
                self._model = Model(rows)
                self._version = version
            return self._model


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA synchronous = FULL")
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)
    connection.execute(TABLE)
