"""`GET /collections`, and which collection a request is about."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from leadline.api.access import Caller, Who
from leadline.config import COLLECTION_PATTERN
from leadline.errors import CollectionUnknown
from leadline.knowledge.documents import knows_collection, list_collections

router = APIRouter(tags=["documents"])

# A query can leave it out, and can't say null.
_Named = Annotated[str, Field(pattern=COLLECTION_PATTERN)] | SkipJsonSchema[None]
Collection = Annotated[_Named, Query(description="Left out: that of `GET /about`.")]
OneOrAll = Annotated[_Named, Query(description="Left out: all that the caller sees.")]


class CollectionSummary(BaseModel):
    """A collection, and how many documents and passages of it can be found."""

    name: str
    documents: int
    chunks: int


class Collections(BaseModel):
    """The collections that the caller sees, by name."""

    collections: list[CollectionSummary]


@router.get("/collections")
async def collections(request: Request, who: Who) -> Collections:
    """The collections that the caller sees."""
    found = await list_collections(request.app.state.leadline.library)
    seen = [CollectionSummary(name=c.name, documents=c.documents, chunks=c.chunks) for c in found if who.sees(c.name)]
    return Collections(collections=seen)


async def known_collection(request: Request, who: Caller, name: str | None) -> str:
    """The collection named, or this caller's default. Raises CollectionUnknown unless it is there for this caller."""
    wanted = name or who.default(request.app.state.settings.run.collection)
    who.need(wanted)
    if not await knows_collection(request.app.state.leadline.library, wanted):
        raise CollectionUnknown(f"There is no collection {wanted}.")
    return wanted
