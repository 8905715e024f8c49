"""New versions of sources enter the catalog: whole, unseen, and owed to every index.

Everything about a put that is done in bulk: a batch of sources costs a few statements, not a few for each.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import DataError, DBAPIError, StatementError

from leadline.drafts import ChunkDraft, Layout, SourceDraft
from leadline.stores.catalog import Catalog, batched, upsert
from leadline.stores.catalog_outbox import owe_delete, owe_upsert, owe_upsert_no_more
from leadline.stores.catalog_schema import PENDING, chunks, layouts, memberships, sources, versions
from leadline.stores.catalog_versions import chunk_ids, retire

Row = dict[str, Any]


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


class _Refused(Exception):
    """The database doesn't take a value. Says why."""


def add_pending(
    catalog: Catalog, collection: str, news: Sequence[NewVersion], legs: Collection[str], status: str = PENDING
) -> tuple[dict[str, Added], dict[str, str]]:
    """Stores versions nobody sees yet, all but their text, and owes them to every leg.

    By doc_id: what was added, why another wasn't.

    `news` are of different sources and have chunks. A pending version left by an interrupted put of the same source
    gives way to the new one.
    """
    taken = _taken_elsewhere(catalog, collection, news)
    free = [new for new in news if new.doc_id not in taken]
    try:
        return _add_together(catalog, collection, free, legs, status), taken
    except _Refused as error:
        if len(free) == 1:
            return {}, taken | {free[0].doc_id: f"The catalog refuses {free[0].draft.file_name}: {error}."}
    added: dict[str, Added] = {}
    for new in free:
        one, refused = add_pending(catalog, collection, [new], legs, status)
        added |= one
        taken |= refused
    return added, taken


def _taken_elsewhere(catalog: Catalog, collection: str, news: Sequence[NewVersion]) -> dict[str, str]:
    names = {new.doc_id: new.draft.file_name for new in news}
    taken: dict[str, str] = {}
    with catalog.read() as connection:
        for batch in batched(list(names)):
            query = select(sources.c.doc_id, sources.c.collection)
            query = query.where(sources.c.doc_id.in_(batch), sources.c.collection != collection)
            for row in connection.execute(query):
                taken[row.doc_id] = (
                    f"The id {row.doc_id} of {names[row.doc_id]} is already used in the collection {row.collection}."
                    " Give it another id, or none."
                )
    return taken


def _add_together(
    catalog: Catalog, collection: str, news: Sequence[NewVersion], legs: Collection[str], status: str
) -> dict[str, Added]:
    if not news:
        return {}
    with catalog.write() as connection, _refusals():
        _write_sources(connection, collection, news)
        _give_way(connection, collection, news, legs)
        had = _chunks_of_sources(connection, news)
        ids = _insert_versions(connection, news, status)
        connection.execute(upsert(connection, chunks), [_chunk_row(new, c) for new in news for c in new.chunks])
        places = [_place_row(ids[new.doc_id], index, c) for new in news for index, c in enumerate(new.chunks)]
        connection.execute(insert(memberships), places)
        _insert_layouts(connection, news, ids)
        owe_upsert(connection, collection, legs, list(ids.values()))
    return {new.doc_id: Added(ids[new.doc_id], sum(chunk.chunk_id not in had for chunk in new.chunks)) for new in news}


@contextmanager
def _refusals() -> Iterator[None]:
    """Values the database doesn't take, told from its other errors."""
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error, DataError):
            raise
        raise _Refused(str(error.orig).partition("\n")[0]) from error
    except StatementError as error:  # refused before it came to the database
        raise _Refused(str(error.orig)) from error


def _write_sources(connection: Connection, collection: str, news: Sequence[NewVersion]) -> None:
    common = {"collection": collection, "live_version": None, "created": time.time()}
    rows = [{"doc_id": new.doc_id, "uri": new.draft.uri, "root": new.root, **common} for new in news]
    connection.execute(upsert(connection, sources, keep=True), rows)
    # A source that was there keeps its live version and its age.
    moved = [{"key": new.doc_id, "to_uri": new.draft.uri, "to_root": new.root} for new in news]
    statement = update(sources).where(sources.c.doc_id == bindparam("key"))
    connection.execute(statement.values(uri=bindparam("to_uri"), root=bindparam("to_root")), moved)


def _give_way(connection: Connection, collection: str, news: Sequence[NewVersion], legs: Collection[str]) -> None:
    for batch in batched([new.doc_id for new in news]):
        query = select(versions.c.id).where(versions.c.doc_id.in_(batch), versions.c.status == PENDING)
        interrupted = list(connection.execute(query).scalars())
        for version in interrupted:
            # Those that are still used are kept when this is applied.
            owe_delete(connection, collection, legs, sorted(chunk_ids(connection, version)))
        owe_upsert_no_more(connection, interrupted)
        retire(connection, interrupted)


def _chunks_of_sources(connection: Connection, news: Sequence[NewVersion]) -> set[str]:
    found: set[str] = set()
    for batch in batched([new.doc_id for new in news]):
        query = select(chunks.c.chunk_id).where(chunks.c.doc_id.in_(batch))
        found.update(connection.execute(query).scalars())
    return found


def _insert_versions(connection: Connection, news: Sequence[NewVersion], status: str) -> dict[str, int]:
    """doc_id → the id of its new version."""
    statement = insert(versions).returning(versions.c.doc_id, versions.c.id)
    return {row.doc_id: row.id for row in connection.execute(statement, [_version_row(new, status) for new in news])}


def _insert_layouts(connection: Connection, news: Sequence[NewVersion], ids: Mapping[str, int]) -> None:
    layouts_of = {ids[new.doc_id]: new.draft.layout for new in news if new.draft.layout is not None}
    if layouts_of:
        connection.execute(insert(layouts), [_layout_row(version, layout) for version, layout in layouts_of.items()])


def _layout_row(version: int, layout: Layout) -> Row:
    return {"version": version, "layout": {"gaps": layout.gaps, "blocks": layout.blocks, "notes": layout.notes}}


def _version_row(new: NewVersion, status: str) -> Row:
    draft = new.draft
    return {
        "doc_id": new.doc_id,
        "file_name": draft.file_name,
        "file_hash": draft.file_hash,
        "source_type": draft.source_type,
        "status": status,
        "fingerprint": new.fingerprint,
        "metadata": dict(draft.metadata),
        "notes": list(draft.notes),
        "chunks": len(new.chunks),
        "created": time.time(),
    }


def _chunk_row(new: NewVersion, chunk: PlacedChunk) -> Row:
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": new.doc_id,
        "prefix": chunk.draft.prefix,
        "content_hash": chunk.content_hash,
    }


def _place_row(version: int, index: int, chunk: PlacedChunk) -> Row:
    return {
        "version": version,
        "chunk_index": index,
        "chunk_id": chunk.chunk_id,
        "page": chunk.draft.page,
        "start_char": chunk.draft.start_char,
        "end_char": chunk.draft.end_char,
        "headings": list(chunk.draft.headings),
    }
