"""What readers ask of the catalog: the sources of a collection, and the place of live chunks.

Everything goes through the live version: a version that isn't ready, or no longer is, doesn't exist here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, func, or_, select

from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_schema import chunks, memberships, outbox, sources, vectors, versions

MIN_ID_START = 8  # characters: fewer would name a source by accident


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source as it is now.

    `created` is when its live version was put in, in seconds since 1970. `root` marks the folder it came from.
    """

    doc_id: str
    uri: str
    file_name: str
    file_hash: str
    source_type: str
    chunks: int
    metadata: Mapping[str, Any]
    notes: tuple[str, ...]
    created: float
    root: str


@dataclass(frozen=True, slots=True)
class LiveVersion:
    """Which version of a source is live, the fingerprint of what it holds, and the folder it came from."""

    version: int
    fingerprint: str
    root: str


def list_sources(catalog: Catalog, collection: str) -> list[SourceInfo]:
    """All live sources by file name, then URI."""
    query = _source_query(sources.c.collection == collection).order_by(versions.c.file_name, sources.c.uri)
    with catalog.read() as connection:
        return [_source_info(row) for row in connection.execute(query)]


def find_sources(catalog: Catalog, collection: str, wanted: str) -> list[SourceInfo]:
    """The live sources with this id, or else this URI, or else this file name or hash, or else an id that begins so."""
    by = [
        sources.c.doc_id == wanted,
        sources.c.uri == wanted,
        or_(versions.c.file_name == wanted, versions.c.file_hash == wanted),
    ]
    if len(wanted) >= MIN_ID_START:
        by.append(sources.c.doc_id.startswith(wanted, autoescape=True))
    with catalog.read() as connection:
        for condition in by:
            query = _source_query(and_(sources.c.collection == collection, condition)).order_by(sources.c.uri)
            if found := [_source_info(row) for row in connection.execute(query)]:
                return found
    return []


def live_versions(catalog: Catalog, collection: str, doc_ids: Sequence[str]) -> dict[str, LiveVersion]:
    """doc_id → its live version, for those that have one in the collection."""
    found: dict[str, LiveVersion] = {}
    with catalog.read() as connection:
        for batch in batched(doc_ids):
            query = (
                select(sources.c.doc_id, sources.c.root, versions.c.id, versions.c.fingerprint)
                .join(versions, versions.c.id == sources.c.live_version)
                .where(sources.c.doc_id.in_(batch), sources.c.collection == collection)
            )
            found.update({r.doc_id: LiveVersion(r.id, r.fingerprint, r.root) for r in connection.execute(query)})
    return found


def holders_of(catalog: Catalog, collection: str, file_hashes: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """file_hash → (doc_id, file name) of the live sources with that content, oldest first."""
    found: dict[str, list[tuple[str, str]]] = {}
    with catalog.read() as connection:
        for batch in batched(file_hashes):
            for row in connection.execute(_HOLDERS, {"hashes": batch}):
                if row.collection == collection:
                    found.setdefault(row.file_hash, []).append((row.doc_id, row.file_name))
    return found


def live_chunks(catalog: Catalog, collection: str, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """chunk_id → the metadata of a Document but `found_by`, for those that are live.

    One statement for as many ids as fit into one.
    """
    found: dict[str, dict[str, Any]] = {}
    with catalog.read() as connection:
        for batch in batched(chunk_ids):
            rows = connection.execute(_PLACES, {"ids": batch})
            found.update({row.chunk_id: _metadata(row) for row in rows if row.collection == collection})
    return found


def any_known(catalog: Catalog, collection: str, leg: str, chunk_ids: Sequence[str]) -> bool:
    """Whether the catalog can account for any of these chunks: on their way in, or owed to be deleted from the leg."""
    with catalog.read() as connection:
        owed = (outbox.c.collection == collection, outbox.c.leg == leg, outbox.c.op == "delete")
        if connection.execute(select(outbox.c.id).where(*owed).limit(1)).first():
            return True
        return any(
            connection.execute(select(chunks.c.chunk_id).where(chunks.c.chunk_id.in_(batch)).limit(1)).first()
            for batch in batched(chunk_ids)
        )


def content_hashes(catalog: Catalog, chunk_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """chunk_id → what is put before its text, and the hash of both: what the content store's text must give."""
    found: dict[str, tuple[str, str]] = {}
    with catalog.read() as connection:
        for batch in batched(chunk_ids):
            query = select(chunks.c.chunk_id, chunks.c.prefix, chunks.c.content_hash)
            for row in connection.execute(query.where(chunks.c.chunk_id.in_(batch))):
                found[row.chunk_id] = (row.prefix, row.content_hash)
    return found


def expected_ids(catalog: Catalog, collection: str, *, with_vector: str | None = None) -> dict[str, int]:
    """chunk_id → version, of all live chunks: what an index should hold.

    `with_vector` names a model: chunks it gave no usable vector for are left out.
    """
    query = (
        select(memberships.c.chunk_id, memberships.c.version)
        .join(sources, sources.c.live_version == memberships.c.version)
        .where(sources.c.collection == collection)
    )
    if with_vector is not None:
        unusable = and_(vectors.c.model == with_vector, func.length(vectors.c.vector) == 0)
        query = (
            query.join(chunks, chunks.c.chunk_id == memberships.c.chunk_id)
            .outerjoin(vectors, and_(vectors.c.content_hash == chunks.c.content_hash, unusable))
            .where(vectors.c.model.is_(None))
        )
    with catalog.read() as connection:
        return {row.chunk_id: row.version for row in connection.execute(query)}


def count_chunks(catalog: Catalog, collection: str) -> int:
    """How many chunks are live."""
    query = (
        select(func.coalesce(func.sum(versions.c.chunks), 0))
        .join(sources, sources.c.live_version == versions.c.id)
        .where(sources.c.collection == collection)
    )
    with catalog.read() as connection:
        return int(connection.execute(query).scalar_one())


def _source_query(condition: ColumnElement[bool]) -> Select[Any]:
    return (
        select(sources.c.uri, sources.c.root, versions)
        .join(versions, versions.c.id == sources.c.live_version)
        .where(condition)
    )


def _source_info(row: Row[Any]) -> SourceInfo:
    return SourceInfo(
        doc_id=row.doc_id,
        uri=row.uri,
        file_name=row.file_name,
        file_hash=row.file_hash,
        source_type=row.source_type,
        chunks=row.chunks,
        metadata=row.metadata,
        notes=tuple(row.notes),
        created=row.created,
        root=row.root,
    )


# Made once, since putting a statement together takes longer than running it. The collection is looked at afterwards:
# SQLite, told of it, reads all of the collection's sources to find the few that are asked for.
_LIVE = (sources.c.doc_id == versions.c.doc_id) & (sources.c.live_version == versions.c.id)
_HOLDERS: Select[Any] = (
    select(sources.c.collection, versions.c.file_hash, sources.c.doc_id, versions.c.file_name)
    .join_from(versions, sources, _LIVE)
    .where(versions.c.file_hash.in_(bindparam("hashes", expanding=True)))
    .order_by(sources.c.created)
)
_PLACES: Select[Any] = (
    select(
        sources.c.collection,
        memberships.c.chunk_id,
        memberships.c.chunk_index,
        memberships.c.page,
        memberships.c.start_char,
        memberships.c.end_char,
        memberships.c.headings,
        sources.c.doc_id,
        versions.c.file_name,
        versions.c.file_hash,
        versions.c.source_type,
        versions.c.metadata,
        versions.c.chunks.label("total_chunks"),
    )
    .join_from(memberships, versions, versions.c.id == memberships.c.version)
    .join(sources, _LIVE)
    .where(memberships.c.chunk_id.in_(bindparam("ids", expanding=True)))
)


_PLACE = (
    "chunk_id",
    "doc_id",
    "file_name",
    "file_hash",
    "chunk_index",
    "total_chunks",
    "source_type",
    "start_char",
    "end_char",
    "headings",
)


def _metadata(row: Row[Any]) -> dict[str, Any]:
    fields = row._mapping
    # The source's own fields are shown too, and never in place of ours.
    metadata = {**row.metadata, **{name: fields[name] for name in _PLACE}}
    if row.page is not None:
        metadata["page"] = row.page
    return metadata
