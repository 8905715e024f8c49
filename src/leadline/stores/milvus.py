"""Milvus and Milvus Lite: vectors, words, or both in one collection.

Milvus holds chunk ids, filter fields, vectors and, with `enable_bm25`, the terms of the text for its own BM25; it
returns ids and filter fields. `score` is the cosine similarity, the inner product (`IP`) or minus the squared distance
(`L2`); of a lexical search BM25. A text given as `where` is an expression of Milvus's own over `chunk_id` and
`fields["name"]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from leadline.analysis import Analyzer
from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores import filters, milvus_rows, steps
from leadline.stores.base import (
    ChunkRecord,
    Failed,
    Hit,
    Policy,
    Stats,
    Vector,
    Where,
    check_ids,
    check_question,
    has_usable_vectors,
)
from leadline.stores.milvus_client import Connection, Place
from leadline.stores.milvus_rows import CHUNK, PAGE, PART, ROW, VECTOR, WORDS, Metric, Shape
from leadline.stores.milvus_search import Search

if TYPE_CHECKING:
    from leadline.stores.steps import Step

# One row a chunk; where there are vectors, only of a chunk that has one.
# One row of each chunk, of those with a vector, or also of those that are there for their words alone.
FIRST = f"{PART} == 0"
FIRST_OR_ONLY = f"{PART} <= 0"
WITH_VECTOR = f"{PART} >= 0"


class MilvusVectorStore:
    """A Milvus collection as a VectorStore and, with `enable_bm25`, a LexicalStore.

    `url` is a server's, or the path of a file for Milvus Lite; `path` a folder to keep such a file in. A `password`
    without a `user` is a token. `dense=False` makes it a lexical store alone, without vectors. Without BM25
    a chunk without a usable vector is refused; with it, it is kept for its words. Writes go one at a time.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the backend
        self,
        *,
        url: str | None = None,
        path: Path | str | None = None,
        collection: str = "leadline",
        user: str | None = None,
        password: str | None = None,
        metric_type: Metric = "COSINE",
        enable_bm25: bool = False,
        dense: bool = True,
        analyzer: Analyzer | None = None,
        timeout: float = 30.0,
        policy: Policy | None = None,
    ) -> None:
        if not dense and not enable_bm25:
            raise ConfigError("A Milvus store without vectors and without BM25 holds nothing.")
        self._place = Place(url, None if path is None else Path(path) / "milvus.db")
        self._name = collection
        self._token = f"{user}:{password or ''}" if user else password or ""
        self._metric = metric_type
        self._dense = dense
        self._analyzer = (analyzer or Analyzer()) if enable_bm25 else None
        self._first = FIRST_OR_ONLY if enable_bm25 else FIRST
        self._timeout_s = timeout
        self._policy = policy
        self._writing = asyncio.Lock()
        self._connection: Connection | None = None
        self._shape: Shape | None = None

    async def __aenter__(self) -> Self:
        self._writing = asyncio.Lock()  # one of the loop that runs now
        self._connection = await Connection.open(self._place, self._name, token=self._token, timeout_s=self._timeout_s)
        try:
            await self._ready()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        connection, self._connection, self._shape = self._connection, None, None
        if connection is not None:
            await connection.close()

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates the collection, or checks the width, metric and analyser of the one that is there."""
        if self._dense and dimension < 1:
            raise StoreError(f"A vector store needs the width of its vectors, not {dimension}.")
        async with self._writing:
            await self._ensure_ready(dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces; returns how many were refused for a vector that is missing, all zero or not finite.

        With BM25 none is: those are kept for their words.
        """
        check_ids(records)
        last = {record.chunk_id: record for record in records}
        usable = [record for record in last.values() if has_usable_vectors(record)] if self._dense else []
        async with self._writing:
            for width in {len(vector) for record in usable for vector in record.vectors} or {0}:
                await self._ensure_ready(width)
            kept = list(last.values()) if self._analyzer else usable
            await self._upsert(kept)
            refused = list(last.keys() - {record.chunk_id for record in kept})
            if refused:
                await self._remove(refused)
        return len(refused)

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` are stored: with a vector, or where there is BM25 for their words."""
        found: set[str] = set()
        if await self._ready():
            keys = [milvus_rows.key_of(chunk_id) for chunk_id in dict.fromkeys(ids)]
            for start in range(0, len(keys), PAGE):
                found |= await self._ids(
                    milvus_rows.both([milvus_rows.one_of(ROW, keys[start : start + PAGE]), self._first])
                )
        return found

    async def all_ids(self) -> set[str]:
        """The ids of all chunks that `existing_ids` knows, read in pages."""
        return await self._ids(self._first) if await self._ready() else set()

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their vectors; returns how many were there."""
        async with self._writing:
            there = await self.existing_ids(ids)
            if await self._ready():
                await self._remove(list(dict.fromkeys(ids)))
        return len(there)

    async def count(self) -> int:
        """How many chunks `existing_ids` knows."""
        return await self._opened().count(self._first) if await self._ready() else 0

    async def clear(self) -> None:
        """Drops the collection and makes it anew with the same width, metric and analyser."""
        async with self._writing:
            if await self._ready():
                assert self._shape is not None
                await self._opened().drop()
                await self._opened().create(self._shape)

    async def stats(self) -> Stats:
        """The backend, where it is, how many chunks, the width and metric of the vectors and the analyser."""
        count = await self.count()
        shape = self._shape or Shape(0, self._metric if self._dense else "", self._analyzer_name())
        kept = {"dimension": shape.dimension, "metric": shape.metric, "analyzer": shape.analyzer}
        return {"backend": "milvus", "at": self._place.shown, "collection": self._name, "count": count, **kept}

    async def search(self, vector: Vector, *, k: int, where: Where | str | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector, equal scores by chunk id."""
        if not self._dense:
            raise StoreError("This Milvus collection has no vectors.", hint="Open it with dense=True.")
        check_question(vector)
        query = np.asarray(vector, dtype=np.float32).tolist()
        return await self._search(VECTOR, query, k, where, self._metric)

    async def lexical_search(self, text: str, *, k: int, where: Where | str | None = None) -> list[Hit]:
        """At most `k` chunks that share a term with `text`, by Milvus's BM25, best first, equal scores by chunk id."""
        if self._analyzer is None:
            raise StoreError("This Milvus collection has no BM25.", hint="Open it with enable_bm25=True.")
        terms = " ".join(self._analyzer.query_terms(text))
        return await self._search(WORDS, terms, k if terms else 0, where, "BM25")

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> Step:
        """See `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(
        self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False, allow_empty: bool = False
    ) -> Step:
        """See `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    def _opened(self) -> Connection:
        if self._connection is None:
            raise StoreError("The Milvus store is not open.", hint="Use it inside `async with`.")
        return self._connection

    def _analyzer_name(self) -> str:
        return self._analyzer.name if self._analyzer else ""

    async def _ready(self) -> bool:
        """Whether the collection is there; perhaps another process has made it meanwhile."""
        connection = self._opened()
        if self._shape is None:
            shape = await connection.shape()
            if shape is not None:
                self._check(shape, shape.dimension)
                self._shape = shape
        return self._shape is not None

    async def _ensure_ready(self, dimension: int) -> None:
        if not await self._ready():
            if self._dense and not dimension:
                return
            shape = Shape(dimension if self._dense else 0, self._metric if self._dense else "", self._analyzer_name())
            try:
                await self._opened().create(shape)
            except StoreError:
                if not await self._ready():  # perhaps another process was faster
                    raise
                await self._ensure_ready(dimension)
            self._shape = shape
        elif self._dense and dimension:
            assert self._shape is not None
            self._check(self._shape, dimension)

    def _check(self, stored: Shape, dimension: int) -> None:
        """Raises ManifestMismatch, naming what differs, unless the stored collection is of our shape."""
        differences = []
        if bool(stored.dimension) != self._dense:
            differences.append(f"has {'' if stored.dimension else 'no '}vectors")
        elif self._dense and stored.dimension != dimension:
            differences.append(f"has vectors {stored.dimension} wide, not {dimension}")
        if self._dense and stored.dimension and stored.metric != self._metric:
            differences.append(f"has the metric {stored.metric}, not {self._metric}")
        if stored.analyzer != self._analyzer_name():
            differences.append(f"has BM25 with {stored.analyzer}" if stored.analyzer else "has no BM25")
        if differences:
            raise ManifestMismatch(
                f"The Milvus collection {self._name} at {self._place.shown} {' and '.join(differences)}.",
                hint="Set the settings it was made with again, or use another collection.",
            )

    async def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        if self._shape is None:
            if records:
                raise StoreError("The width of the vectors isn't known yet.", hint="Call ensure_ready first.")
            return
        connection, shape = self._opened(), self._shape
        per_chunk = (
            milvus_rows.rows_of(record, shape, self._analyzer.terms(record.text) if self._analyzer else [])
            for record in records
        )
        for batch in milvus_rows.batches(per_chunk):
            await self._remove_surplus(batch)
            await connection.upsert(batch)

    async def _remove_surplus(self, batch: Sequence[milvus_rows.Row]) -> None:
        """Removes further vectors of the chunks that this write doesn't replace."""
        kept = {row[ROW] for row in batch}
        ours = milvus_rows.one_of(CHUNK, list(dict.fromkeys(row[CHUNK] for row in batch)))
        further = self._opened().pages(milvus_rows.both([ours, f"{PART} > 0"]), [])
        surplus = [row[ROW] async for page in further for row in page if row[ROW] not in kept]
        for start in range(0, len(surplus), PAGE):
            await self._opened().delete(milvus_rows.one_of(ROW, surplus[start : start + PAGE]))

    async def _remove(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids) if self._shape else 0, PAGE):
            keys = [milvus_rows.key_of(chunk_id) for chunk_id in ids[start : start + PAGE]]
            await self._opened().delete(milvus_rows.one_of(CHUNK, keys))

    async def _ids(self, expression: str) -> set[str]:
        pages = self._opened().pages(expression, [CHUNK])
        return {milvus_rows.chunk_of(row[CHUNK]) async for page in pages for row in page}

    async def _search(self, field: str, query: Any, k: int, where: Where | str | None, metric: str) -> list[Hit]:
        if not isinstance(where, str):
            filters.check(where)
        if k < 1 or not await self._ready():
            return []
        if field == VECTOR:
            assert self._shape is not None
            self._check(self._shape, len(query))
        visible = WITH_VECTOR if field == VECTOR and self._analyzer else ""
        expression = milvus_rows.both([visible, milvus_rows.expression(where)])
        scores = await Search(self._opened(), field, query, metric, expression, where).best(k)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
        return [Hit(chunk_id, score, rank) for rank, (chunk_id, score) in enumerate(best)]
