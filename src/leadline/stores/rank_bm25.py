"""rank-bm25 over an SQLite file: a lexical store for small collections, chosen by `lexical_backend`.

Holds the terms our analyser makes of a chunk, its id and its filter fields, never text. `score` is BM25+ (k1 1.5,
b 0.75, delta 1): above 0 and higher for the better chunk, however few chunks there are. The model lives in memory and
is built anew on the first search after a change, so writes are cheap and that search is not: seconds at 100,000
chunks, where tantivy needs milliseconds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from leadline.analysis import Analyzer
from leadline.stores import filters, steps
from leadline.stores.base import ChunkRecord, Hit, Policy, Stats, Where, check_ids
from leadline.stores.rank_bm25_model import Model
from leadline.stores.sqlite_file import SqliteFile
from leadline.stores.steps import Records, Step

FORMAT = 1
FILE = "terms.sqlite"
TABLE = """
CREATE TABLE IF NOT EXISTS chunks (chunk_id TEXT PRIMARY KEY, terms TEXT NOT NULL, fields TEXT NOT NULL) WITHOUT ROWID
"""
DELETION = "DELETE FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"
EXISTING = "SELECT chunk_id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"


class RankBM25Store:
    """A rank-bm25 model and the terms it is made of, as a LexicalStore. Its calls run in threads, one at a time."""

    def __init__(self, *, path: Path | str, analyzer: Analyzer, policy: Policy | None = None) -> None:
        self._policy = policy
        self._analyzer = analyzer
        manifest: dict[str, str | int] = {"backend": "rank-bm25", "format": FORMAT, "analyzer": analyzer.name}
        self._file = SqliteFile(Path(path), FILE, manifest, TABLE)
        self._model: Model | None = None
        self._version = -1

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._file.open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._model = None
        await asyncio.to_thread(self._file.close)

    async def ensure_ready(self, dimension: int = 0) -> None:  # noqa: ARG002 - a width means nothing here
        """Creates the file where there is none. One of another analyser was refused on opening."""
        await asyncio.to_thread(self._file.create)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces in one transaction; refuses nothing, so returns 0."""
        check_ids(records)
        await asyncio.to_thread(self._upsert, records)
        return 0

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` are stored."""
        return await asyncio.to_thread(self._ids, EXISTING, json.dumps(list(ids)))

    async def all_ids(self) -> set[str]:
        """The ids of all chunks."""
        return await asyncio.to_thread(self._ids, "SELECT chunk_id FROM chunks")

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes by id in one transaction; returns how many were there."""
        return await asyncio.to_thread(self._change, DELETION, json.dumps(list(ids)))

    async def count(self) -> int:
        """How many chunks are stored."""
        return await asyncio.to_thread(self._file.number, "SELECT count(*) FROM chunks")

    async def clear(self) -> None:
        """Removes all chunks."""
        await asyncio.to_thread(self._change, "DELETE FROM chunks")

    async def stats(self) -> Stats:
        """The backend, how many chunks and the analyser."""
        return {"backend": "rank-bm25", "count": await self.count(), "analyzer": self._analyzer.name}

    def save(self, upstream: Records, *, skip_existing: bool = False) -> Step:
        """As `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(self, upstream: Records, *, skip_existing: bool = False, allow_empty: bool = False) -> Step:
        """As `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    async def lexical_search(self, text: str, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks that share a term with `text`, best first, equal scores by chunk id."""
        filters.check(where)
        return await asyncio.to_thread(self._search, text, k, where)

    def _ids(self, statement: str, *values: str) -> set[str]:
        return {str(row[0]) for row in self._file.rows(statement, *values)}

    def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        rows = [
            (record.chunk_id, json.dumps(self._analyzer.terms(record.text)), json.dumps(filters.fields_of(record)))
            for record in {record.chunk_id: record for record in records}.values()
        ]
        self._file.create()
        with self._file.lock:
            with self._file.transaction() as connection:
                connection.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", rows)
            self._model = None

    def _change(self, statement: str, *values: str) -> int:
        """Runs a statement that deletes; returns how many rows went."""
        if not self._file.is_open:
            return 0
        with self._file.lock:
            with self._file.transaction() as connection:
                changed = connection.execute(statement, values).rowcount
            self._model = None
        return changed

    def _search(self, text: str, k: int, where: Where | None) -> list[Hit]:
        if not self._file.is_open or k < 1:
            return []
        model = self._current_model()
        best = model.best(self._analyzer.query_terms(text), k, where)
        return [Hit(chunk_id, score, rank) for rank, (score, chunk_id) in enumerate(best)]

    def _current_model(self) -> Model:
        """The model of what is stored now, also where another process stored it."""
        with self._file.lock:
            with self._file.snapshot():
                version = self._file.version()
                if self._model is not None and version == self._version:
                    return self._model
                rows = self._file.rows("SELECT chunk_id, terms, fields FROM chunks ORDER BY chunk_id")
            self._model, self._version = Model(rows), version
            return self._model
