"""`/documents`: uploads that are taken in by a job, what there is, its text and its file, and deletion."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from leadline.api.access import Caller, Who
from leadline.api.asked import CLIENT_GONE
from leadline.api.collections import Collection, known_collection
from leadline.api.ids import Id, IdRoute
from leadline.api.jobs import Job, moment, wire_job
from leadline.api.receiving import FIELD, ReceivedFile, received_files
from leadline.errors import DocumentUnknown, FileNotKept, LeadlineError
from leadline.ingest.uploads import uploaded_file
from leadline.knowledge.documents import (
    DocumentView,
    Passage,
    find_document_by_id,
    kept_file,
    list_documents,
    read_passages,
    remove_document,
)
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_job_rows import JobRow
from leadline.stores.catalog_jobs import add_job
from leadline.stores.uploads import drop_unused

router = APIRouter(tags=["documents"], route_class=IdRoute)

_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [FIELD],
                    "additionalProperties": False,
                    "properties": {
                        FIELD: {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}}
                    },
                }
            }
        },
    }
}
# A document is somebody's file: a browser saves it, guesses nothing, and runs nothing of it.
_AS_FILE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "no-store",
}


class Document(BaseModel):
    """A document. `indexing`: its newest upload isn't in yet, and an older version of it may answer meanwhile.

    `error` says why the newest upload could not be taken in, also where an older version is still there. `pages` are
    known where the format has some, `bytes` where the file was uploaded here (`has_file`).
    """

    doc_id: str
    file_name: str
    uri: str
    status: Literal["ready", "indexing", "failed"]
    chunks: int
    pages: int | None
    bytes: int | None
    added_at: datetime
    notes: list[str]
    has_file: bool
    error: str | None


class Documents(BaseModel):
    """The documents of a collection, by name."""

    collection: str
    documents: list[Document]


class PassageText(BaseModel):
    """A passage of a document. `index` counts from 0."""

    chunk_id: str
    index: int
    page: int | None
    start_char: int
    end_char: int
    headings: list[str]
    text: str


class DocumentText(Document):
    """A document with some of its passages, of `total`."""

    collection: str
    passages: list[PassageText]
    total: int


class Deleted(BaseModel):
    """What was removed: passages, by index how many were there, and answers made from them in how many conversations.

    `owed` names what could not follow yet and will; nothing deleted is shown meanwhile.
    """

    doc_id: str
    file_name: str
    chunks: int
    indexes: dict[str, int]
    conversations: int
    owed: dict[str, str]


@router.post("/documents", status_code=202, openapi_extra=_FORM, response_model=Job)
async def upload(request: Request, who: Who, collection: Collection = None) -> Job | Response:
    """Takes files and answers with the job that puts them into the collection, made if there is none.

    A file with the name of a document of the collection replaces it, once it is in.
    """
    who.need_write()
    settings, library = request.app.state.settings, request.app.state.leadline.library
    name = collection or who.default(settings.run.collection)
    who.need(name)
    try:
        async with received_files(request, library.catalog, settings) as files:
            job = await library.turns.take(partial(_add_job, library.catalog, name, files))
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    request.app.state.jobs.wake()
    return wire_job(job)


@router.get("/documents")
async def documents(request: Request, who: Who, collection: Collection = None) -> Documents:
    """The documents of a collection: those that can be asked about, those being taken in, those that failed."""
    name = await known_collection(request, who, collection)
    views = await list_documents(request.app.state.leadline.library, name)
    return Documents(collection=name, documents=[Document(**_fields(view)) for view in views])


@router.get("/documents/{doc_id}")
async def document(
    request: Request,
    who: Who,
    doc_id: Id,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    limit: Annotated[int, Query(ge=0, le=500)] = 100,
) -> DocumentText:
    """A document and its passages from `offset` on, in their order."""
    view = await _seen(request, who, doc_id)
    passages, total = await read_passages(request.app.state.leadline.library, doc_id, offset, limit)
    texts = [_wire_passage(passage, passage.text) for passage in passages if passage.text is not None]
    return DocumentText(**_fields(view), collection=view.collection, passages=texts, total=total)


@router.delete("/documents/{doc_id}")
async def delete(request: Request, who: Who, doc_id: Id) -> Deleted:
    """Removes a document with its text, its file, and the answers made from it.

    One that is still being taken in is not taken in, or removed as soon as it is.
    """
    view = await _seen(request, who, doc_id)
    who.need_write()
    app = request.app.state.leadline
    report = await remove_document(app.library, view)
    conversations, owed = 0, dict.fromkeys(report.owed, "it follows with the next change")
    try:
        conversations = await app.forget_deleted()
    except LeadlineError as error:  # the document is deleted all the same; each follows at its next turn
        owed["conversations"] = error.code
    return Deleted(
        doc_id=doc_id,
        file_name=view.file_name,
        chunks=report.chunks,
        indexes=dict(report.legs),
        conversations=conversations,
        owed=owed,
    )


@router.get("/documents/{doc_id}/file", response_class=FileResponse)
async def file(request: Request, who: Who, doc_id: Id) -> FileResponse:
    """The file as it was uploaded."""
    view = await _seen(request, who, doc_id)
    path = await kept_file(request.app.state.leadline.library, view.file_hash)
    if path is None:
        raise FileNotKept(
            f"The file of {view.file_name} is not kept here.",
            hint="It was put in on the command line, which leaves files where they are.",
        )
    named = f"attachment; filename*=UTF-8''{quote(view.file_name, safe='')}"
    headers = {**_AS_FILE, "Content-Disposition": named}
    return FileResponse(path, media_type="application/octet-stream", headers=headers)


async def _seen(request: Request, who: Caller, doc_id: str) -> DocumentView:
    """The document, if it is there for this caller. Raises DocumentUnknown."""
    view = await find_document_by_id(request.app.state.leadline.library, doc_id)
    if view is None or not who.sees(view.collection):
        raise DocumentUnknown(f"There is no document {doc_id}.", hint="GET /documents lists what is there.")
    return view


def _add_job(catalog: Catalog, collection: str, files: Sequence[ReceivedFile]) -> JobRow:
    def store() -> None:
        for each in files:
            each.incoming.keep()

    uploaded = [uploaded_file(collection, f.name, f.incoming) for f in files]
    try:
        return add_job(catalog, collection, uploaded, store)
    except LeadlineError:
        with suppress(LeadlineError):  # of a catalog that fails altogether; the next start of a server sweeps
            drop_unused(catalog, [file.file_hash for file in uploaded])
        raise


def _fields(view: DocumentView) -> dict[str, Any]:
    return {
        "doc_id": view.doc_id,
        "file_name": view.file_name,
        "uri": view.uri,
        "status": view.status,
        "chunks": view.chunks,
        "pages": view.pages,
        "bytes": view.bytes,
        "added_at": moment(view.added),
        "notes": list(view.notes),
        "has_file": view.has_file,
        "error": view.error,
    }


def _wire_passage(passage: Passage, text: str) -> PassageText:
    place = passage.place
    return PassageText(
        chunk_id=place.chunk_id,
        index=place.index,
        page=place.page,
        start_char=place.start_char,
        end_char=place.end_char,
        headings=list(place.headings),
        text=text,
    )
