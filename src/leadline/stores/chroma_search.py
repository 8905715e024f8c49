"""One search in a Chroma collection: asked of Chroma, filtered, and widened until enough chunks pass."""

import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import numpy as np

from leadline.stores import chroma_payloads, filters
from leadline.stores.base import Hit, Vector, Where

Metric = Literal["cosine", "l2", "ip"]
# So many vectors are compared one by one where the graph found too few. Between equal vectors, and after deletions, not
# every vector can be reached through a graph; with a narrow filter that may be all of those that pass.
FEW = 5000

Rows = list[tuple[str | None, float]]


class Question:
    """The `k` chunks nearest to `vector` that pass `where`. Raises InvalidFilter."""

    def __init__(self, vector: Vector, k: int, where: Where | str | None, metric: Metric) -> None:
        # A text is Chroma's own filter: Chroma does it all, and nothing is left to test here.
        self._where: Where | None = None if isinstance(where, str) else where
        filters.check(self._where)
        self._native = chroma_payloads.native(where)
        self._vector = np.asarray(vector, dtype=np.float32)
        self._k = k
        self._metric = metric

    async def hits(self, ask: Callable[..., Awaitable[Any | None]]) -> list[Hit]:
        """Best first, each chunk by its best vector. `ask` calls a method of the collection."""
        scores: dict[str, float] = {}
        wanted = self._k
        while True:
            rows = await self._nearest(ask, wanted)
            for chunk_id, score in rows:
                if chunk_id is not None:
                    scores[chunk_id] = max(score, scores.get(chunk_id, -math.inf))
            if len(scores) >= self._k or len(rows) < wanted:
                break
            wanted *= 4
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: self._k]
        return [Hit(chunk_id, score, rank) for rank, (chunk_id, score) in enumerate(best)]

    async def _nearest(self, ask: Callable[..., Awaitable[Any | None]], n: int) -> Rows:
        """(chunk id, score) of the `n` nearest vectors; without an id where the filter turns the chunk down."""
        rows = await ask(
            "query",
            query_embeddings=[self._vector],
            n_results=n,
            where=self._native,
            include=["distances", "metadatas"] if self._where else ["distances"],
        )
        if rows is None:
            return []
        ids, distances = rows["ids"][0], rows["distances"][0]
        payloads = rows["metadatas"][0] if self._where else [{}] * len(ids)
        found = self._rows(ids, map(self._score, distances), payloads)
        return found if len(found) >= n else await self._compared(ask, n, found)

    async def _compared(self, ask: Callable[..., Awaitable[Any | None]], n: int, found: Rows) -> Rows:
        """`found`, or more than that where there is more and it isn't too much to be compared one by one."""
        rows = await ask("get", where=self._native, limit=FEW + 1, include=["embeddings", "metadatas"])
        if rows is None or not len(found) < len(rows["ids"]) <= FEW:
            return found
        scores = self._scores(np.asarray(rows["embeddings"], dtype=np.float32))
        order = np.argsort(-scores, kind="stable")[:n]
        payloads = [rows["metadatas"][row] or {} for row in order]
        return self._rows([rows["ids"][row] for row in order], scores[order].tolist(), payloads)

    def _rows(self, ids: Iterable[str], scores: Iterable[float], payloads: Iterable[Any]) -> Rows:
        return [
            (chroma_payloads.chunk_of(vector_id) if passes else None, score)
            for vector_id, score, payload in zip(ids, scores, payloads, strict=True)
            for passes in [filters.matches(self._where, chroma_payloads.fields(payload))]
        ]

    def _scores(self, vectors: Vector) -> Vector:
        """The score of each row."""
        scores: Vector
        if self._metric == "l2":
            scores = -np.square(vectors - self._vector).sum(axis=1)
        elif self._metric == "ip":
            scores = vectors @ self._vector
        else:
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(self._vector)
            scores = np.clip(vectors @ self._vector / lengths, -1.0, 1.0)
        return scores

    def _score(self, distance: float) -> float:
        if self._metric == "l2":
            return -float(distance)
        similarity = 1.0 - float(distance)
        return min(1.0, max(-1.0, similarity)) if self._metric == "cosine" else similarity
