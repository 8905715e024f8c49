"""Versions of sources in the catalog: added as pending, published, abandoned, retired, swept.

Each function is one transaction that leaves the catalog and the outbox agreeing, whatever happens next. Knows nothing
of the indexes but the names of the legs that are owed a change.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, insert, select, update
from sqlalchemy.exc import DataError, IntegrityError

from leadline.drafts import ChunkDraft, SourceDraft
from leadline.errors import StoreError
from leadline.stores.catalog import Catalog, batched, upsert
from leadline.stores.catalog_collections import raise_generation
from leadline.stores.catalog_outbox import owe_delete, owe_upsert, owe_upsert_no_more
from leadline.stores.catalog_schema import chunks, memberships, sources, vectors, versions


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk with the ids it is stored under."""

    chunk_id: str
    content_hash: str
    draft: ChunkDraft


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A source as it is to be stored. `fingerprint` is equal when all of it is equal."""

    doc_id: str
    fingerprint: str
    draft: SourceDraft
    chunks: tuple[PlacedChunk, ...]
    root: str = ""


@dataclass(frozen=True, slots=True)
class Added:
    """A pending version, and how many of its chunks the source did not have before."""

    version: int
    new_chunks: int


def add_pending(
    catalog: Catalog, collection: str, news: Sequence[NewVersion], legs: Collection[str]
) -> tuple[dict[str, Added], dict[str, str]]:
    """Stores versions nobody sees yet, and owes them to every leg. By doc_id: what was added, why another wasn't.

    One commit for all, and yet each source whole or not at all. A pending version left by an interrupted put of the
    same source gives way to the new one.
    """
    added: dict[str, Added] = {}
    errors: dict[str, str] = {}
    with catalog.write() as connection:
        for new in news:
            try:
                with connection.begin_nested():
                    added[new.doc_id] = _add(connection, collection, new, legs)
            except (StoreError, IntegrityError, DataError) as error:  # of this source; others break the whole put
                errors[new.doc_id] = str(error)
    return added, errors


def _add(connection: Connection, collection: str, new: NewVersion, legs: Collection[str]) -> Added:
    _ensure_source(connection, collection, new)
    _give_way(connection, collection, new.doc_id, legs)
    had = set(connection.execute(select(chunks.c.chunk_id).where(chunks.c.doc_id == new.doc_id)).scalars())
    version = _insert_version(connection, new)
    connection.execute(upsert(connection, chunks), [_chunk_row(new.doc_id, chunk) for chunk in new.chunks])
    places = [_place_row(version, index, chunk) for index, chunk in enumerate(new.chunks)]
    connection.execute(insert(memberships), places)
    for leg in legs:
        owe_upsert(connection, collection, leg, version)
    return Added(version, sum(chunk.chunk_id not in had for chunk in new.chunks))


def set_roots(catalog: Catalog, roots: Mapping[str, str]) -> None:
    """doc_id → the folder its source is found in by now."""
    with catalog.write() as connection:
        for doc_id, root in roots.items():
            connection.execute(update(sources).where(sources.c.doc_id == doc_id).values(root=root))


def publish(catalog: Catalog, collection: str, ready: Sequence[int], legs: Collection[str]) -> None:
    """Makes pending versions the live ones, all at once; what only their predecessors had is owed to be deleted."""
    with catalog.write() as connection:
        for version in ready:
            doc_id, former = _source_of(connection, version)
            owe_upsert_no_more(connection, version)
            connection.execute(update(versions).where(versions.c.id == version).values(status="ready"))
            connection.execute(update(sources).where(sources.c.doc_id == doc_id).values(live_version=version))
            if former is not None:
                owe_upsert_no_more(connection, former)
                _retire(connection, [former])
                gone = _chunk_ids(connection, former) - _chunk_ids(connection, version)
                owe_delete(connection, collection, legs, sorted(gone))
        raise_generation(connection, collection)


def abandon(catalog: Catalog, collection: str, version: int, legs: Collection[str]) -> None:
    """Gives up a pending version: what it brought is owed to be deleted, what it changed to be put back."""
    with catalog.write() as connection:
        _, live = _source_of(connection, version)
        owe_upsert_no_more(connection, version)
        _retire(connection, [version])
        kept = set() if live is None else _chunk_ids(connection, live)
        owe_delete(connection, collection, legs, sorted(_chunk_ids(connection, version) - kept))
        if live is not None:
            for leg in legs:
                owe_upsert(connection, collection, leg, live)


def retire_sources(catalog: Catalog, collection: str, doc_ids: Sequence[str], legs: Collection[str]) -> list[str]:
    """Makes sources invisible at once and owes their chunks to be deleted. Returns the chunk ids."""
    with catalog.write() as connection:
        gone: set[str] = set()
        for doc_id in doc_ids:
            of_source = select(versions.c.id).where(versions.c.doc_id == doc_id)
            ids = list(connection.execute(of_source).scalars())
            for version in ids:
                gone |= _chunk_ids(connection, version)
                owe_upsert_no_more(connection, version)
            _retire(connection, ids)
            connection.execute(update(sources).where(sources.c.doc_id == doc_id).values(live_version=None))
        owe_delete(connection, collection, legs, sorted(gone))
        raise_generation(connection, collection)
        return sorted(gone)


def retired_sources(catalog: Catalog, collection: str) -> list[str]:
    """The sources that have something to sweep."""
    with catalog.read() as connection:
        query = (
            select(sources.c.doc_id)
            .join(versions)
            .where(sources.c.collection == collection, versions.c.status == "retired")
        )
        return list(connection.execute(query.distinct()).scalars())


def pending_versions(catalog: Catalog, collection: str) -> list[int]:
    """The versions whose chunks aren't in every index yet, oldest first."""
    with catalog.read() as connection:
        query = (
            select(versions.c.id)
            .join(sources)
            .where(sources.c.collection == collection, versions.c.status == "pending")
            .order_by(versions.c.id)
        )
        return list(connection.execute(query).scalars())


def sweep(catalog: Catalog, doc_ids: Sequence[str]) -> None:
    """Removes the rows of retired versions, and the text and vectors that nothing uses any more."""
    with catalog.write() as connection:
        for doc_id in doc_ids:
            _sweep_source(connection, doc_id)
    catalog.forget_deleted()


def _sweep_source(connection: Connection, doc_id: str) -> None:
    retired = select(versions.c.id).where(versions.c.doc_id == doc_id, versions.c.status == "retired")
    connection.execute(delete(memberships).where(memberships.c.version.in_(retired)))
    connection.execute(delete(versions).where(versions.c.doc_id == doc_id, versions.c.status == "retired"))
    unused = (chunks.c.doc_id == doc_id) & ~exists().where(memberships.c.chunk_id == chunks.c.chunk_id)
    hashes = list(connection.execute(select(chunks.c.content_hash).where(unused).distinct()).scalars())
    connection.execute(delete(chunks).where(unused))
    for batch in batched(hashes):
        drop_unused_vectors(connection, batch)
    no_version = ~exists().where(versions.c.doc_id == sources.c.doc_id)
    connection.execute(delete(sources).where(sources.c.doc_id == doc_id, no_version))


def drop_unused_vectors(connection: Connection, hashes: Sequence[str]) -> None:
    """Removes the cached vectors of texts that no chunk has any more."""
    used = exists().where(chunks.c.content_hash == vectors.c.content_hash)
    connection.execute(delete(vectors).where(vectors.c.content_hash.in_(hashes), ~used))


def _ensure_source(connection: Connection, collection: str, new: NewVersion) -> None:
    row = {
        "doc_id": new.doc_id,
        "collection": collection,
        "uri": new.draft.uri,
        "root": new.root,
        "live_version": None,
        "created": time.time(),
    }
    connection.execute(upsert(connection, sources, keep=True), row)
    found = connection.execute(select(sources.c.collection).where(sources.c.doc_id == new.doc_id)).scalar_one()
    if found != collection:
        raise StoreError(
            f"The id {new.doc_id} of {new.draft.file_name} is already used in the collection {found}.",
            hint="Give it another id, or none.",
        )
    connection.execute(update(sources).where(sources.c.doc_id == new.doc_id).values(uri=new.draft.uri, root=new.root))


def _give_way(connection: Connection, collection: str, doc_id: str, legs: Collection[str]) -> None:
    interrupted = select(versions.c.id).where(versions.c.doc_id == doc_id, versions.c.status == "pending")
    ids = list(connection.execute(interrupted).scalars())
    for version in ids:
        owe_upsert_no_more(connection, version)
        # Those that are still used are kept when this is applied.
        owe_delete(connection, collection, legs, sorted(_chunk_ids(connection, version)))
    _retire(connection, ids)


def _insert_version(connection: Connection, new: NewVersion) -> int:
    draft = new.draft
    row = {
        "doc_id": new.doc_id,
        "file_name": draft.file_name,
        "file_hash": draft.file_hash,
        "source_type": draft.source_type,
        "status": "pending",
        "fingerprint": new.fingerprint,
        "metadata": dict(draft.metadata),
        "notes": list(draft.notes),
        "chunks": len(new.chunks),
        "created": time.time(),
    }
    key = connection.execute(insert(versions), row).inserted_primary_key
    assert key is not None
    return int(key[0])


def _chunk_row(doc_id: str, chunk: PlacedChunk) -> dict[str, object]:
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": doc_id,
        "prefix": chunk.draft.prefix,
        "text": chunk.draft.text,
        "content_hash": chunk.content_hash,
    }


def _place_row(version: int, index: int, chunk: PlacedChunk) -> dict[str, object]:
    return {
        "version": version,
        "chunk_index": index,
        "chunk_id": chunk.chunk_id,
        "page": chunk.draft.page,
        "start_char": chunk.draft.start_char,
        "end_char": chunk.draft.end_char,
        "headings": list(chunk.draft.headings),
    }


def _source_of(connection: Connection, version: int) -> tuple[str, int | None]:
    """The source of a version, and the version of it that is live."""
    query = select(sources.c.doc_id, sources.c.live_version).join(versions).where(versions.c.id == version)
    row = connection.execute(query).one()
    return row.doc_id, row.live_version


def _chunk_ids(connection: Connection, version: int) -> set[str]:
    query = select(memberships.c.chunk_id).where(memberships.c.version == version)
    return set(connection.execute(query).scalars())


def _retire(connection: Connection, ids: Sequence[int]) -> None:
    connection.execute(update(versions).where(versions.c.id.in_(ids)).values(status="retired"))
