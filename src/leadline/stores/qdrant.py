"""Qdrant: its own segment engine in this process over a folder, or a server by URL.

Holds vectors, chunk ids and filter fields, never text. `score` is the cosine similarity (1 for the same direction, -1
for the opposite one); with `l2` it is minus the squared distance, with `ip` the inner product: higher is better.

A chunk is one point whose vectors are a multivector, compared by MaxSim: with a question of one vector that is the
best vector of the chunk. So a chunk is replaced, deleted and counted in one step, and k points are k chunks.
Qdrant has no words for some of the portable filter; those parts are tested on what comes back, and more is fetched
until enough of it passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores import filters, qdrant_payloads, steps
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
from leadline.stores.qdrant_embedded import EmbeddedEngine
from leadline.stores.qdrant_engine import Engine, Metric, Row, Shape
from leadline.stores.qdrant_server import ServerEngine

if TYPE_CHECKING:
    from leadline.stores.steps import Step

# Ids, and numbers in vectors, that go into one call: a few megabytes of JSON, an eighth of what a server takes.
IDS_A_CALL = 5000
NUMBERS_A_CALL = 200_000
REFUSED_IN_NAMES = frozenset('<>:"/\\|?*')


class QdrantVectorStore:
    """A Qdrant collection as a VectorStore; give `path` or `url`.

    `path` is a folder that holds the collection; every search compares all of its vectors (5 ms at 20,000 of width
    384, 25 ms at 100,000), and one process at a time can have it open. `url` is a server's REST address, with `api_key`
    and further `headers`; `timeout` is seconds a request. A server compares all vectors up to 100 MB of them, and
    searches by HNSW beyond, unless `exact`.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, and a server takes what it takes
        self,
        *,
        url: str | None = None,
        path: Path | str | None = None,
        collection: str = "leadline",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        metric_type: Metric = "cosine",
        exact: bool = False,
        timeout: float = 30.0,
        policy: Policy | None = None,
    ) -> None:
        _check_name(collection)
        self._engine: Engine
        if path is not None and url is None:
            self._engine = EmbeddedEngine(Path(path) / collection)
        elif url is not None and path is None:
            self._engine = ServerEngine(
                url, collection, api_key=api_key, headers=headers or {}, exact=exact, timeout_s=timeout
            )
        else:
            raise ConfigError("A Qdrant store is in a folder or on a server.", hint="Give it `path` or `url`.")
        self._metric: Metric = metric_type
        self._policy = policy
        self._shape: Shape | None = None
        self._opened = False
        self._indexed: set[str] = set()
        self._writing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        shape = await self._engine.open()
        try:
            self._validate(shape)
        except ManifestMismatch:
            await self._engine.close()
            raise
        self._opened = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._shape, self._opened = None, False
        self._indexed.clear()
        await self._engine.close()

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates the collection, or checks the metric and width of the one that is there."""
        if dimension < 1:
            raise StoreError(f"A vector store needs the width of its vectors, not {dimension}.")
        async with self._writing:
            await self._ensure_ready(dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces; returns how many were refused for a vector that is missing, all zero or not finite."""
        check_ids(records)
        last = {record.chunk_id: record for record in records}
        usable = [record for record in last.values() if has_usable_vectors(record)]
        refused = last.keys() - {record.chunk_id for record in usable}
        async with self._writing:
            for width in {len(vector) for record in usable for vector in record.vectors}:
                await self._ensure_ready(width)
            await self._delete(refused)
            await self._index_fields(usable)
            for batch in _batches(usable):
                await self._engine.upsert(batch)
        return len(refused)

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a vector."""
        if not self._there():
            return set()
        points = {qdrant_payloads.point_id(chunk_id): chunk_id for chunk_id in ids}
        wanted = list(points)
        found: set[str] = set()
        for start in range(0, len(wanted), IDS_A_CALL):
            found |= await self._engine.existing(wanted[start : start + IDS_A_CALL])
        return {points[point] for point in found}

    async def all_ids(self) -> set[str]:
        """The chunk ids of all points, read in pages."""
        ids: set[str] = set()
        if not self._there():
            return ids
        after: str | None = None
        while True:
            payloads, after = await self._engine.page(after)
            ids.update(str(payload[qdrant_payloads.CHUNK_ID]) for payload in payloads)
            if after is None:
                return ids

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their vectors; returns how many were there."""
        async with self._writing:
            return await self._delete(set(ids))

    async def count(self) -> int:
        """How many chunks have a vector."""
        return await self._engine.count() if self._there() else 0

    async def clear(self) -> None:
        """Removes all chunks; metric and width stay."""
        async with self._writing:
            if self._there():
                await self._engine.clear()
                self._indexed.clear()

    async def stats(self) -> Stats:
        """The backend, where it is, how many chunks, the width of the vectors and the metric."""
        figures = {"count": await self.count(), "dimension": self._shape.dimension if self._shape else 0}
        return {"backend": "qdrant", "metric": self._metric, "place": self._engine.place, **figures}

    async def search(self, vector: Vector, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector, equal scores by chunk id."""
        filters.check(where)
        check_question(vector)
        if not self._there() or k < 1:
            return []
        self._check_width(len(vector))
        best = await self._best(vector, k, where)
        return [Hit(chunk_id, score, rank) for rank, (score, chunk_id) in enumerate(best)]

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> Step:
        """See `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(
        self,
        upstream: AsyncIterable[ChunkRecord | Failed],
        *,
        skip_existing: bool = False,
        allow_empty: bool = False,
    ) -> Step:
        """See `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    def _validate(self, shape: Shape | None) -> None:
        if shape is not None and shape.metric != self._metric:
            raise ManifestMismatch(
                f"The Qdrant collection {self._engine.place} measures by {shape.metric}, not by {self._metric}.",
                hint="Set the metric back, or use another collection.",
            )
        self._shape = shape

    def _there(self) -> bool:
        """Whether the collection is there. Raises StoreError while the store isn't open."""
        if not self._opened:
            raise StoreError(f"The Qdrant store {self._engine.place} isn't open.", hint="Use it inside `async with`.")
        return self._shape is not None

    async def _ensure_ready(self, dimension: int) -> None:
        if not self._there():
            self._validate(await self._engine.create(Shape(self._metric, dimension)))
        self._check_width(dimension)

    def _check_width(self, width: int) -> None:
        if self._shape is not None and self._shape.dimension != width:
            raise ManifestMismatch(
                f"The Qdrant collection {self._engine.place} holds vectors of width {self._shape.dimension}, "
                f"not {width}: they come from another embedding model.",
                hint="Set the embedding model back, or use another collection.",
            )

    async def _index_fields(self, records: Sequence[ChunkRecord]) -> None:
        for record in records:
            for path, kind in qdrant_payloads.paths(record).items():
                if path not in self._indexed and len(self._indexed) < self._engine.most_indexes:
                    await self._engine.index(path, kind)
                    self._indexed.add(path)

    async def _delete(self, ids: set[str]) -> int:
        doomed = [qdrant_payloads.point_id(chunk_id) for chunk_id in await self.existing_ids(sorted(ids))]
        for start in range(0, len(doomed), IDS_A_CALL):
            await self._engine.delete(doomed[start : start + IDS_A_CALL])
        return len(doomed)

    async def _best(self, vector: Vector, k: int, where: Where | None) -> list[tuple[float, str]]:
        """The best `k` (score, chunk id), sorted.

        One more than wanted is asked for, and more again as long as the last one may be equal to what comes after it:
        else it would be up to Qdrant which of equal chunks are among the best.
        """
        expression = qdrant_payloads.native(where)
        wanted = k + 1
        while True:
            rows = await self._engine.search(vector, wanted, expression, whole=bool(where))
            passing = [
                (self._score(row), str(row.payload[qdrant_payloads.CHUNK_ID]))
                for row in rows
                if not where or filters.matches(where, qdrant_payloads.fields(row.payload))
            ]
            passing.sort(key=lambda found: (-found[0], found[1]))
            if len(rows) < wanted or (len(passing) >= k and self._score(rows[-1]) < passing[k - 1][0]):
                return passing[:k]
            wanted *= 4

    def _score(self, row: Row) -> float:
        if self._metric == "l2":
            return -(float(row.score) ** 2)
        return min(1.0, max(-1.0, float(row.score))) if self._metric == "cosine" else float(row.score)


def _check_name(collection: str) -> None:
    dots = collection.strip(".") == ""
    if dots or len(collection) > 200 or any(c in REFUSED_IN_NAMES or not c.isprintable() for c in collection):
        raise ConfigError(
            f"{collection!r} can't be the name of a Qdrant collection.",
            hint=f"It is not empty, not over 200 characters long, and has none of {' '.join(sorted(REFUSED_IN_NAMES))}",
        )


def _batches(records: Sequence[ChunkRecord]) -> Iterator[list[ChunkRecord]]:
    """Records whose vectors together stay within what goes into one call; a larger record goes alone."""
    batch: list[ChunkRecord] = []
    numbers = 0
    for record in records:
        more = sum(len(vector) for vector in record.vectors)
        if batch and (numbers + more > NUMBERS_A_CALL or len(batch) == IDS_A_CALL):
            yield batch
            batch, numbers = [], 0
        batch.append(record)
        numbers += more
    if batch:
        yield batch
