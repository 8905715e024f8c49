"""The three legs of retrieval: each asks its index, then has the text of the hits fetched.

Knows how many hits to ask for so that enough of them are live. Doesn't rank: the index did.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.errors import TextMissing
from leadline.knowledge.current import Current
from leadline.knowledge.opened import Opened
from leadline.records import Document, Found
from leadline.stores.base import Hit, Where
from leadline.stores.catalog_sources import any_known, live_chunks

log = logging.getLogger(__name__)


class VectorRetriever:
    """Dense retrieval: the chunks whose vectors are nearest to the query's."""

    name = "vector"

    def __init__(self, current: Current) -> None:
        self._current = current

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` live chunks, best first. Raises StoreError, ModelError."""
        async with self._current.use() as opened:
            vector = await asyncio.to_thread(opened.embedder.embed_query, query)
            index = opened.legs.vector
            return await _live(opened, self.name, k, lambda n: index.search(vector, k=n, where=where))


class LexicalRetriever:
    """Keyword retrieval: the chunks that share terms with the query."""

    name = "bm25"

    def __init__(self, current: Current) -> None:
        self._current = current

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` live chunks, best first. Raises StoreError."""
        async with self._current.use() as opened:
            index = opened.legs.bm25
            return await _live(opened, self.name, k, lambda n: index.lexical_search(query, k=n, where=where))


class GraphRetriever:
    """Retrieval over the entity graph: the chunks that the query's entities lead to."""

    name = "graph"

    def __init__(self, current: Current) -> None:
        self._current = current

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` live chunks, best first. Raises StoreError."""
        async with self._current.use() as opened:
            index = opened.legs.graph
            return await _live(opened, self.name, k, lambda n: index.search(query, k=n, where=where))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A live chunk: its text, and the metadata of a Document but `found_by`."""

    text: str
    metadata: dict[str, Any]


async def hydrate(opened: Opened, hits: Sequence[Hit], leg: str) -> list[Document]:
    """The hits as Documents, in their order, text fetched in one batch.

    A hit whose chunk isn't live is left out and logged; so is one whose text is missing, which stands in
    `opened.without_text` from then on. Raises TextMissing if that is all of them, unless the catalog knows why: then it
    and the index, or the content store, don't belong together.
    """
    found = await _fetch(opened, hits)
    await _ensure_any(opened, hits, found, leg)
    return _documents(hits, found, leg)


async def _live(opened: Opened, leg: str, k: int, search: Callable[[int], Awaitable[list[Hit]]]) -> list[Document]:
    """Asks for more until `k` hits are live or there are no more."""
    wanted = k
    while True:
        hits = await search(wanted)
        found = await _fetch(opened, hits)
        if len(found) >= k or len(hits) < wanted:
            await _ensure_any(opened, hits, found, leg)
            return _documents(hits, found, leg)[:k]
        wanted *= 2


async def _fetch(opened: Opened, hits: Sequence[Hit]) -> dict[str, _Chunk]:
    """chunk_id → text and metadata, of the hits that are live and have a text; the texts come in one batch.

    Both are asked for at once: nearly all hits are live.
    """
    ids = [hit.chunk_id for hit in hits]
    live, texts = await asyncio.gather(
        asyncio.to_thread(live_chunks, opened.catalog, opened.name, ids), opened.content.fetch(ids)
    )
    opened.without_text.difference_update(texts)
    found = {chunk_id: _Chunk(text, live[chunk_id]) for chunk_id, text in texts.items() if chunk_id in live}
    if len(found) < len(live):
        await _note_missing(opened, [chunk_id for chunk_id in live if chunk_id not in found], bool(found))
    return found


async def _note_missing(opened: Opened, ids: Sequence[str], others: bool) -> None:
    """Says that texts are missing, unless they went with a change made since. Raises TextMissing without `others`."""
    still = await asyncio.to_thread(live_chunks, opened.catalog, opened.name, ids)
    if not still:
        return
    opened.without_text.update(still)
    log.warning("The text of %d chunks of the collection %s is missing; they were left out", len(still), opened.name)
    if not others:
        raise TextMissing(
            f"The text of all {len(still)} chunks found in the collection {opened.name} is missing.",
            hint="`leadline verify` names the files to ingest again.",
        )


async def _ensure_any(opened: Opened, hits: Sequence[Hit], found: dict[str, _Chunk], leg: str) -> None:
    ids = [hit.chunk_id for hit in hits]
    if lacking := len(ids) - len(found):
        log.info("%d of %d hits of the %s index are not live and were left out", lacking, len(ids), leg)
    if not ids or found:
        return
    if await asyncio.to_thread(any_known, opened.catalog, opened.name, leg, ids):
        return  # on their way in or out
    raise TextMissing(
        f"The {leg} index of the collection {opened.name} found {len(ids)} chunks, and the catalog has none of them.",
        hint="Run `leadline verify` to see how they differ.",
    )


def _documents(hits: Sequence[Hit], found: dict[str, _Chunk], leg: str) -> list[Document]:
    live = [(hit, found[hit.chunk_id]) for hit in hits if hit.chunk_id in found]
    return [
        Document(
            content=chunk.text,
            metadata={**chunk.metadata, "found_by": {leg: Found(rank=rank, score=hit.score)}},
            score=hit.score,
            source=leg,
            rerank_score=0.0,
        )
        for rank, (hit, chunk) in enumerate(live)
    ]
