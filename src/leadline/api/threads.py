"""Conversations over HTTP. Each belongs to the caller that began it, and to a collection that they see."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from leadline.api.access import Caller, Who
from leadline.api.collections import OneOrAll
from leadline.errors import ThreadUnknown
from leadline.graph.conversations import ThreadInfo, ThreadView

router = APIRouter(tags=["threads"])

ThreadId = Annotated[str, Path(max_length=200)]


class ThreadSummary(BaseModel):
    """A conversation in a list: `question` is its first one, `turns` counts questions, `updated_at` is ISO 8601."""

    thread_id: str
    collection: str
    turns: int
    question: str
    updated_at: str


class ThreadList(BaseModel):
    """The caller's conversations, the one used last first."""

    threads: list[ThreadSummary]


class ThreadMessage(BaseModel):
    """One thing said; `role` is user or assistant."""

    role: str
    text: str


class ThreadContent(ThreadSummary):
    """A whole conversation, without the answers whose documents are gone. `result` is that of its last turn."""

    messages: list[ThreadMessage]
    result: dict[str, Any] | None = Field(description="A Result as /chat gives it; null where its documents are gone.")


@router.get("/threads")
async def threads(request: Request, who: Who, collection: OneOrAll = None) -> ThreadList:
    """The caller's conversations, of one collection or of all."""
    if collection is not None:
        who.need(collection)
    found = [mine for info in await request.app.state.leadline.threads() if (mine := _mine(who, info))]
    return ThreadList(threads=[each for each in found if collection in (None, each.collection)])


@router.get("/threads/{thread_id}")
async def thread(thread_id: ThreadId, request: Request, who: Who) -> ThreadContent:
    """One conversation, with what was said in it."""
    summary, view = await _found(thread_id, request, who)
    said = [ThreadMessage.model_validate(message) for message in view.messages]
    return ThreadContent(**summary.model_dump(), messages=said, result=_json(view))


@router.delete("/threads/{thread_id}", status_code=204)
async def delete_thread(thread_id: ThreadId, request: Request, who: Who) -> Response:
    """Removes a conversation, its bytes too. 409 while a run is on in it."""
    await _found(thread_id, request, who)
    await request.app.state.leadline.delete_thread(who.thread(thread_id))
    return Response(status_code=204)


async def _found(thread_id: str, request: Request, who: Caller) -> tuple[ThreadSummary, ThreadView]:
    stored_id = who.thread(thread_id)
    if who.own_thread(stored_id) != thread_id or not thread_id.isprintable():
        raise _unknown(thread_id)
    try:
        view: ThreadView = await request.app.state.leadline.thread(stored_id)
    except ThreadUnknown:
        raise _unknown(thread_id) from None
    summary = _mine(who, view.info)
    if summary is None:  # about a collection that this caller may no longer see
        raise _unknown(thread_id)
    return summary, view


def _mine(who: Caller, info: ThreadInfo) -> ThreadSummary | None:
    thread_id = who.own_thread(info.thread_id)
    if thread_id is None or not who.sees(info.collection):
        return None
    return ThreadSummary(
        thread_id=thread_id,
        collection=info.collection,
        turns=info.turns,
        question=info.question,
        updated_at=info.updated_at,
    )


def _json(view: ThreadView) -> dict[str, Any] | None:
    return None if view.result is None else dict(view.result)


def _unknown(thread_id: str) -> ThreadUnknown:
    return ThreadUnknown(f"There is no conversation {thread_id[:200]}.")
