"""The outbox: changes that an index or the content store is owed because the catalog has them already.

A row is written in the transaction that makes it necessary and removed when the index has followed. Applying one
twice does no harm. Also reads what an index is to be given: records of versions, page by page, all but their text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Row, Select, and_, delete, insert, select

from leadline.drafts import FieldValue, embedded_text
from leadline.stores.base import ChunkRecord
from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_schema import chunks, memberships, outbox, vectors, versions

CONTENT: Final = "content"  # the leg that a change of the content store is owed under


@dataclass(frozen=True, slots=True)
class Owed:
    """One change a leg is owed: the chunks of a version to have, or chunks to have no more."""

    id: int
    leg: str
    version: int | None
    chunk_ids: tuple[str, ...]


def owe_upsert(connection: Connection, collection: str, legs: Collection[str], ids: Sequence[int]) -> None:
    """Inside a write: the legs are to have all chunks of the versions."""
    rows = [{"collection": collection, "leg": leg, "op": "upsert", "version": v} for v in ids for leg in legs]
    if rows:
        connection.execute(insert(outbox), rows)


def owe_upsert_no_more(connection: Connection, ids: Sequence[int]) -> None:
    """Inside a write: no leg is to have the versions any more, or all have them."""
    for batch in batched(ids):
        connection.execute(delete(outbox).where(outbox.c.version.in_(batch)))


def owe_delete(connection: Connection, collection: str, legs: Collection[str], chunk_ids: Sequence[str]) -> None:
    """Inside a write: the legs, and after them the content store, are to lose these chunks."""
    _owe_delete(connection, collection, [*legs, CONTENT], chunk_ids)


def _owe_delete(connection: Connection, collection: str, legs: Collection[str], chunk_ids: Sequence[str]) -> None:
    if chunk_ids:
        rows = [{"collection": collection, "leg": leg, "op": "delete", "chunk_ids": list(chunk_ids)} for leg in legs]
        connection.execute(insert(outbox), rows)


def read_owed(catalog: Catalog, collection: str) -> list[Owed]:
    """All that the indexes of the collection are owed, oldest first."""
    with catalog.read() as connection:
        rows = connection.execute(select(outbox).where(outbox.c.collection == collection).order_by(outbox.c.id)).all()
    return [Owed(row.id, row.leg, row.version, tuple(row.chunk_ids or ())) for row in rows]


def settle(catalog: Catalog, owed_ids: Sequence[int]) -> None:
    """The indexes have followed these rows."""
    with catalog.write() as connection:
        for batch in batched(owed_ids):
            connection.execute(delete(outbox).where(outbox.c.id.in_(batch)))


def owe_versions(catalog: Catalog, collection: str, owed: Mapping[str, Collection[int]]) -> None:
    """Leg → versions whose chunks it is to have (again)."""
    with catalog.write() as connection:
        for leg, ids in owed.items():
            owe_upsert(connection, collection, [leg], list(ids))


def owe_removal(catalog: Catalog, collection: str, leg: str, chunk_ids: Sequence[str]) -> None:
    """The leg is to lose chunks that no version has."""
    with catalog.write() as connection:
        _owe_delete(connection, collection, [leg], chunk_ids)


def unused_ids(catalog: Catalog, chunk_ids: Sequence[str]) -> list[str]:
    """Those of `chunk_ids` that no live or pending version has: an index may lose them."""
    used: set[str] = set()
    with catalog.read() as connection:
        for batch in batched(chunk_ids):
            query = (
                select(memberships.c.chunk_id)
                .join(versions)
                .where(memberships.c.chunk_id.in_(batch), versions.c.status != "retired")
            )
            used.update(connection.execute(query).scalars())
    return [chunk_id for chunk_id in chunk_ids if chunk_id not in used]


def version_sizes(catalog: Catalog, ids: Sequence[int]) -> dict[int, int]:
    """Version → how many chunks it has; versions that are gone are left out."""
    sizes: dict[int, int] = {}
    with catalog.read() as connection:
        for batch in batched(ids):
            rows = connection.execute(select(versions.c.id, versions.c.chunks).where(versions.c.id.in_(batch)))
            sizes.update({row.id: row.chunks for row in rows})
    return sizes


@dataclass(frozen=True, slots=True)
class Part:
    """The chunks `start` to `stop` of a version that has `size`."""

    version: int
    start: int
    stop: int
    size: int

    @property
    def whole(self) -> bool:
        """All chunks of the version."""
        return self.stop - self.start == self.size


@dataclass(frozen=True, slots=True)
class BareRecord:
    """What an index is given for a chunk, without the text; `prefix` is what is put before that."""

    bare: ChunkRecord
    prefix: str

    @property
    def chunk_id(self) -> str:
        """The chunk's id."""
        return self.bare.chunk_id

    def with_text(self, text: str) -> ChunkRecord:
        """The whole record."""
        return replace(self.bare, text=embedded_text(self.prefix, text))


def read_records(catalog: Catalog, model: str, parts: Sequence[Part]) -> dict[int, list[BareRecord]]:
    """Version → its chunks in `parts`, in order. `vectors` is empty where the cache has none of `model`."""
    found: dict[int, list[BareRecord]] = {part.version: [] for part in parts}
    with catalog.read() as connection:
        for batch in batched([part.version for part in parts if part.whole]):
            for row in connection.execute(_record_query(model).where(memberships.c.version.in_(batch))):
                found[row.version].append(_record(row))
        for part in parts:
            if not part.whole:
                within = memberships.c.chunk_index.between(part.start, part.stop - 1)
                rows = connection.execute(_record_query(model).where(memberships.c.version == part.version, within))
                found[part.version].extend(map(_record, rows))
    return found


def _record_query(model: str) -> Select[Any]:
    return (
        select(
            memberships.c.version,
            memberships.c.chunk_id,
            memberships.c.chunk_index,
            memberships.c.page,
            chunks.c.prefix,
            versions.c.doc_id,
            versions.c.file_name,
            versions.c.file_hash,
            versions.c.source_type,
            versions.c.metadata,
            vectors.c.vector,
        )
        .join(chunks, chunks.c.chunk_id == memberships.c.chunk_id)
        .join(versions, versions.c.id == memberships.c.version)
        .outerjoin(vectors, and_(vectors.c.content_hash == chunks.c.content_hash, vectors.c.model == model))
        .order_by(memberships.c.version, memberships.c.chunk_index)
    )


def _record(row: Row[Any]) -> BareRecord:
    found = () if not row.vector else (np.frombuffer(row.vector, dtype="<f4").astype(np.float32),)
    return BareRecord(ChunkRecord(row.chunk_id, row.doc_id, "", found, filter_fields(row)), row.prefix)


def filter_fields(row: Row[Any]) -> dict[str, FieldValue]:
    """What a `where` may test: the source's own fields, and ours, which win."""
    fields: dict[str, FieldValue] = {
        **row.metadata,
        "doc_id": row.doc_id,
        "file_name": row.file_name,
        "file_hash": row.file_hash,
        "source_type": row.source_type,
        "chunk_index": row.chunk_index,
    }
    if row.page is not None:
        fields["page"] = row.page
    return fields
