"""OpenSearch over the network: vectors and words in one index, as a vector store and as a lexical store.

Holds vectors, terms, chunk ids and filter fields; the text is analysed and not kept. `score` of `search` is what
OpenSearch makes of the distance, higher is better: (1 + cosine) / 2, with `l2` 1 / (1 + squared distance), with `ip`
1 + product (1 / (1 - product) below zero). `score` of `lexical_search` is BM25 (k1 1.2, b 0.75).

Writes are refreshed before they are acknowledged, so searches see them at once. OpenSearch answers with at most 10,000
hits, so a larger `k` is taken as that. Words are cut by OpenSearch's own analyser, not by ours.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from leadline.analysis import Analyzer
from leadline.errors import InvalidFilter, StoreError
from leadline.stores import filters, opensearch_client, opensearch_schema, steps
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
from leadline.stores.opensearch_index import WINDOW, Action, OpenSearchIndex
from leadline.stores.opensearch_schema import Metric, Query

# Candidates of a search: Lucene looks at no more vectors than it is asked for, so few would mean a poor recall.
FEWEST = 100
LONGEST_QUESTION = 500  # words; OpenSearch takes at most 1024 clauses


class OpenSearchVectorStore:
    """One index of an OpenSearch server (2.4 or newer, with its k-NN plugin; 2.13 for the metric `ip`).

    As a vector store it refuses chunks without a usable vector. With an `analyzer` it is (also) the lexical leg: it
    keeps such chunks for their words, and counts and lists them like the others. Without `dense`, and made ready
    without a width, the index it makes is for words alone. `text_analyzer` names another of OpenSearch's analysers
    than the one that fits `analyzer` (`english`, or `standard` without a stemmer).
    """

    def __init__(  # noqa: PLR0913 - keyword-only options, one a setting
        self,
        *,
        url: str = "",
        index: str = "leadline",
        user: str | None = None,
        password: str | None = None,
        metric_type: Metric = "cosine",
        dense: bool = True,
        analyzer: Analyzer | None = None,
        text_analyzer: str | None = None,
        verify_certs: bool = True,
        timeout: float = 30.0,
        policy: Policy | None = None,
    ) -> None:
        self._at = opensearch_client.address(url, user, password)
        self._name = index
        self._metric = metric_type
        unstemmed = analyzer is not None and analyzer.name.endswith("/none")
        self._analyzer = text_analyzer or ("standard" if unstemmed else "english")
        self._dense = dense
        # A chunk counts as stored with at least so many vectors.
        self._fewest_vectors = 1 if dense and analyzer is None else 0
        self._verify_certs = verify_certs
        self._timeout = timeout
        self._policy = policy
        self._index: OpenSearchIndex | None = None

    async def __aenter__(self) -> Self:
        client = opensearch_client.connect(self._at, verify_certs=self._verify_certs, timeout=self._timeout)
        index = OpenSearchIndex(client, self._at, self._name, self._metric, self._analyzer, self._timeout)
        try:
            await index.look()
        except BaseException:
            await client.close()
            raise
        self._index = index
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        index, self._index = self._index, None
        if index is not None:
            await index.client.close()

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates the index, or checks the metric, the analyser and the width of the one that is there."""
        index = self._opened()
        await index.look()
        if index.dimension is None:
            await index.create(dimension if self._dense else 0)
        if not dimension:
            self._fewest_vectors = 0
        elif self._dense:
            self._check_width(index, dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces; returns how many were refused for a vector that is missing, all zero or not finite.

        A lexical leg refuses nothing: it keeps those for their words alone.
        """
        check_ids(records)
        last = {record.chunk_id: record for record in records}
        if not last:
            return 0
        index = self._opened()
        dense = {key for key, record in last.items() if has_usable_vectors(record)}
        widths = {len(vector) for key in dense for vector in last[key].vectors}
        if index.dimension is None:
            if self._dense and not widths:  # made now, it could never take vectors
                return self._without_index(last)
            await self.ensure_ready(min(widths, default=0))
        if index.dimension:
            for width in widths:
                self._check_width(index, width)
        kept = [record for key, record in last.items() if key in dense or not self._fewest_vectors]
        stored = await index.vector_counts(last)
        writes = await asyncio.to_thread(_writes, kept, dense if index.dimension else set(), stored)
        # A chunk that is there for its words alone is a lexical leg's: a vector leg that shares its index leaves it.
        refused = last.keys() - {record.chunk_id for record in kept}
        gone = {key: count for key, count in stored.items() if key in refused and count}
        await index.bulk([*writes, *_removals(gone)])
        return len(refused)

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` are stored: read by id in real time, not searched for."""
        stored = await self._opened().vector_counts(ids)
        return {key for key, count in stored.items() if count >= self._fewest_vectors}

    async def all_ids(self) -> set[str]:
        """Every id, of one point in time, read in pages."""
        return {chunk_id async for chunk_id in self._opened().chunk_ids(self._stored_chunks())}

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their documents; returns how many were there."""
        index = self._opened()
        stored = await index.vector_counts(ids)
        await index.bulk(_removals(stored))
        return sum(count >= self._fewest_vectors for count in stored.values())

    async def count(self) -> int:
        """How many chunks are stored."""
        return await self._opened().count(self._stored_chunks())

    async def clear(self) -> None:
        """Drops the index and makes it anew with the same metric and width."""
        index = self._opened()
        await index.look()
        if (dimension := index.dimension) is not None:
            await index.drop()
            await index.create(dimension)

    async def stats(self) -> Stats:
        """The backend, how many chunks, the width of the vectors, the metric and the analyser."""
        figures = {"count": await self.count(), "dimension": self._opened().dimension or 0}
        return {"backend": "opensearch", "metric": self._metric, "analyzer": self._analyzer, **figures}

    async def search(self, vector: Vector, *, k: int, where: Where | str | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector.

        `where` may be a Query DSL object as JSON text.
        """
        narrowed = _filter(where)
        check_question(vector)
        index = self._opened()
        if index.dimension is None:
            await index.look()
        if not index.dimension or k < 1:
            return []
        self._check_width(index, len(vector))
        best: dict[str, float] = {}
        wanted = min(max(2 * k, FEWEST), WINDOW)
        while True:
            knn: Query = {"vector": vector.tolist(), "k": wanted, **({"filter": narrowed} if narrowed else {})}
            hits = await index.search({"knn": {"vector": knn}}, wanted, native=isinstance(where, str))
            for chunk_id, score in hits:
                best[chunk_id] = max(score, best.get(chunk_id, -math.inf))
            if len(best) >= k or len(hits) < wanted or wanted == WINDOW:
                return _ranked(best.items(), k)
            wanted = min(4 * wanted, WINDOW)

    async def lexical_search(self, text: str, *, k: int, where: Where | str | None = None) -> list[Hit]:
        """At most `k` chunks that share a term with `text`, best first, equal scores by chunk id.

        Of a longer question the first 500 words count. `where` may be a Query DSL object as JSON text.
        """
        narrowed = _filter(where)
        if k < 1:
            return []
        words = {"match": {"text": {"query": " ".join(text.split()[:LONGEST_QUESTION])}}}
        query = {"bool": {"must": [words], **({"filter": [narrowed]} if narrowed else {})}}
        hits = await self._opened().search(query, min(k, WINDOW), native=isinstance(where, str))
        return _ranked(hits, k)

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> steps.Step:
        """See `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(
        self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False, allow_empty: bool = False
    ) -> steps.Step:
        """See `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    def _opened(self) -> OpenSearchIndex:
        if self._index is None:
            raise StoreError("The OpenSearch store isn't open.", hint="Use it inside `async with`.")
        return self._index

    def _check_width(self, index: OpenSearchIndex, width: int) -> None:
        if width != index.dimension:
            holds = f"vectors of width {index.dimension}" if index.dimension else "words alone"
            raise index.mismatch(f"holds {holds}, not vectors of width {width}")

    def _without_index(self, records: Mapping[str, ChunkRecord]) -> int:
        if self._fewest_vectors:
            return len(records)
        raise StoreError(
            f"The OpenSearch index {self._name} isn't there yet, and no chunk says how wide its vectors are.",
            hint="Call ensure_ready first.",
        )

    def _stored_chunks(self) -> Query:
        """The first documents of the chunks that count as stored: only those have the field."""
        return {"range": {"vectors": {"gte": self._fewest_vectors}}}


def _writes(records: Sequence[ChunkRecord], dense: set[str], stored: Mapping[str, int]) -> list[Action]:
    """A chunk's new documents, and away with those that it has no longer."""
    actions: list[Action] = []
    for record in records:
        written = list(opensearch_schema.documents(record, with_vectors=record.chunk_id in dense))
        actions.extend(({"index": {"_id": document_id}}, body) for document_id, body in written)
        before = opensearch_schema.vector_ids(record.chunk_id, stored.get(record.chunk_id, 0))
        actions.extend(({"delete": {"_id": document_id}}, None) for document_id in before[len(written) :])
    return actions


def _removals(stored: Mapping[str, int]) -> list[Action]:
    return [
        ({"delete": {"_id": document_id}}, None)
        for chunk_id, count in stored.items()
        for document_id in opensearch_schema.vector_ids(chunk_id, count)
    ]


def _filter(where: Where | str | None) -> Query | None:
    if isinstance(where, str):
        try:
            native: Any = json.loads(where)
        except ValueError:
            native = None
        if not isinstance(native, dict):
            raise InvalidFilter(
                "The native filter isn't a JSON object.", hint='Write Query DSL: {"term": {"chunk_id": "…"}}.'
            )
        return native
    filters.check(where)
    return opensearch_schema.filter_query(where) if where else None


def _ranked(scores: Iterable[tuple[str, float]], k: int) -> list[Hit]:
    best = sorted(scores, key=lambda item: (-item[1], item[0]))[:k]
    return [Hit(chunk_id, score, rank) for rank, (chunk_id, score) in enumerate(best)]
