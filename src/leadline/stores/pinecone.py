"""Pinecone, a vector database run by its maker: one namespace of an index as a vector store.

Holds vectors, chunk ids and filter fields, never text. `score` is Pinecone's own: the cosine, with `ip` the inner
product, with `l2` minus the squared distance, so that higher is better everywhere.

A write returns when searches see it (see `pinecone_namespace`); `count`, `existing_ids` and `all_ids` may still be a
moment behind, of other processes' writes as well. Pinecone answers with at most 10,000 vectors, compares no strings by
order, and pages ids by the hundred: listing 100,000 chunks takes 1,000 requests.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from leadline.errors import StoreError
from leadline.stores import filters, pinecone_client, pinecone_payloads, steps
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
from leadline.stores.pinecone_client import Account, Metric
from leadline.stores.pinecone_namespace import LARGEST_QUERY, PineconeNamespace


class PineconeVectorStore:
    """Chunks in a namespace of a Pinecone index.

    The index is found by its name, and made (serverless, at `cloud` and `region`) where there is none; `host` saves
    the look-up, and then it must be there. Without `api_key` that of the environment counts, PINECONE_API_KEY.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options, one a setting
        self,
        *,
        api_key: str | None = None,
        index: str = "leadline",
        host: str | None = None,
        namespace: str = "",
        metric_type: Metric = "cosine",
        cloud: str = "aws",
        region: str = "us-east-1",
        timeout: float = 30.0,
        policy: Policy | None = None,
    ) -> None:
        self._key = api_key
        self._place = (index, host, metric_type, cloud, region, timeout)
        self._metric = metric_type
        self._name = namespace
        self._policy = policy
        self._account: Account | None = None
        self._namespace: PineconeNamespace | None = None

    async def __aenter__(self) -> Self:
        self._account = Account(pinecone_client.key_of(self._key), *self._place)
        client = await pinecone_client.connect(self._account)
        if client is not None:
            await self._use(PineconeNamespace(client, self._account, self._name))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        namespace, self._namespace, self._account = self._namespace, None, None
        if namespace is not None:
            await namespace.client.close()

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Makes the index where there is none, and checks the metric and the width of the one that is there."""
        if dimension < 1:
            raise StoreError(f"A vector store needs the width of its vectors, not {dimension}.")
        account = self._opened()
        if self._namespace is None:
            client = await pinecone_client.connect(account) or await pinecone_client.create(account, dimension)
            await self._use(PineconeNamespace(client, account, self._name))
        self._check_width(dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces; returns how many were refused for a vector that is missing, all zero or not finite."""
        check_ids(records)
        last = {record.chunk_id: record for record in records}
        if not last:
            return 0
        self._opened()
        usable = {key: record for key, record in last.items() if has_usable_vectors(record)}
        for width in {len(vector) for record in usable.values() for vector in record.vectors}:
            await self.ensure_ready(width)
        if self._namespace is None:
            return len(last)
        stored = await self._vector_counts(last)
        await self._remove({key: count for key, count in stored.items() if key not in usable})
        surplus = [
            vector_id
            for key, record in usable.items()
            for vector_id in pinecone_payloads.vector_ids(key, stored.get(key, 0))[len(record.vectors) :]
        ]
        await self._namespace.delete(surplus)
        batches = await asyncio.to_thread(lambda: list(pinecone_payloads.batches(usable.values())))
        places = [await self._namespace.upsert(batch) for batch in batches]
        if known := [place for place in places if place is not None]:
            await self._namespace.until_written(max(known))
        return len(last) - len(usable)

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a vector: looked up by id, in as many requests as the addresses need."""
        return set(await self._vector_counts(ids))

    async def all_ids(self) -> set[str]:
        """The chunk ids of all vectors, read in pages of a hundred."""
        self._opened()
        if self._namespace is None:
            return set()
        return {pinecone_payloads.chunk_of(vector_id) async for vector_id in self._namespace.list_ids()}

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their vectors; returns how many were there."""
        stored = await self._vector_counts(ids)
        await self._remove(stored)
        return len(stored)

    async def count(self) -> int:
        """How many chunks have a vector, by Pinecone's statistics: a moment behind."""
        self._opened()
        if self._namespace is None:
            return 0
        further = [vector_id async for vector_id in self._namespace.list_ids(pinecone_payloads.FURTHER)]
        return await self._namespace.vector_count() - len(further)

    async def clear(self) -> None:
        """Empties the namespace; the index stays, with its metric and width."""
        self._opened()
        if self._namespace is not None:
            await self._namespace.delete_all()

    async def stats(self) -> Stats:
        """The backend, how many chunks, the width of the vectors and the metric."""
        dimension = self._namespace.dimension if self._namespace else 0
        return {"backend": "pinecone", "metric": self._metric, "count": await self.count(), "dimension": dimension}

    async def search(self, vector: Vector, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector."""
        filters.check(where)
        check_question(vector)
        self._opened()
        if self._namespace is None or k < 1:
            return []
        self._check_width(len(vector))
        scores: dict[str, float] = {}
        wanted = min(2 * k, LARGEST_QUERY)
        while True:
            found = await self._nearest(self._namespace, vector, wanted, where)
            for chunk_id, score in found:
                if chunk_id is not None:
                    scores[chunk_id] = max(score, scores.get(chunk_id, -math.inf))
            if len(scores) >= k or len(found) < wanted:
                return _ranked(scores.items(), k)
            if wanted == LARGEST_QUERY:
                break
            wanted = min(4 * wanted, LARGEST_QUERY)
        if any(chunk_id is None for chunk_id, _ in found):
            raise StoreError(
                f"Pinecone can't answer this filter: too few of the {LARGEST_QUERY} nearest vectors pass it.",
                hint="It has no order of strings; ask by $in, or by a number.",
            )
        return _ranked(scores.items(), k)

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> steps.Step:
        """See `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(
        self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False, allow_empty: bool = False
    ) -> steps.Step:
        """See `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    def _opened(self) -> Account:
        if self._account is None:
            raise StoreError("The Pinecone store isn't open.", hint="Use it inside `async with`.")
        return self._account

    async def _use(self, namespace: PineconeNamespace) -> None:
        try:
            await namespace.look()
        except BaseException:
            await namespace.client.close()
            raise
        self._namespace = namespace

    def _check_width(self, width: int) -> None:
        if self._namespace is not None and width != self._namespace.dimension:
            raise self._opened().mismatch(f"holds vectors of width {self._namespace.dimension}, not {width}")

    async def _vector_counts(self, ids: Iterable[str]) -> dict[str, int]:
        """Chunk id → how many vectors it has, of those stored."""
        self._opened()
        first = {pinecone_payloads.vector_ids(chunk_id, 1)[0]: chunk_id for chunk_id in ids}
        if self._namespace is None or not first:
            return {}
        found = await self._namespace.fetch(list(first))
        return {first[vector_id]: pinecone_payloads.vector_count(metadata) for vector_id, metadata in found.items()}

    async def _remove(self, stored: Mapping[str, int]) -> None:
        """Deletes all vectors of the chunks, and waits until no search finds them."""
        if self._namespace is None or not stored:
            return
        names = [name for key, count in stored.items() for name in pinecone_payloads.vector_ids(key, count)]
        await self._namespace.delete(names)
        keys = list(stored)
        for start in range(0, len(keys), pinecone_payloads.LARGEST_LIST):
            of_these = {"chunk_id": {"$in": keys[start : start + pinecone_payloads.LARGEST_LIST]}}
            await self._namespace.until_gone(of_these)

    async def _nearest(
        self, namespace: PineconeNamespace, vector: Vector, n: int, where: Where | None
    ) -> list[tuple[str | None, float]]:
        """(chunk id, score) of the `n` nearest vectors; without an id where the filter turns the chunk down."""
        narrowed = pinecone_payloads.native(where)
        found = await namespace.query(vector.tolist(), n, narrowed, payloads=bool(where))
        sign = -1.0 if self._metric == "l2" else 1.0
        return [
            (
                pinecone_payloads.chunk_of(match.id)
                if filters.matches(where, pinecone_payloads.fields(match.metadata or {}))
                else None,
                sign * match.score,
            )
            for match in found.matches
        ]


def _ranked(scores: Iterable[tuple[str, float]], k: int) -> list[Hit]:
    best = sorted(scores, key=lambda item: (-item[1], item[0]))[:k]
    return [Hit(chunk_id, score, rank) for rank, (chunk_id, score) in enumerate(best)]
