"""Versions of sources in the catalog once they are pending: published, abandoned, retired, swept.

Each function is one transaction that leaves the catalog and the outbox agreeing, whatever happens next. Knows nothing
of the indexes but the names of the legs that are owed a change.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, bindparam, delete, exists, select, update

from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_collections import raise_generation
from leadline.stores.catalog_outbox import owe_delete, owe_upsert, owe_upsert_no_more
from leadline.stores.catalog_schema import PENDING, chunks, layouts, memberships, sources, vectors, versions


def set_roots(catalog: Catalog, roots: Mapping[str, str]) -> None:
    """doc_id → the folder its source is found in by now."""
    with catalog.write() as connection:
        for doc_id, root in roots.items():
            connection.execute(update(sources).where(sources.c.doc_id == doc_id).values(root=root))


def publish(catalog: Catalog, collection: str, ready: Sequence[int], legs: Collection[str]) -> None:
    """Makes pending versions the live ones, all at once; what only their predecessors had is owed to be deleted."""
    with catalog.write() as connection:
        make_live(connection, collection, ready, legs)


def make_live(connection: Connection, collection: str, ready: Sequence[int], legs: Collection[str]) -> None:
    """`publish`, inside a write."""
    former = _former_versions(connection, ready)
    live = [{"key": doc_id, "version": version} for version, (doc_id, _) in former.items()]
    owe_upsert_no_more(connection, ready)
    for batch in batched(ready):
        connection.execute(update(versions).where(versions.c.id.in_(batch)).values(status="ready"))
    connection.execute(
        update(sources).where(sources.c.doc_id == bindparam("key")).values(live_version=bindparam("version")), live
    )
    for version, (_, before) in former.items():
        if before is not None:
            owe_upsert_no_more(connection, [before])
            retire(connection, [before])
            gone = chunk_ids(connection, before) - chunk_ids(connection, version)
            owe_delete(connection, collection, legs, sorted(gone))
    raise_generation(connection, collection)


def _former_versions(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[str, int | None]]:
    """Version → its source, and the version of that which is live."""
    former: dict[int, tuple[str, int | None]] = {}
    for batch in batched(ids):
        query = select(versions.c.id, sources.c.doc_id, sources.c.live_version)
        rows = connection.execute(
            query.join(sources, sources.c.doc_id == versions.c.doc_id).where(versions.c.id.in_(batch))
        )
        former.update({row.id: (row.doc_id, row.live_version) for row in rows})
    return former


def abandon(catalog: Catalog, collection: str, version: int, legs: Collection[str]) -> None:
    """Gives up a pending version: what it brought is owed to be deleted, what it changed to be put back."""
    with catalog.write() as connection:
        _, live = _former_versions(connection, [version])[version]
        owe_upsert_no_more(connection, [version])
        retire(connection, [version])
        kept = set() if live is None else chunk_ids(connection, live)
        owe_delete(connection, collection, legs, sorted(chunk_ids(connection, version) - kept))
        if live is not None:
            owe_upsert(connection, collection, legs, [live])


def retire_sources(catalog: Catalog, collection: str, doc_ids: Sequence[str], legs: Collection[str]) -> list[str]:
    """Makes sources invisible at once and owes their chunks to be deleted. Returns the chunk ids."""
    with catalog.write() as connection:
        gone: set[str] = set()
        for doc_id in doc_ids:
            of_source = select(versions.c.id).where(versions.c.doc_id == doc_id)
            ids = list(connection.execute(of_source).scalars())
            for version in ids:
                gone |= chunk_ids(connection, version)
            owe_upsert_no_more(connection, ids)
            retire(connection, ids)
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


def pending_versions(catalog: Catalog, collection: str, status: str = PENDING) -> list[int]:
    """The versions whose chunks aren't in every index yet, oldest first."""
    with catalog.read() as connection:
        query = (
            select(versions.c.id)
            .join(sources)
            .where(sources.c.collection == collection, versions.c.status == status)
            .order_by(versions.c.id)
        )
        return list(connection.execute(query).scalars())


def sweep(catalog: Catalog, doc_ids: Sequence[str]) -> None:
    """Removes the rows of retired versions, and the chunks and vectors that nothing uses any more."""
    with catalog.write() as connection:
        for doc_id in doc_ids:
            _sweep_source(connection, doc_id)
    catalog.forget_deleted()


def _sweep_source(connection: Connection, doc_id: str) -> None:
    retired = select(versions.c.id).where(versions.c.doc_id == doc_id, versions.c.status == "retired")
    connection.execute(delete(memberships).where(memberships.c.version.in_(retired)))
    connection.execute(delete(layouts).where(layouts.c.version.in_(retired)))
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


def chunk_ids(connection: Connection, version: int) -> set[str]:
    """Inside a transaction: the chunks of a version."""
    query = select(memberships.c.chunk_id).where(memberships.c.version == version)
    return set(connection.execute(query).scalars())


def retire(connection: Connection, ids: Sequence[int]) -> None:
    """Inside a write: the versions are to be swept."""
    connection.execute(update(versions).where(versions.c.id.in_(ids)).values(status="retired"))
