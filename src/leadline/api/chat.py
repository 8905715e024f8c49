"""`POST /chat`: a question in, events out as they happen, or the result when all is done."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from leadline.api.schemas import ChatRequest
from leadline.api.sse import HEADERS, begin_stream
from leadline.state import Result

router = APIRouter(tags=["chat"])
CLIENT_GONE = 499  # nobody reads it; named so that the access log tells it from an error
POLL_S = 0.25


@router.post("/chat", response_model=None, responses={200: {"content": {"text/event-stream": {}}}})
async def chat(asked: ChatRequest, request: Request) -> Response:
    """Answers a question. As a stream: `step`, `query`, `token`, `citation`, …, then one `final` with the result.

    Nobody can be asked here, so the web is searched only where the server's settings allow it. A client that goes
    away ends its run.
    """
    app, settings = request.app.state.leadline, request.app.state.settings
    context = asked.context(settings.run)
    if asked.stream:
        events = app.stream(asked.question, context=context, thread_id=asked.thread_id)
        frames = await begin_stream(events)
        return StreamingResponse(frames, media_type="text/event-stream", headers=HEADERS)
    result = await _while_connected(request, app.ask(asked.question, context=context, thread_id=asked.thread_id))
    return Response(status_code=CLIENT_GONE) if result is None else JSONResponse(result)


async def _while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result, or None when the client went away first; the run is cancelled then."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=POLL_S)
            if not task.done() and await request.is_disconnected():
                return None
        return task.result()
    finally:
        task.cancel()
