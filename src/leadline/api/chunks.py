"""`GET /chunks/{id}`: a passage, as a citation points to it, of a document or of the web."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from leadline.api.access import Caller, Who
from leadline.api.ids import Id, IdRoute
from leadline.drafts import WebPassage
from leadline.errors import PassageUnknown
from leadline.knowledge import Library
from leadline.knowledge.documents import Passage, find_passage, find_web_passage

router = APIRouter(tags=["documents"], route_class=IdRoute)


class Chunk(BaseModel):
    """A passage. `previous` and `next` are those beside it in its document.

    Of the web it has no collection, its document can't be listed, and `retrieved_at` says when it was read.
    """

    chunk_id: str
    doc_id: str
    collection: str | None
    file_name: str
    page: int | None
    start_char: int
    end_char: int
    headings: list[str]
    text: str
    previous: str | None
    next: str | None
    source_type: str
    url: str | None
    retrieved_at: str | None


@router.get("/chunks/{chunk_id}")
async def chunk(request: Request, who: Who, chunk_id: Id) -> Chunk:
    """The passage with this id, for as long as its document, or the search that found it, is kept."""
    return await find_chunk(request.app.state.leadline.library, who, chunk_id)


async def find_chunk(library: Library, who: Caller, chunk_id: str) -> Chunk:
    """The passage with this id, if it is there for this caller. Raises PassageUnknown, StoreError."""
    found = await find_passage(library, chunk_id)
    if found is not None and found.text is not None and who.sees(found.place.collection):
        return _of_document(found, found.text)
    page = await find_web_passage(library, chunk_id) if found is None else None
    if page is None:
        hint = "Take the chunk_id of a new search or answer: that of a document which was replaced or removed is gone."
        raise PassageUnknown(f"There is no passage {chunk_id}.", hint=hint)
    return _of_web(page)


def _of_document(passage: Passage, text: str) -> Chunk:
    place = passage.place
    return Chunk(
        chunk_id=place.chunk_id,
        doc_id=place.doc_id,
        collection=place.collection,
        file_name=place.file_name,
        page=place.page,
        start_char=place.start_char,
        end_char=place.end_char,
        headings=list(place.headings),
        text=text,
        previous=place.previous,
        next=place.next,
        source_type=place.source_type,
        url=place.url,
        retrieved_at=None,
    )


def _of_web(page: WebPassage) -> Chunk:
    return Chunk(
        chunk_id=page.chunk_id,
        doc_id=page.doc_id,
        collection=None,
        file_name=page.title or page.url,
        page=None,
        start_char=page.start_char,
        end_char=page.end_char,
        headings=list(page.headings),
        text=page.text,
        previous=None,
        next=None,
        source_type="web",
        url=page.url,
        retrieved_at=page.retrieved_at,
    )
