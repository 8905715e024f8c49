"""Documents as people see them: what is live, what is still being taken in, what could not be.

Joins the catalog's live sources with what became of uploads. Reads the catalog and the content store; opens no index.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from leadline.drafts import WebPassage
from leadline.errors import StoreError
from leadline.knowledge.base import KnowledgeBase
from leadline.knowledge.library import Library
from leadline.knowledge.opening import open_content
from leadline.knowledge.reports import DeleteReport
from leadline.stores import uploads
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import collection_names
from leadline.stores.catalog_job_rows import ACTIVE, LatestUpload, active_collections, being_indexed, latest_uploads
from leadline.stores.catalog_jobs import forget_uploads
from leadline.stores.catalog_passages import (
    Place,
    collection_counts,
    collection_of,
    find_place,
    page_counts,
    page_of_document,
)
from leadline.stores.catalog_sources import SourceInfo, find_sources, list_sources
from leadline.stores.catalog_web import find_web_passages

DocumentStatus = Literal["ready", "indexing", "failed"]


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document of a collection. `indexing`: its newest upload is not in yet; an older version may be live meanwhile.

    `error` says why the newest upload could not be taken in, also where an older version is live. `bytes` are known
    where the file was uploaded and is kept (`has_file`).
    """

    doc_id: str
    collection: str
    file_name: str
    uri: str
    status: DocumentStatus
    chunks: int
    added: float
    file_hash: str
    pages: int | None = None
    bytes: int | None = None
    notes: tuple[str, ...] = ()
    has_file: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection, and how much is live in it."""

    name: str
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A live chunk with its text; None where that is missing from the content store."""

    place: Place
    text: str | None


async def list_collections(library: Library) -> list[CollectionView]:
    """All of them, by name; also those that something is only being taken into."""
    counts = await asyncio.to_thread(collection_counts, library.catalog)
    names = {*await library.collections(), *await asyncio.to_thread(active_collections, library.catalog)}
    return [CollectionView(name, *counts.get(name, (0, 0))) for name in sorted(names)]


async def knows_collection(library: Library, name: str) -> bool:
    """Whether there is a collection of this name, or something is being taken into it."""
    return name in await library.collections() or name in await asyncio.to_thread(active_collections, library.catalog)


async def list_documents(library: Library, collection: str) -> list[DocumentView]:
    """The documents of a collection by name: live ones, those being taken in, and those that could not be."""
    return await asyncio.to_thread(_list_documents, library.catalog, collection)


async def find_document_by_id(library: Library, doc_id: str) -> DocumentView | None:
    """The document with exactly this id, in whatever collection and state."""
    return await asyncio.to_thread(_find_document, library.catalog, doc_id)


async def read_passages(library: Library, doc_id: str, offset: int, limit: int) -> tuple[list[Passage], int]:
    """The live passages of a document from `offset` on, with their texts, and how many it has. Raises StoreError."""
    places, total = await asyncio.to_thread(page_of_document, library.catalog, doc_id, offset, limit)
    if not places:
        return [], total
    texts = await _texts(library, places[0].collection, [place.chunk_id for place in places])
    return [Passage(place, texts.get(place.chunk_id)) for place in places], total


async def find_passage(library: Library, chunk_id: str) -> Passage | None:
    """The live passage with this id, in whatever collection. Raises StoreError."""
    place = await asyncio.to_thread(find_place, library.catalog, chunk_id)
    if place is None:
        return None
    texts = await _texts(library, place.collection, [chunk_id])
    return Passage(place, texts.get(chunk_id))


async def find_web_passage(library: Library, chunk_id: str) -> WebPassage | None:
    """The passage of the web with this id, while it is kept."""
    return (await asyncio.to_thread(find_web_passages, library.catalog, [chunk_id])).get(chunk_id)


async def kept_file(library: Library, file_hash: str) -> Path | None:
    """Where the bytes of an uploaded file are, if they are kept."""
    size = await asyncio.to_thread(uploads.size_of, library.catalog, file_hash)
    return None if size is None else uploads.path_of(library.catalog, file_hash)


async def still_being_indexed(library: Library, collection: str) -> list[str]:
    """The names of the files of the collection that are not in yet."""
    return await asyncio.to_thread(being_indexed, library.catalog, collection)


async def remove_document(library: Library, document: DocumentView) -> DeleteReport:
    """Removes a document in whatever state: one that waits is not taken in, one that is being taken in is removed as
    soon as it is in, one that failed is shown no more. Its uploaded bytes go with the last document that has them.
    Raises StoreError."""
    uploaded = await library.turns.take(partial(forget_uploads, library.catalog, document.doc_id))
    await library.turns.take(partial(uploads.drop_unused, library.catalog, uploaded))
    nothing = DeleteReport((document.doc_id,), (document.file_name,), 0, {}, {})
    if await asyncio.to_thread(collection_of, library.catalog, document.doc_id) is None:
        return nothing
    return await take_out(await library.collection(document.collection), document.doc_id) or nothing


async def take_out(base: KnowledgeBase, doc_id: str) -> DeleteReport | None:
    """Removes a live document; None where it is gone already, by somebody else's doing at the same moment too."""
    if any(source.doc_id == doc_id for source in await base.find_sources(doc_id)):
        try:
            return await base.delete(doc_id)
        except StoreError:
            if any(source.doc_id == doc_id for source in await base.find_sources(doc_id)):
                raise
    return None


async def _texts(library: Library, collection: str, chunk_ids: Sequence[str]) -> dict[str, str]:
    async with open_content(collection, library.settings, library.catalog) as content:
        return await content.fetch(chunk_ids)


def _list_documents(catalog: Catalog, collection: str) -> list[DocumentView]:
    if collection in collection_names(catalog):
        live = {source.doc_id: source for source in list_sources(catalog, collection)}
        pages = page_counts(catalog, collection)
    else:
        live, pages = {}, {}
    latest = latest_uploads(catalog, collection)
    views = [_live(catalog, collection, source, pages, latest.get(doc_id)) for doc_id, source in live.items()]
    views += [_not_live(catalog, upload) for doc_id, upload in latest.items() if doc_id not in live and _shown(upload)]
    return sorted(views, key=lambda view: (view.file_name, view.uri))


def _find_document(catalog: Catalog, doc_id: str) -> DocumentView | None:
    upload = latest_uploads(catalog, doc_ids=[doc_id]).get(doc_id)
    collection = collection_of(catalog, doc_id)
    if collection is not None:
        found = [source for source in find_sources(catalog, collection, doc_id) if source.doc_id == doc_id]
        pages = page_counts(catalog, collection, [doc_id])
        if found:
            return _live(catalog, collection, found[0], pages, upload)
    return _not_live(catalog, upload) if upload is not None and _shown(upload) else None


def _live(
    catalog: Catalog, collection: str, source: SourceInfo, pages: dict[str, int], upload: LatestUpload | None
) -> DocumentView:
    size = uploads.size_of(catalog, source.file_hash)
    view = DocumentView(
        doc_id=source.doc_id,
        collection=collection,
        file_name=source.file_name,
        uri=source.uri,
        status="ready",
        chunks=source.chunks,
        added=source.created,
        file_hash=source.file_hash,
        pages=pages.get(source.doc_id),
        bytes=size,
        notes=source.notes,
        has_file=size is not None,
    )
    if upload is not None and upload.item.status in ACTIVE:
        return replace(view, status="indexing")
    # What was put in since by other means is newer than a failed upload.
    failed = upload is not None and upload.item.status == "failed" and upload.created > source.created
    return replace(view, error=upload.item.error) if failed and upload is not None else view


def _shown(upload: LatestUpload) -> bool:
    """What was taken in and isn't live was removed by other means; nothing is left of it to show."""
    return upload.item.status in (*ACTIVE, "failed")


def _not_live(catalog: Catalog, upload: LatestUpload) -> DocumentView:
    item = upload.item
    return DocumentView(
        doc_id=item.doc_id,
        collection=upload.collection,
        file_name=item.file_name,
        uri=item.file_name,
        status="failed" if item.status == "failed" else "indexing",
        chunks=0,
        added=upload.created,
        file_hash=item.file_hash,
        bytes=item.bytes,
        has_file=uploads.size_of(catalog, item.file_hash) is not None,
        error=item.error,
    )
