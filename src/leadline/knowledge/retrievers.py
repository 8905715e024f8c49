"""The three legs of retrieval: each asks its index, then has the text of the hits fetched.

Knows how many hits to ask for so that enough of them are live. Doesn't rank: the index did.
"""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from leadline.deadline import Patience, within
from leadline.errors import TextMissing
from leadline.knowledge.current import LEG_TIMEOUT_S, Current
from leadline.knowledge.opened import Opened
from leadline.records import Document, Found
from leadline.stores.base import Hit, Retriever, Where
from leadline.stores.catalog_sources import any_known, live_chunks
from leadline.telemetry import span

log = logging.getLogger(__name__)

T = TypeVar("T")


class Leg(Protocol):
    """A leg of a collection's own: asks its index, and leaves the text of what it found to others."""

    name: str
    current: Current

    async def hits(self, opened: Opened, query: str, k: int, where: Where | None) -> list[Hit]:
        """At most `k` of the index, best first; not all of them need be live."""
        ...


class VectorRetriever:
    """Dense retrieval: the chunks whose vectors are nearest to the query's."""

    name = "vector"

    def __init__(self, current: Current) -> None:
        self.current = current

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` live chunks, best first. Raises StoreError, ModelError."""
        return await _search(self, query, k, where)

    async def hits(self, opened: Opened, query: str, k: int, where: Where | None) -> list[Hit]:
        """See `Leg.hits`."""
        vector = await asyncio.to_thread(opened.embedder.embed_query, query)
        return await opened.legs.vector.search(vector, k=k, where=where)


class LexicalRetriever:
    """Keyword retrieval: the chunks that share terms with the query."""

    name = "bm25"

    def __init__(self, current: Current) -> None:
        self.current = current

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` live chunks, best first. Raises StoreError."""
        return await _search(self, query, k, where)

    async def hits(self, opened: Opened, query: str, k: int, where: Where | None) -> list[Hit]:
        """See `Leg.hits`."""
        return await opened.legs.bm25.lexical_search(query, k=k, where=where)


class GraphRetriever:
    """Retrieval over the entity graph: the chunks that the query's entities lead to."""

    name = "graph"

    def __init__(self, current: Current) -> None:
        self.current = current

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` live chunks, best first. Raises StoreError."""
        return await _search(self, query, k, where)

    async def hits(self, opened: Opened, query: str, k: int, where: Where | None) -> list[Hit]:
        """See `Leg.hits`."""
        return await opened.legs.graph.search(query, k=k, where=where)


STEPS = 4  # of a search, of which each may take as long as a leg: indexes, texts, more texts, and the catalog
OWN = (VectorRetriever, LexicalRetriever, GraphRetriever)


async def search_all(
    retrievers: Mapping[str, Retriever], query: str, *, k: int, where: Where | None = None
) -> dict[str, list[Document] | BaseException]:
    """What each retriever finds, asked all at once; its exception where it fails, which is the others' no concern.
    So is one that takes too long: its exception is a TimeoutError.

    As if each were asked by its `search`, but the texts of what a collection's own legs found come in one batch.
    """
    own = {name: leg for name, leg in retrievers.items() if type(leg) in OWN}
    together = cast("dict[str, Leg]", own) if len({id(cast("Leg", leg).current) for leg in own.values()}) == 1 else {}
    alone = {name: leg for name, leg in retrievers.items() if name not in together}
    first, *rest = await asyncio.gather(
        _all_own(list(together.values()), query, k, where),
        *(
            _patience_with(leg).wait(f"The leg {name}", _told(name, k, partial(leg.search, query, k=k, where=where)))
            for name, leg in alone.items()
        ),
        return_exceptions=True,
    )
    found: dict[str, list[Document] | BaseException] = dict(zip(alone, cast("list[Any]", rest), strict=True))
    if isinstance(first, BaseException):
        found |= dict.fromkeys(together, first)
    else:
        found |= dict(zip(together, cast("list[Any]", first), strict=True))
    return {name: found[name] for name in retrievers}


_patience: weakref.WeakKeyDictionary[Retriever, Patience] = weakref.WeakKeyDictionary()


def _patience_with(leg: Retriever) -> Patience:
    """With a leg of the collection's own, that of the collection; another has its own for as long as it is there."""
    if type(leg) in OWN:
        return cast("Leg", leg).current.patience
    try:
        return _patience.setdefault(leg, Patience(LEG_TIMEOUT_S))
    except TypeError:  # one that nothing can be kept beside
        return Patience(LEG_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A live chunk: its text, and the metadata of a Document but `found_by`."""

    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Fetched:
    """Of some ids, those that are live and have a text, and those that are live without one."""

    chunks: Mapping[str, _Chunk]
    lost: Set[str]


async def hydrate(opened: Opened, hits: Sequence[Hit], leg: str) -> list[Document]:
    """The hits as Documents, in their order, text fetched in one batch.

    A hit whose chunk isn't live is left out and logged; so is one whose text is missing, which stands in
    `opened.without_text` from then on. Raises TextMissing if that is all of them, unless the catalog knows why: then it
    and the index, or the content store, don't belong together.
    """
    return await _checked(opened, hits, await _fetch(opened, hits), leg)


async def _search(leg: Leg, query: str, k: int, where: Where | None) -> list[Document]:
    async with leg.current.use() as opened:
        return await _live(opened, leg, query, k, where)


async def _all_own(
    legs: Sequence[Leg], query: str, k: int, where: Where | None
) -> list[list[Document] | BaseException]:
    """`_search_together`, also where the catalog hangs, which each leg asks."""
    if not legs:
        return []
    longest = STEPS * legs[0].current.patience.seconds
    return await within(longest, _search_together(legs, query, k, where), "The collection")


async def _search_together(
    legs: Sequence[Leg], query: str, k: int, where: Where | None
) -> list[list[Document] | BaseException]:
    """One answer, or exception, a leg."""
    patience = legs[0].current.patience
    async with legs[0].current.use() as opened:
        hits = await asyncio.gather(
            *(patience.wait(f"The leg {leg.name}", _hits(opened, leg, query, k, where)) for leg in legs),
            return_exceptions=True,
        )
        wanted = [hit for found in hits if not isinstance(found, BaseException) for hit in found]
        fetched: _Fetched | None = None
        with suppress(Exception):  # a named degrade: one hit that can't be fetched is not the other legs' concern
            fetched = await patience.wait("The store of the texts", _fetch(opened, wanted))

        async def answer(leg: Leg, found: list[Hit] | BaseException) -> list[Document]:
            if isinstance(found, BaseException):
                raise found
            if fetched is None or (len(found) >= k and any(hit.chunk_id not in fetched.chunks for hit in found)):
                return await _live(opened, leg, query, k, where)
            return (await _checked(opened, found, fetched, leg.name))[:k]

        return await asyncio.gather(
            *(
                patience.wait(f"The text of the leg {leg.name}", answer(leg, found))
                for leg, found in zip(legs, hits, strict=True)
            ),
            return_exceptions=True,
        )


async def _hits(opened: Opened, leg: Leg, query: str, k: int, where: Where | None) -> list[Hit]:
    return await _told(leg.name, k, partial(leg.hits, opened, query, k, where))


async def _told(leg: str, k: int, search: Callable[[], Awaitable[list[T]]]) -> list[T]:
    """What the search finds, which has a span."""
    with span(f"search {leg}", {"leadline.leg": leg, "leadline.k": k}) as told:
        found = await search()
        told.set({"leadline.hits": len(found)})
        return found


async def _live(opened: Opened, leg: Leg, query: str, k: int, where: Where | None) -> list[Document]:
    """Asks for more until `k` hits are live or there are no more."""
    wanted = k
    while True:
        hits = await _hits(opened, leg, query, wanted, where)
        fetched = await _fetch(opened, hits)
        if len(fetched.chunks) >= k or len(hits) < wanted:
            return (await _checked(opened, hits, fetched, leg.name))[:k]
        wanted *= 2


async def _fetch(opened: Opened, hits: Sequence[Hit]) -> _Fetched:
    """Text and metadata of the hits; the texts come in one batch.

    Both are asked for at once: nearly all hits are live.
    """
    ids = list(dict.fromkeys(hit.chunk_id for hit in hits))
    live, texts = await asyncio.gather(
        asyncio.to_thread(live_chunks, opened.catalog, opened.name, ids), opened.content.fetch(ids)
    )
    opened.without_text.difference_update(texts)
    chunks = {chunk_id: _Chunk(text, live[chunk_id]) for chunk_id, text in texts.items() if chunk_id in live}
    lost = await _lost(opened, [chunk_id for chunk_id in live if chunk_id not in chunks])
    return _Fetched(chunks, lost)


async def _lost(opened: Opened, ids: Sequence[str]) -> Set[str]:
    """Those of the ids that are live still, so that their texts are missing: it is said. Others went with a change."""
    if not ids:
        return frozenset()
    lost = await asyncio.to_thread(live_chunks, opened.catalog, opened.name, ids)
    opened.without_text.update(lost)
    if lost:
        log.warning("The text of %d chunks of the collection %s is missing; they were left out", len(lost), opened.name)
    return lost.keys()


async def _checked(opened: Opened, hits: Sequence[Hit], fetched: _Fetched, leg: str) -> list[Document]:
    """The Documents of the hits. Raises TextMissing if there are hits, none of them is one, and nothing says why."""
    ids = [hit.chunk_id for hit in hits]
    lacking = sum(chunk_id not in fetched.chunks for chunk_id in ids)
    if lacking:
        log.info("%d of %d hits of the %s index are not live and were left out", lacking, len(ids), leg)
    if not ids or lacking < len(ids):
        return _documents(hits, fetched.chunks, leg)
    if lost := fetched.lost & set(ids):
        raise TextMissing(
            f"The text of all {len(lost)} chunks found in the collection {opened.name} is missing.",
            hint="`leadline verify` names the files to ingest again.",
        )
    if await asyncio.to_thread(any_known, opened.catalog, opened.name, leg, ids):
        return []  # on their way in or out
    raise TextMissing(
        f"The {leg} index of the collection {opened.name} found {len(ids)} chunks, and the catalog has none of them.",
        hint="Run `leadline verify` to see how they differ.",
    )


def _documents(hits: Sequence[Hit], found: Mapping[str, _Chunk], leg: str) -> list[Document]:
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
