"""The text of chunks in the catalog's own database: the content store that needs nothing beside it.

Knows one table; doesn't know which chunks the catalog accounts for. Each call is one transaction in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import ColumnElement, bindparam, delete, func, select

from leadline.stores import steps
from leadline.stores.base import ChunkRecord, Failed, Policy, Stats
from leadline.stores.catalog import Catalog, batched, upsert
from leadline.stores.catalog_schema import texts

if TYPE_CHECKING:
    from leadline.stores.steps import Step

# Made once: to put a statement together takes longer than to run it.
_TEXTS = select(texts.c.chunk_id, texts.c.text).where(
    texts.c.collection == bindparam("collection"), texts.c.chunk_id.in_(bindparam("ids", expanding=True))
)


class CatalogChunkStore:
    """The texts of one collection as a ChunkStore, in the open `catalog`. What is deleted is gone from its file too."""

    def __init__(self, catalog: Catalog, collection: str, *, policy: Policy | None = None) -> None:
        self._catalog = catalog
        self._collection = collection
        self._policy = policy

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        pass

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Nothing to do: the table is made with the catalog."""

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Keeps the texts, all or none; refuses nothing, so returns 0."""
        await asyncio.to_thread(self._upsert, records)
        return 0

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a text."""
        return await asyncio.to_thread(self._existing_ids, ids)

    async def all_ids(self) -> set[str]:
        """Every id that has a text."""
        return await asyncio.to_thread(self._all_ids)

    async def fetch(self, ids: Sequence[str]) -> dict[str, str]:
        """Chunk id → text, in the order of `ids`; those without one are left out."""
        return await asyncio.to_thread(self._fetch, ids)

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes texts; returns how many were there."""
        return await asyncio.to_thread(self._delete, ids)

    async def count(self) -> int:
        """How many texts there are."""
        return await asyncio.to_thread(self._count)

    async def clear(self) -> None:
        """Removes every text of the collection."""
        await asyncio.to_thread(self._clear)

    async def stats(self) -> Stats:
        """The backend, and how many texts."""
        return {"backend": "catalog", "count": await self.count()}

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

    def _mine(self, ids: Sequence[str] | None = None) -> list[ColumnElement[bool]]:
        mine = [texts.c.collection == self._collection]
        return mine if ids is None else [*mine, texts.c.chunk_id.in_(ids)]

    def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        rows = {record.chunk_id: self._row(record) for record in records}
        if rows:
            with self._catalog.write() as connection:
                connection.execute(upsert(connection, texts), [*rows.values()])

    def _row(self, record: ChunkRecord) -> dict[str, Any]:
        return {"collection": self._collection, "chunk_id": record.chunk_id, "text": record.text}

    def _existing_ids(self, ids: Sequence[str]) -> set[str]:
        with self._catalog.read() as connection:
            statements = [select(texts.c.chunk_id).where(*self._mine(batch)) for batch in batched(ids)]
            return {chunk_id for statement in statements for chunk_id in connection.execute(statement).scalars()}

    def _all_ids(self) -> set[str]:
        with self._catalog.read() as connection:
            return set(connection.execute(select(texts.c.chunk_id).where(*self._mine())).scalars())

    def _fetch(self, ids: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._catalog.read() as connection:
            for batch in batched(ids):
                rows = connection.execute(_TEXTS, {"collection": self._collection, "ids": batch})
                found.update({row.chunk_id: row.text for row in rows})
        return {chunk_id: found[chunk_id] for chunk_id in ids if chunk_id in found}

    def _delete(self, ids: Sequence[str]) -> int:
        if not ids:
            return 0
        removed = 0
        with self._catalog.write() as connection:
            for batch in batched(list(dict.fromkeys(ids))):
                removed += connection.execute(delete(texts).where(*self._mine(batch))).rowcount
        if removed:
            self._catalog.forget_deleted()
        return removed

    def _count(self) -> int:
        with self._catalog.read() as connection:
            statement = select(func.count()).select_from(texts).where(*self._mine())
            return int(connection.execute(statement).scalar_one())

    def _clear(self) -> None:
        with self._catalog.write() as connection:
            connection.execute(delete(texts).where(*self._mine()))
        self._catalog.forget_deleted()
