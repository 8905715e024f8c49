"""What the catalog knows of sources by whatever name, in every collection and every state: for people who look for one.

Unlike `catalog_sources`, which only knows what is live.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Row, select

from leadline.drafts import FieldValue
from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_outbox import filter_fields
from leadline.stores.catalog_schema import memberships, sources, versions
from leadline.stores.catalog_sources import MIN_ID_START

# What a filter may test of a chunk of any source; beside it there is what a source was given.
OUR_FIELDS = frozenset({"chunk_id", "doc_id", "file_name", "file_hash", "source_type", "chunk_index", "page"})

State = Literal["ready", "not_ready", "being_removed"]


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source of any collection. `not_ready`: it is being put in, or that was interrupted."""

    collection: str
    doc_id: str
    uri: str
    file_name: str
    file_hash: str
    chunks: int
    state: State


@dataclass(frozen=True, slots=True)
class PlacedFields:
    """A live chunk, and what a filter may test of it."""

    chunk_id: str
    chunk_index: int
    page: int | None
    fields: dict[str, FieldValue]


def all_states(catalog: Catalog, doc_ids: Sequence[str] | None = None) -> list[SourceState]:
    """The sources with these ids, or all there are, by collection and URI."""
    query = select(sources.c.collection, sources.c.uri, sources.c.live_version, versions).join(
        versions, versions.c.doc_id == sources.c.doc_id
    )
    with catalog.read() as connection:
        if doc_ids is None:
            rows = connection.execute(query).all()
        else:
            batches = (connection.execute(query.where(sources.c.doc_id.in_(batch))) for batch in batched(doc_ids))
            rows = [row for batch in batches for row in batch]
    newest: dict[str, Row[tuple[object, ...]]] = {}
    for row in rows:
        other = newest.get(row.doc_id)
        if other is None or (other.id != other.live_version and (row.id == row.live_version or row.id > other.id)):
            newest[row.doc_id] = row
    return sorted(map(_state, newest.values()), key=lambda s: (s.collection, s.uri))


def named(states: Iterable[SourceState], wanted: str) -> list[SourceState]:
    """Those that `wanted` names: by id, else URI, else file name or hash, else how the id begins (8 characters or
    more), else the name in another spelling, else a part of name or URI."""
    states, folded = list(states), _folded(wanted)
    tests: list[Callable[[SourceState], bool]] = [
        lambda s: s.doc_id == wanted,
        lambda s: s.uri == wanted,
        lambda s: wanted in (s.file_name, s.file_hash),
        lambda s: len(wanted) >= MIN_ID_START and s.doc_id.startswith(wanted),
        lambda s: folded in (_folded(s.file_name), _folded(s.uri)),
        lambda s: folded in _folded(s.file_name) or folded in _folded(s.uri),
    ]
    if not folded:
        return []
    return next((found for test in tests if (found := [state for state in states if test(state)])), [])


def chunks_of(catalog: Catalog, doc_id: str) -> list[PlacedFields]:
    """The live chunks of a source, in their order."""
    query = (
        select(memberships.c.chunk_id, memberships.c.chunk_index, memberships.c.page, versions)
        .join(sources, sources.c.live_version == memberships.c.version)
        .join(versions, versions.c.id == memberships.c.version)
        .where(sources.c.doc_id == doc_id)
        .order_by(memberships.c.chunk_index)
    )
    with catalog.read() as connection:
        return [
            PlacedFields(row.chunk_id, row.chunk_index, row.page, {**filter_fields(row), "chunk_id": row.chunk_id})
            for row in connection.execute(query)
        ]


def fields_nobody_has(catalog: Catalog, collection: str, wanted: Iterable[str]) -> tuple[set[str], set[str]]:
    """Those of the fields that no live source of the collection has, and then all that there are beside ours.

    None where it has no source. Reads sources until each field was seen, which is the first where all have the same.
    """
    missing = set(wanted) - OUR_FIELDS
    there: set[str] = set()
    if not missing:
        return missing, there
    query = (
        select(versions.c.metadata)
        .join(sources, sources.c.live_version == versions.c.id)
        .where(sources.c.collection == collection)
    )
    seen = False
    with catalog.read() as connection:
        for (metadata,) in connection.execute(query):
            seen = True
            there.update(metadata)
            if missing <= there:
                return set(), there
    return (missing - there if seen else set()), there


def _state(row: Row[tuple[object, ...]]) -> SourceState:
    if row.id == row.live_version:
        state: State = "ready"
    else:
        state = "being_removed" if row.status == "retired" else "not_ready"
    return SourceState(
        collection=row.collection,
        doc_id=row.doc_id,
        uri=row.uri,
        file_name=row.file_name,
        file_hash=row.file_hash,
        chunks=row.chunks,
        state=state,
    )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().strip()
