"""The best chunks of a Milvus collection for one query: filtered, whatever Milvus's expressions can't say.

Fetches more rows until enough chunks pass. Where they lie beyond the most rows Milvus returns at once, the chunks that
pass are listed first and then ranked among themselves.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

from leadline.errors import StoreError
from leadline.stores import milvus_rows
from leadline.stores.base import Where
from leadline.stores.milvus_client import WINDOW, Connection
from leadline.stores.milvus_rows import CHUNK, FIELDS, PAGE, TERMS, Row

Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class Search:
    """A query on one field. `expression` lets at least the rows through that pass `where`."""

    connection: Connection
    field: str
    query: Any
    metric: str
    expression: str
    where: Where | str | None

    async def best(self, k: int) -> Scores:
        """Chunk id → score of at least the `k` best chunks that pass, or of all of them."""
        wanted = k + 1  # the one after shows whether equal ones were cut off
        while True:
            rows = await self._nearest(self.expression, wanted)
            scores = self._scores(rows)
            if len(rows) < min(wanted, WINDOW) or self._is_enough(scores, rows, k):
                return scores
            if wanted >= WINDOW:
                return scores if len(scores) >= k else await self._best_of_all(k)
            wanted *= 4

    def _is_enough(self, scores: Scores, rows: list[Row], k: int) -> bool:
        if len(scores) < k:
            return False
        return heapq.nlargest(k, scores.values())[-1] > self._score(rows[-1])

    async def _best_of_all(self, k: int) -> Scores:
        """As `best`, from a list of all chunks that pass."""
        best: Scores = {}
        passing: dict[str, None] = {}
        async for page in self.connection.pages(self.expression, [CHUNK, FIELDS]):
            passing |= {row[CHUNK]: None for row in page if milvus_rows.passes(self.where, row)}
        keys = list(passing)
        for start in range(0, len(keys), PAGE):
            among = milvus_rows.one_of(CHUNK, keys[start : start + PAGE])
            rows = await self._nearest(milvus_rows.both([self.expression, among]), WINDOW)
            best |= self._scores(rows)
            best = dict(heapq.nsmallest(k, best.items(), key=lambda item: (-item[1], item[0])))
        return best

    async def _nearest(self, expression: str, limit: int) -> list[Row]:
        try:
            return await self.connection.nearest(
                self.field, self.query, expression=expression, limit=limit, metric=self.metric
            )
        except StoreError:
            # Milvus Lite divides by the average number of terms, which is 0 where no chunk has any.
            if self.metric != "BM25" or await self.connection.count(f'{TERMS} != ""'):
                raise
            return []

    def _scores(self, rows: list[Row]) -> Scores:
        scores: Scores = {}
        for row in rows:
            if milvus_rows.passes(self.where, row):
                chunk_id = milvus_rows.chunk_of(row[CHUNK])
                scores[chunk_id] = max(self._score(row), scores.get(chunk_id, -math.inf))
        return scores

    def _score(self, row: Row) -> float:
        distance = float(row["distance"])
        match self.metric:
            case "L2":
                return -distance
            case "COSINE":
                return min(1.0, max(-1.0, distance))
            case "BM25":
                return abs(distance)  # milvus-lite 3 turns the sign
            case _:
                return distance
