"""Searches the web, where the run's policy and a person's consent allow it.

Knows what may leave the machine: the question of the person, never a word of a document. Results are passages of
their own kind (`source_type` web, with address and time), never passed off as documents.
"""

import hashlib
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.events import ConsentEvent, QueryEvent
from leadline.nodes.allowance import web_allowed
from leadline.nodes.progress import degrade, emit
from leadline.state import Document, Found, RAGState, RAGUpdate, Usage
from leadline.web import WebResult, WebSearch

AskConsent = Callable[[str], Awaitable[bool]]


async def web(
    state: RAGState, runtime: Runtime[RunContext], *, search: WebSearch | None, ask_consent: AskConsent | None
) -> RAGUpdate:
    """Writes what the web has for the question. Not allowed: nothing is sent and `web_denied` says so."""
    query = state["question"]
    if search is None or not web_allowed(state, runtime.context):
        return {"web_denied": True}
    if not await _consented(query, runtime, ask_consent):
        return {"web_denied": True}
    emit(runtime, QueryEvent(query=query, target="web"))
    update: RAGUpdate = {"web_used": True, "usage": Usage(web_calls=1)}
    try:
        results = await search.search(query, k=runtime.context.top_k)
    except Exception as error:  # noqa: BLE001 a named degrade point: the run goes on without the web
        return {**update, "degraded": [degrade(runtime, "web", error)]}
    told = [result for result in results if _text(result)]
    return {**update, "candidates": {"web": [_document(result, rank) for rank, result in enumerate(told)]}}


async def _consented(query: str, runtime: Runtime[RunContext], ask_consent: AskConsent | None) -> bool:
    """Consent as set, else as a person says; where nobody can be asked it is no."""
    if runtime.context.web_consent == "yes":
        return True
    if ask_consent is None:
        emit(runtime, ConsentEvent(query=query, granted=False))
        return False
    emit(runtime, ConsentEvent(query=query))
    granted = await ask_consent(query)
    emit(runtime, ConsentEvent(query=query, granted=granted))
    return granted


def _document(result: WebResult, rank: int) -> Document:
    """The result as a passage. Its score says nothing but the rank."""
    score, text = 1.0 / (1 + rank), _text(result)
    return Document(
        content=text,
        metadata={
            "chunk_id": _hash(result.url, text),
            "doc_id": _hash(result.url),
            "file_name": result.title or urlsplit(result.url).hostname or result.url,
            "file_hash": "",
            "chunk_index": 0,
            "total_chunks": 1,
            "source_type": "web",
            "start_char": 0,
            "end_char": len(text),
            "headings": [result.title] if result.title else [],
            "url": result.url,
            "title": result.title,
            "retrieved_at": result.retrieved_at,
            "found_by": {"web": Found(rank=rank, score=score)},
        },
        score=score,
        source="web",
        rerank_score=0.0,
    )


def _text(result: WebResult) -> str:
    return (result.text or result.snippet).strip()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
