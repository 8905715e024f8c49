"""Searches the web, where the run's policy and a person's consent allow it.

Knows what may leave the machine (`web_query`), and that an earlier search may stand in for a new one. Results are
passages of their own kind (`source_type` web, with address and time), never passed off as documents.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.drafts import WebPassage
from leadline.errors import PageUnavailable, StoreError, WebUnavailable
from leadline.events import ConsentEvent, QueryEvent
from leadline.ingest.web_pages import PagesRead, excerpts
from leadline.knowledge.web_cache import Cached
from leadline.nodes.allowance import time_left, web_allowed, web_wanted
from leadline.nodes.progress import degrade, emit
from leadline.nodes.web_query import is_too_long, outgoing_query
from leadline.state import Document, Found, Pass, RAGState, RAGUpdate, Usage
from leadline.telemetry import span
from leadline.web import Resting, WebResult, WebSearch, resting

log = logging.getLogger(__name__)

MAX_NAME_CHARS: Final = 80
_BRACKETS: Final = str.maketrans("[]【】", "()()")

AskConsent = Callable[[str], Awaitable[bool | str]]
"""Given the query; says whether it may go out, or which may in its place."""


class ReadPages(Protocol):
    """Reads the pages of the best hits. `question` chooses among their passages and goes nowhere."""

    async def __call__(self, question: str, results: Sequence[WebResult], *, k: int) -> PagesRead: ...


class FoundBefore(Protocol):
    """What searches found before."""

    async def find(self, query: str) -> Cached | None: ...

    async def keep(self, query: str, passages: Sequence[WebPassage]) -> None: ...


async def web(
    state: RAGState,
    runtime: Runtime[RunContext],
    *,
    search: WebSearch | None,
    ask_consent: AskConsent | None,
    read_pages: ReadPages | None = None,
    before: FoundBefore | None = None,
) -> RAGUpdate:
    """Writes what the web has for the question. Not allowed: nothing is sent and `web_denied` says so.

    Where the same query was sent not long ago, its passages are taken and nothing is sent. A web that fails is named in
    `degraded`, with the passages of an older search where there was one. `web_used` says that the query went out or
    that passages of the web came in. Without `read_pages` the engine's excerpts are the passages.
    """
    if search is None:
        return {"web_denied": True}
    if kept_from := _kept_from(state, runtime):
        return kept_from
    query = await _consented(outgoing_query(state), runtime, ask_consent)
    if not query:
        return {"web_denied": True}
    kept = await _kept(before, query)
    if kept is not None and kept.fresh:
        return _found(kept.passages)
    stale = _found(kept.passages if kept else ())
    if reason := _not_to_be_sent(query, search):
        return {**stale, "degraded": [degrade(runtime, "web", reason)]}
    left = time_left(state, runtime.context.budgets, time.time())
    if left <= 0:  # a person takes time to consent
        return {**stale, "limits": ["seconds"]}
    emit(runtime, QueryEvent(query=query, target="web"))
    sent: RAGUpdate = {"web_used": True, "passes": _with_query(state, query), "usage": Usage(web_calls=1)}
    try:
        async with asyncio.timeout(left) as clock:
            read = await _search_and_read(state, query, runtime.context.top_k, search, read_pages)
    except Exception as error:  # noqa: BLE001 a named degrade point: the run goes on without the web
        if isinstance(error, TimeoutError) and clock.expired():
            error = WebUnavailable("The run's time was up before the web had answered.")
            sent["limits"] = ["seconds"]
        return {**stale, **sent, "degraded": [degrade(runtime, "web", error)]}
    if read.problems and not read.read:
        told = PageUnavailable(f"No page could be read, so the search engine's excerpts stand in. {read.problems[0]}")
        return {**sent, **_found(read.passages), "degraded": [degrade(runtime, "web", told)]}
    await _keep(before, query, read.passages)
    return {**sent, **_found(read.passages)}


def _kept_from(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate | None:
    """What the run is told where policy or budget keeps it from the web; None where nothing does."""
    if web_allowed(state, runtime.context):
        return None
    spent = web_wanted(state, runtime.context)
    return {"web_denied": True, "limits": ["web_calls"]} if spent else {"web_denied": True}


async def _consented(query: str, runtime: Runtime[RunContext], ask_consent: AskConsent | None) -> str:
    """The query that may go out, "" where none may: as set, else as a person says. Nobody to ask means no."""
    if runtime.context.web_consent == "yes":
        return query
    if ask_consent is None:
        emit(runtime, ConsentEvent(query=query, granted=False))
        return ""
    emit(runtime, ConsentEvent(query=query))
    said = await ask_consent(query)
    allowed = said.strip() if isinstance(said, str) else query if said else ""
    emit(runtime, ConsentEvent(query=allowed or query, granted=bool(allowed)))
    return allowed


async def _search_and_read(
    state: RAGState, query: str, k: int, search: WebSearch, read_pages: ReadPages | None
) -> PagesRead:
    with span("web search") as told:
        results = await search.search(query, k=k)
        told.set({"leadline.hits": len(results)})
    if read_pages is None:
        return PagesRead(tuple(passage for result in results for passage in excerpts(result)))
    with span("web pages", {"leadline.hits": len(results)}) as told:
        read = await read_pages(state["question"], results, k=k)
        told.set({"leadline.pages": read.read, "leadline.passages": len(read.passages)})
        return read


def _not_to_be_sent(query: str, search: WebSearch) -> WebUnavailable | None:
    """Why the engine is not asked now, though it may be."""
    if is_too_long(query):
        return WebUnavailable(f"A question of {len(query):,} characters is not sent to a search engine.")
    rest = search.rest_s() if isinstance(search, Resting) else 0.0
    return resting(rest) if rest else None


def _with_query(state: RAGState, query: str) -> list[Pass]:
    """The searches of the run, the last one with what went out for it."""
    *before, last = state["passes"]
    return [*before, Pass({**last, "web_query": query})]


async def _kept(before: FoundBefore | None, query: str) -> Cached | None:
    try:
        return None if before is None else await before.find(query)
    except StoreError as error:  # what can't be looked up is searched for
        log.warning("What the web said before can't be read: %s", error)
        return None


async def _keep(before: FoundBefore | None, query: str, passages: Sequence[WebPassage]) -> None:
    try:
        if before is not None:
            await before.keep(query, passages)
    except StoreError as error:  # the run has its passages
        log.warning("What the web said can't be kept: %s", error)


def _found(passages: Sequence[WebPassage]) -> RAGUpdate:
    """The passages as candidates, which are the web used; nothing where there are none."""
    if not passages:
        return {}
    documents = [_document(passage, rank) for rank, passage in enumerate(passages)]
    return {"web_used": True, "candidates": {"web": documents}}


def _document(passage: WebPassage, rank: int) -> Document:
    """The passage as a retrieved one. Its score says nothing but the rank."""
    score = 1.0 / (1 + rank)
    headings = [passage.title, *(heading for heading in passage.headings if heading != passage.title)]
    metadata = {
        "chunk_id": passage.chunk_id,
        "doc_id": passage.doc_id,
        "file_name": _name(passage),
        "file_hash": passage.file_hash,
        "chunk_index": passage.chunk_index,
        "total_chunks": passage.total_chunks,
        "source_type": "web",
        "start_char": passage.start_char,
        "end_char": passage.end_char,
        "headings": [heading for heading in headings if heading],
        "url": passage.url,
        "title": passage.title,
        "retrieved_at": passage.retrieved_at,
        "excerpt": passage.excerpt,
        "found_by": {"web": Found(rank=rank, score=score)},
    }
    if passage.language:
        metadata["language"] = passage.language
    return Document(content=passage.text, metadata=metadata, score=score, source="web", rerank_score=0.0)


def _name(passage: WebPassage) -> str:
    """Where it is from, then what it calls itself, short and without what could pass for a number of a source.

    A title is a stranger's words, and names stand in answers that tell which passages came nearest.
    """
    host = urlsplit(passage.url).hostname or passage.url
    title = passage.title.translate(_BRACKETS)
    if len(title) > MAX_NAME_CHARS:
        title = title[:MAX_NAME_CHARS].rsplit(" ", 1)[0] + " …"
    return f"{host}: {title}" if title else host
