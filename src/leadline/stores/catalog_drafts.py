"""Stored sources read back as the drafts they were put in as, to be cut or indexed anew."""

from sqlalchemy import select

from leadline.drafts import ChunkDraft, Layout, SourceDraft
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_schema import chunks, layouts, memberships, sources, versions


def live_versions_of(catalog: Catalog, collection: str) -> dict[str, int]:
    """doc_id → live version, of all sources of a collection, oldest first."""
    query = select(sources.c.doc_id, sources.c.live_version).where(
        sources.c.collection == collection, sources.c.live_version.is_not(None)
    )
    with catalog.read() as connection:
        return {row.doc_id: row.live_version for row in connection.execute(query.order_by(sources.c.created))}


def read_draft(catalog: Catalog, version: int) -> tuple[SourceDraft, str, list[str]]:
    """The draft of a version, the folder its source came from, and the ids of its chunks.

    The chunks are without their text: that is in the content store, under their ids.
    """
    with catalog.read() as connection:
        row = connection.execute(
            select(versions, sources.c.uri, sources.c.root, layouts.c.layout)
            .join(sources, sources.c.doc_id == versions.c.doc_id)
            .outerjoin(layouts, layouts.c.version == versions.c.id)
            .where(versions.c.id == version)
        ).one()
        places = connection.execute(
            select(memberships, chunks.c.prefix)
            .join(chunks, chunks.c.chunk_id == memberships.c.chunk_id)
            .where(memberships.c.version == version)
            .order_by(memberships.c.chunk_index)
        ).all()
    drafts = (
        ChunkDraft("", place.start_char, place.end_char, place.prefix, place.page, tuple(place.headings))
        for place in places
    )
    draft = SourceDraft(
        uri=row.uri,
        file_name=row.file_name,
        file_hash=row.file_hash,
        chunks=tuple(drafts),
        source_type=row.source_type,
        doc_id=row.doc_id,
        metadata=row.metadata,
        notes=tuple(row.notes),
        layout=None if row.layout is None else _layout(row.layout),
    )
    return draft, row.root, [place.chunk_id for place in places]


def _layout(stored: dict[str, list[list[object]]]) -> Layout:
    blocks = tuple((*block[:3], tuple(block[3]), *block[4:]) for block in stored["blocks"])  # type: ignore[arg-type]  # JSON has lists for tuples
    return Layout(tuple(stored["gaps"]), blocks, tuple(stored["notes"]))  # type: ignore[arg-type]  # as it was written
