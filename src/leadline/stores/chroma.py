"""Chroma, in this process over a folder or as a server: the default vector store.

Holds vectors, chunk ids and filter fields, never text. `score` is the cosine similarity (1 for the same direction, -1
for the opposite one); with `l2` it is minus the squared distance, with `ip` the inner product: higher is better.

Chroma has no words for some of the portable filter; those parts are tested on what comes back, and more is fetched
until enough of it passes. A text given as `where` is Chroma's own expression, as JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores import chroma_payloads, steps
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
from leadline.stores.chroma_client import ChromaClient, Vanished, address
from leadline.stores.chroma_search import Metric, Question

if TYPE_CHECKING:
    from leadline.stores.steps import Records, Step

T = TypeVar("T")

# recall@10 is 1.0 on 5,000 embedded passages and 0.999 on 100,000 made-up vectors of width 384. With 32 neighbours, and
# an ef of 200 while it is built, a graph took more than twice the processor time and found no more.
HNSW = {"ef_construction": 64, "ef_search": 200, "max_neighbors": 16}
# Rows a call, at most: below SQLite's limit of variables a statement, where Chroma ends with an internal error.
PAGE = 5000
# Vectors a write, at most: what is sent is put together on the event loop, which shouldn't stand still for long.
WRITE = 1000


class ChromaVectorStore:
    """A Chroma collection as a VectorStore: of the server at `url`, or of a database in the folder `path`.

    `headers` go with every request to the server. Only one process may have a folder open. Writes go one at a time,
    each to its end even where its caller is cancelled.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the backend
        self,
        *,
        url: str | None = None,
        path: Path | str | None = None,
        collection: str = "leadline",
        headers: Mapping[str, str] | None = None,
        tenant: str = "default_tenant",
        database: str = "default_database",
        metric_type: Metric = "cosine",
        policy: Policy | None = None,
    ) -> None:
        if (url is None) == (path is None):
            raise ConfigError("A Chroma store is at a `url` or in a `path`.", hint="Give exactly one of the two.")
        self._url = None if url is None else address(url)
        self._path = None if path is None else Path(path)
        self._name = collection
        self._headers = dict(headers or {})
        self._database = (tenant, database)
        self._metric = metric_type
        self._policy = policy
        self._dimension = 0
        self._page = PAGE
        self._writing = asyncio.Lock()
        self._client: ChromaClient | None = None
        self._collection: Any = None

    async def __aenter__(self) -> Self:
        self._writing = asyncio.Lock()
        client = await asyncio.to_thread(self._made)
        await client.open()
        self._client = client
        try:
            limit = await client.batch_limit()
            self._page = min(limit, PAGE) if limit > 0 else PAGE
            await self._found()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        async with self._writing:
            client, self._client, self._collection = self._client, None, None
            if client is not None:
                await client.close()

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates the collection, or checks the metric and width of the one that is there."""
        if dimension < 1:
            raise StoreError(f"A vector store needs the width of its vectors, not {dimension}.")
        await self._alone(self._ensure_ready(dimension))

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces; returns how many were refused for a vector that is missing, all zero or not finite."""
        check_ids(records)
        return await self._alone(self._upsert(records))

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a vector."""
        return set(await self._stored(ids))

    async def all_ids(self) -> set[str]:
        """The chunk ids of all vectors, read in pages."""
        ids: set[str] = set()
        for offset in range(0, await self._ask("count") or 0, self._page):
            page = await self._ask("get", limit=self._page, offset=offset, include=[])
            ids.update(map(chroma_payloads.chunk_of, page["ids"] if page else []))
        return ids

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their vectors; returns how many were there."""
        return await self._alone(self._delete(ids))

    async def count(self) -> int:
        """How many chunks have a vector."""
        further = await self._ask("get", where={chroma_payloads.ORDINAL: {"$gte": 1}}, include=[])
        return (await self._ask("count") or 0) - len(further["ids"] if further else [])

    async def clear(self) -> None:
        """Drops the collection and makes it anew with the same metric and width."""
        await self._alone(self._clear())

    async def stats(self) -> Stats:
        """The backend, how many chunks, the width of the vectors and the metric."""
        count = await self.count()
        return {"backend": "chroma", "metric": self._metric, "count": count, "dimension": self._dimension}

    async def search(self, vector: Vector, *, k: int, where: Where | str | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, each by its best vector."""
        check_question(vector)
        question = Question(vector, k, where, self._metric)
        if k < 1 or await self._found() is None:
            return []
        self._check_width(len(vector))
        return await question.hits(self._ask)

    def save(self, upstream: Records, *, skip_existing: bool = False) -> Step:
        """A lazy step that stores the records of `upstream`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(self, upstream: Records, *, skip_existing: bool = False, allow_empty: bool = False) -> Step:
        """A lazy step like `save` that then removes what `upstream` did not yield."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    def _made(self) -> ChromaClient:
        """Chroma's client; importing it takes seconds."""
        if self._url is not None:
            from leadline.stores.chroma_server import ChromaServer

            return ChromaServer(self._url, self._headers, *self._database)
        from leadline.stores.chroma_embedded import EmbeddedChroma

        assert self._path is not None
        return EmbeddedChroma(self._path, *self._database)

    def _opened(self) -> ChromaClient:
        if self._client is None:
            raise StoreError("The Chroma store isn't open.", hint="Use it inside `async with`.")
        return self._client

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        async def locked() -> T:
            async with self._writing:
                return await work

        return await asyncio.shield(asyncio.create_task(locked()))

    async def _found(self) -> Any | None:
        """The collection; where there was none, another process may have made it by now."""
        client = self._opened()
        if self._collection is None:
            found = await client.find(self._name)
            if found is not None:
                await self._validate(found)
                self._collection = found
        return self._collection

    async def _ask(self, method: str, **arguments: Any) -> Any | None:
        """What a method of the collection gives; None if there is no collection. Where another process has cleared it,
        which makes it anew, the new one is asked."""
        for _ in range(2):
            collection = await self._found()
            if collection is None:
                break
            try:
                return await self._opened().call(getattr(collection, method), **arguments)
            except Vanished:
                self._collection = None
        return None

    async def _validate(self, collection: Any) -> None:
        metric = (collection.configuration_json.get("hnsw") or {}).get("space")
        if metric != self._metric:
            raise ManifestMismatch(
                f"The Chroma collection {self._name} at {self._opened().place} measures by {metric}, "
                f"not by {self._metric}.",
                hint="Set the metric back, or use another collection.",
            )
        # Another program's collection doesn't say its width, but a vector in it does; an empty one takes any.
        stated = (collection.metadata or {}).get("dimension")
        one = None if stated else await self._opened().call(collection.get, limit=1, include=["embeddings"])
        self._dimension = int(stated or (len(one["embeddings"][0]) if one and one["ids"] else 0))

    def _check_width(self, width: int) -> None:
        if self._dimension not in (0, width):
            raise ManifestMismatch(
                f"The Chroma collection {self._name} at {self._opened().place} holds vectors of width "
                f"{self._dimension}, not {width}: they come from another embedding model.",
                hint="Set the embedding model back, or use another collection.",
            )

    async def _ensure_ready(self, dimension: int) -> None:
        if await self._found() is None:
            configuration = {"hnsw": {"space": self._metric, **HNSW}}
            made = await self._opened().create(self._name, configuration, {"dimension": dimension})
            await self._validate(made)
            self._collection = made
        self._check_width(dimension)
        self._dimension = dimension

    async def _upsert(self, records: Sequence[ChunkRecord]) -> int:
        last = {record.chunk_id: record for record in records}
        usable = [record for record in last.values() if has_usable_vectors(record)]
        for width in {len(vector) for record in usable for vector in record.vectors}:
            await self._ensure_ready(width)
        refused = last.keys() - {record.chunk_id for record in usable}
        await self._delete(list(refused))
        for batch in chroma_payloads.batches(usable, min(self._page, WRITE)):
            await self._write(batch)
        return len(refused)

    async def _write(self, batch: Sequence[ChunkRecord]) -> None:
        stored = await self._stored([record.chunk_id for record in batch])
        await self._remove(chroma_payloads.surplus(batch, stored))
        ids: list[str] = []
        payloads: list[Any] = []
        for record in batch:
            ids.extend(chroma_payloads.vector_ids(record.chunk_id, len(record.vectors)))
            payloads.extend(chroma_payloads.payloads(record, stored.get(record.chunk_id, {})))
        vectors = [np.asarray(vector, dtype=np.float32) for record in batch for vector in record.vectors]
        self._opened().check_room(sum(vector.nbytes for vector in vectors))
        await self._ask("upsert", ids=ids, embeddings=vectors, metadatas=payloads)
        if self._collection is None:
            raise StoreError(
                f"The Chroma collection {self._name} at {self._opened().place} was dropped while it was written.",
                hint="Look who else uses it, and try again.",
            )

    async def _stored(self, ids: Sequence[str]) -> dict[str, chroma_payloads.Payload]:
        """The payloads of those of `ids` that are stored."""
        found: dict[str, chroma_payloads.Payload] = {}
        unique = list(dict.fromkeys(ids))
        for start in range(0, len(unique), self._page):
            rows = await self._ask("get", ids=unique[start : start + self._page], include=["metadatas"])
            found.update(zip(rows["ids"], rows["metadatas"], strict=True) if rows else [])
        return found

    async def _delete(self, ids: Sequence[str]) -> int:
        stored = await self._stored(ids)
        await self._remove(
            [
                name
                for key, payload in stored.items()
                for name in chroma_payloads.vector_ids(key, chroma_payloads.vector_count(payload))
            ]
        )
        return len(stored)

    async def _remove(self, vector_ids: Sequence[str]) -> None:
        for start in range(0, len(vector_ids), self._page):
            await self._ask("delete", ids=vector_ids[start : start + self._page])

    async def _clear(self) -> None:
        if await self._found() is None:
            return
        dimension = self._dimension
        await self._opened().drop(self._name)
        self._collection = None
        await self._ensure_ready(dimension)
