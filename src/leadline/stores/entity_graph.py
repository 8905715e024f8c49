"""The entity graph of a collection: chunks, the entities they mention, and the walk from one to the other.

Kept in the catalog's database; of a chunk's text only the names in it. `score` is above 1 for a chunk that mentions an
entity of the question, below 1 for one that shares other entities with those; within each it grows with the share of
a random walk that starts at the question's entities (see `entity_walk`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, distinct, func, insert, select

from leadline.entities import candidate_names, extract_entities, longest
from leadline.errors import StoreError
from leadline.stores import filters, steps
from leadline.stores.base import ChunkRecord, Hit, Policy, Stats, Where, check_ids
from leadline.stores.catalog import batched
from leadline.stores.entity_degrees import Mentioned, are_counted, count_all, note_changes
from leadline.stores.entity_graph_schema import (
    TABLES,
    count_chunks,
    create_tables,
    graph_chunks,
    graph_entities,
    graph_mentions,
    graph_sizes,
    have_table,
    known_size,
    note_growth,
)
from leadline.stores.entity_neighbourhood import Reader, fetch
from leadline.stores.entity_walk import walk
from leadline.stores.steps import Records, Step

if TYPE_CHECKING:
    from leadline.stores.catalog import Catalog

T = TypeVar("T")
_SAME_CHUNK = (graph_chunks.c.collection == graph_mentions.c.collection) & (
    graph_chunks.c.chunk_id == graph_mentions.c.chunk_id
)
_REMOVE_MENTIONS = (
    delete(graph_mentions)
    .where(graph_mentions.c.collection == bindparam("collection"))
    .where(graph_mentions.c.chunk_id.in_(bindparam("ids", expanding=True)))
    .returning(graph_mentions.c.entity, graph_mentions.c.part)
)
_REMOVE_CHUNKS = delete(graph_chunks).where(
    graph_chunks.c.collection == bindparam("collection"),
    graph_chunks.c.chunk_id.in_(bindparam("ids", expanding=True)),
)


@dataclass(slots=True)
class _Removed:
    """How many chunks, and what they mentioned."""

    chunks: int
    mentions: list[Mentioned]


class EntityGraphStore:
    """The mentions of one collection as a GraphStore. Its calls run in threads; each write is one transaction."""

    def __init__(self, catalog: Catalog, collection: str, *, policy: Policy | None = None) -> None:
        self._policy = policy
        self._catalog = catalog
        self._collection = collection
        self._has_tables: bool | None = None  # known while it is open
        self._sized = False  # whether the table of sizes was made: earlier versions made none
        self._counted = False  # whether the degrees of the collection's entities were

    async def __aenter__(self) -> Self:
        self._has_tables, self._sized, self._counted = await asyncio.to_thread(self._read, self._made)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._has_tables, self._sized, self._counted = None, False, False

    async def ensure_ready(self, dimension: int = 0) -> None:  # noqa: ARG002 - a width means nothing here
        """Makes the tables where they are missing."""
        await asyncio.to_thread(self._ensure_ready)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Replaces the mentions of the chunks in one transaction; refuses nothing, so returns 0."""
        check_ids(records)
        await asyncio.to_thread(self._upsert, records)
        return 0

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` were taken in, with or without an entity in them."""
        return await asyncio.to_thread(self._existing_ids, ids)

    async def all_ids(self) -> set[str]:
        """The ids of all chunks."""
        return await asyncio.to_thread(self._all_ids)

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with their mentions in one transaction; returns how many were there."""
        return await asyncio.to_thread(self._delete, ids)

    async def count(self) -> int:
        """How many chunks were taken in."""
        return await asyncio.to_thread(self._count)

    async def clear(self) -> None:
        """Removes the collection's chunks and mentions."""
        await asyncio.to_thread(self._clear)

    async def stats(self) -> Stats:
        """The backend, how many chunks, documents (sources), entities and edges, and entities per source."""
        return {"backend": "sql", "count": await self.count(), **await asyncio.to_thread(self._stats)}

    def save(self, upstream: Records, *, skip_existing: bool = False) -> Step:
        """As `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(self, upstream: Records, *, skip_existing: bool = False, allow_empty: bool = False) -> Step:
        """As `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    async def search(self, text: str, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks that mention the entities of `text`, then ones that share entities with those."""
        filters.check(where)
        return await asyncio.to_thread(self._search, text, k, where)

    def _read(self, call: Callable[[Connection], T]) -> T:
        with self._catalog.read() as connection:
            return call(connection)

    @property
    def _ready(self) -> bool:
        """Whether there is something to read. Raises StoreError unless the store is open."""
        if self._has_tables is None:
            raise StoreError("The entity graph isn't open.", hint="Use the store inside `async with`.")
        return self._has_tables

    def _ensure_ready(self) -> None:
        if not self._ready:
            with self._write():
                pass

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """A write that finds the tables."""
        whole = self._ready and self._sized and self._counted
        with self._catalog.write() as connection:
            if not whole:
                create_tables(connection)
                if not are_counted(connection, self._collection):
                    count_all(connection, self._collection)
            yield connection
        self._has_tables = self._sized = self._counted = True

    def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        last = {record.chunk_id: record for record in records}
        chunks = [self._chunk_row(record) for record in last.values()]
        mentions = [row for record in last.values() for row in self._mention_rows(record)]
        if not chunks:
            return
        with self._write() as connection:
            removed = self._remove(connection, list(last))
            connection.execute(insert(graph_chunks), chunks)
            if mentions:
                connection.execute(insert(graph_mentions), mentions)
            self._note(connection, removed, len(chunks), [(each["entity"], each["part"]) for each in mentions])

    def _chunk_row(self, record: ChunkRecord) -> dict[str, Any]:
        own = {"collection": self._collection, "chunk_id": record.chunk_id, "doc_id": record.doc_id}
        return {**own, "fields": filters.fields_of(record)}

    def _mention_rows(self, record: ChunkRecord) -> list[dict[str, Any]]:
        key = {"collection": self._collection, "chunk_id": record.chunk_id}
        return [
            {**key, "entity": entity, "name": found.name, "count": found.count, "part": found.part}
            for entity, found in extract_entities(record.text).items()
        ]

    def _remove(self, connection: Connection, ids: Sequence[str]) -> _Removed:
        removed = _Removed(0, [])
        for batch in batched(ids):
            these = {"collection": self._collection, "ids": batch}
            removed.mentions += [(entity, part) for entity, part in connection.execute(_REMOVE_MENTIONS, these)]
            removed.chunks += connection.execute(_REMOVE_CHUNKS, these).rowcount
        return removed

    def _note(
        self, connection: Connection, removed: _Removed, chunks: int = 0, mentions: Sequence[Mentioned] = ()
    ) -> None:
        note_growth(connection, self._collection, chunks - removed.chunks)
        note_changes(connection, self._collection, mentions, removed.mentions)

    def _mine(self, table: Table, ids: Sequence[str] | None = None) -> list[ColumnElement[bool]]:
        mine = [table.c.collection == self._collection]
        return mine if ids is None else [*mine, table.c.chunk_id.in_(ids)]

    def _existing_ids(self, ids: Sequence[str]) -> set[str]:
        if not self._ready:
            return set()
        with self._catalog.read() as connection:
            statements = [select(graph_chunks.c.chunk_id).where(*self._mine(graph_chunks, b)) for b in batched(ids)]
            return {chunk_id for statement in statements for chunk_id in connection.execute(statement).scalars()}

    def _all_ids(self) -> set[str]:
        if not self._ready:
            return set()
        with self._catalog.read() as connection:
            return set(connection.execute(select(graph_chunks.c.chunk_id).where(*self._mine(graph_chunks))).scalars())

    def _delete(self, ids: Sequence[str]) -> int:
        if not self._ready or not ids:
            return 0
        with self._write() as connection:
            removed = self._remove(connection, list(dict.fromkeys(ids)))
            self._note(connection, removed)
        return removed.chunks

    def _clear(self) -> None:
        with self._write() as connection:
            for table in TABLES:
                connection.execute(delete(table).where(*self._mine(table)))
            note_growth(connection, self._collection, 0)

    def _count(self) -> int:
        if not self._ready:
            return 0
        with self._catalog.read() as connection:
            return count_chunks(connection, self._collection)

    def _stats(self) -> Stats:
        if not self._ready:
            return {"documents": 0, "entities": 0, "edges": 0, "entities_per_source": {}}
        whole = [*self._mine(graph_mentions), graph_mentions.c.part.is_(False)]
        entities = func.count(distinct(graph_mentions.c.entity))
        per_source = (
            select(graph_chunks.c.doc_id, entities.label("entities"))
            .outerjoin_from(graph_chunks, graph_mentions, _SAME_CHUNK & graph_mentions.c.part.is_(False))
            .where(*self._mine(graph_chunks))
            .group_by(graph_chunks.c.doc_id)
        )
        with self._catalog.read() as connection:
            found, edges = connection.execute(select(entities, func.count()).where(*whole)).one()
            sources = {row.doc_id: row.entities for row in connection.execute(per_source)}
        return {"documents": len(sources), "entities": found, "edges": edges, "entities_per_source": sources}

    def _search(self, text: str, k: int, where: Where | None) -> list[Hit]:
        places = candidate_names(text)
        if not self._ready or not places or k < 1:
            return []
        with self._catalog.read() as connection:
            reader = Reader(connection, self._collection, where, self._counted)
            known = reader.degrees(list(places))
            seeds = longest(places, known.keys())
            if not seeds:
                return []
            around = fetch(reader, {seed: known[seed][0] for seed in seeds}, self._size(connection), k)
        shares = walk(around.mentions, around.seeds, around.rarities)
        scores = {chunk_id: share + (chunk_id in around.direct) for chunk_id, share in shares.items()}
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
        return [Hit(chunk_id, score, rank) for rank, (chunk_id, score) in enumerate(best)]

    def _made(self, connection: Connection) -> tuple[bool, bool, bool]:
        made = {table: have_table(connection, table) for table in (graph_mentions, graph_sizes, graph_entities)}
        return made[graph_mentions], made[graph_sizes], all(made.values()) and are_counted(connection, self._collection)

    def _size(self, connection: Connection) -> int:
        noted = known_size(connection, self._collection) if self._sized else None
        return count_chunks(connection, self._collection) if noted is None else noted
