"""Documents and passages as a reader leafs through them: pages of a document, one passage with its neighbours, counts.

Only what is live. Ids are unique in a catalog, so nothing here needs a collection: it is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, func, select

from leadline.stores.catalog import Catalog
from leadline.stores.catalog_schema import memberships, sources, versions


@dataclass(frozen=True, slots=True)
class Place:
    """A live chunk and where it is. `previous` and `next` are the chunks beside it in its document."""

    chunk_id: str
    doc_id: str
    collection: str
    file_name: str
    source_type: str
    url: str | None
    index: int
    page: int | None
    start_char: int
    end_char: int
    headings: tuple[str, ...]
    previous: str | None = None
    next: str | None = None


def find_place(catalog: Catalog, chunk_id: str) -> Place | None:
    """The live chunk with this id, in whatever collection."""
    with catalog.read() as connection:
        row = connection.execute(_PLACES.where(memberships.c.chunk_id == chunk_id)).first()
        if row is None:
            return None
        beside = select(memberships.c.chunk_index, memberships.c.chunk_id).where(
            memberships.c.version == row.version,
            memberships.c.chunk_index.in_((row.chunk_index - 1, row.chunk_index + 1)),
        )
        near = {each.chunk_index: each.chunk_id for each in connection.execute(beside)}
    return _place(row, near.get(row.chunk_index - 1), near.get(row.chunk_index + 1))


def page_of_document(catalog: Catalog, doc_id: str, offset: int, limit: int) -> tuple[list[Place], int]:
    """Live chunks of a document, in their order, and how many there are."""
    query = _PLACES.where(sources.c.doc_id == doc_id).order_by(memberships.c.chunk_index)
    total = select(func.count()).select_from(memberships).join(sources, sources.c.live_version == memberships.c.version)
    with catalog.read() as connection:
        rows = connection.execute(query.offset(offset).limit(limit)).all()
        return [_place(row) for row in rows], int(
            connection.execute(total.where(sources.c.doc_id == doc_id)).scalar_one()
        )


def collection_of(catalog: Catalog, doc_id: str) -> str | None:
    """The collection of a live document."""
    query = select(sources.c.collection).where(sources.c.doc_id == doc_id, sources.c.live_version.is_not(None))
    with catalog.read() as connection:
        return connection.execute(query).scalar_one_or_none()


def page_counts(catalog: Catalog, collection: str, doc_ids: Sequence[str] | None = None) -> dict[str, int]:
    """doc_id → the number of its last page with text, of live documents whose format has pages."""
    query = (
        select(sources.c.doc_id, func.max(memberships.c.page))
        .join_from(sources, memberships, memberships.c.version == sources.c.live_version)
        .where(sources.c.collection == collection, memberships.c.page.is_not(None))
        .group_by(sources.c.doc_id)
    )
    if doc_ids is not None:
        query = query.where(sources.c.doc_id.in_(doc_ids))
    with catalog.read() as connection:
        return {doc_id: int(pages) for doc_id, pages in connection.execute(query)}


def collection_counts(catalog: Catalog) -> dict[str, tuple[int, int]]:
    """Collection → how many live documents and chunks it has; without those that have none."""
    query = (
        select(sources.c.collection, func.count(), func.sum(versions.c.chunks))
        .join_from(sources, versions, versions.c.id == sources.c.live_version)
        .group_by(sources.c.collection)
    )
    with catalog.read() as connection:
        return {name: (int(documents), int(chunks)) for name, documents, chunks in connection.execute(query)}


def _place(row: Row[Any], previous: str | None = None, following: str | None = None) -> Place:
    url = row.metadata.get("url")
    return Place(
        chunk_id=row.chunk_id,
        doc_id=row.doc_id,
        collection=row.collection,
        file_name=row.file_name,
        source_type=row.source_type,
        url=url if isinstance(url, str) else None,
        index=row.chunk_index,
        page=row.page,
        start_char=row.start_char,
        end_char=row.end_char,
        headings=tuple(row.headings),
        previous=previous,
        next=following,
    )


_PLACES: Select[Any] = (
    select(
        memberships,
        sources.c.doc_id,
        sources.c.collection,
        versions.c.file_name,
        versions.c.source_type,
        versions.c.metadata,
    )
    .join_from(memberships, sources, sources.c.live_version == memberships.c.version)
    .join(versions, versions.c.id == memberships.c.version)
)
