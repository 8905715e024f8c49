"""Documents and passages looked up for people: where is it, in which state, is it still there.

Reads the catalog only; opens no index.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from leadline.errors import InvalidFilter, StoreError
from leadline.knowledge.library import Library
from leadline.stores.base import Where
from leadline.stores.catalog_lookup import (
    OUR_FIELDS,
    PlacedFields,
    SourceState,
    all_states,
    chunks_of,
    fields_nobody_has,
    named,
)
from leadline.stores.catalog_sources import live_chunks
from leadline.stores.filters import fields_in

MOST_NAMED = 10  # of several that fit, how many an error lists


async def find_document(library: Library, wanted: str, collection: str) -> SourceState | None:
    """The one document that `wanted` names, in the collection or else in another; None: there is none anywhere.

    `wanted` is an id or its beginning, a URI, a file name, a file's hash, or a part of the name. Raises StoreError,
    listing them, where several fit equally well.
    """
    states = await asyncio.to_thread(all_states, library.catalog)
    here = named((s for s in states if s.collection == collection), wanted)
    found = here or named((s for s in states if s.collection != collection), wanted)
    if len(found) > 1:
        listed = "; ".join(f"{_label(s)}" for s in found[:MOST_NAMED])
        more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise StoreError(
            f"{len(found)} documents fit {wanted!r}: {listed}{more}.", hint="Name one by its id or its whole path."
        )
    return found[0] if found else None


async def states_of(library: Library, doc_ids: Sequence[str]) -> dict[str, SourceState]:
    """doc_id → its source as it is now, in whatever collection, of those that are there."""
    found = await asyncio.to_thread(all_states, library.catalog, list(doc_ids))
    return {state.doc_id: state for state in found}


async def passages_of(library: Library, doc_id: str) -> list[PlacedFields]:
    """The live chunks of a document, in their order, with what a filter may test."""
    return await asyncio.to_thread(chunks_of, library.catalog, doc_id)


async def live_passages(library: Library, collection: str, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """chunk_id → where it is, of those that are live in the collection."""
    return await asyncio.to_thread(live_chunks, library.catalog, collection, list(chunk_ids))


async def refuse_unknown_fields(library: Library, collection: str, where: Where | None) -> None:
    """Raises InvalidFilter where a (checked) filter names a field that no document of the collection has.

    One that some of them have is right: fields differ from document to document. A collection without documents has
    nothing to compare with.
    """
    if not (wanted := fields_in(where)):
        return
    unknown, there = await asyncio.to_thread(fields_nobody_has, library.catalog, collection, wanted)
    if unknown:
        named = [*sorted(OUR_FIELDS), *sorted(there)[:MOST_NAMED]]
        more = f", and {len(there) - MOST_NAMED} more" if len(there) > MOST_NAMED else ""
        raise InvalidFilter(
            f"No document of the collection {collection} has the field {', '.join(sorted(unknown))}.",
            hint=f"These fields there are: {', '.join(named)}{more}.",
        )


def _label(state: SourceState) -> str:
    return f"{state.doc_id[:12]} ({state.uri})"
