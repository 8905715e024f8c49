"""`POST /chat`: a question in, events out as they happen, or the result when all is done."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from leadline.api.access import Who
from leadline.api.asked import CLIENT_GONE, while_connected
from leadline.api.cleaning import Cleaning
from leadline.api.collections import known_collection
from leadline.api.cut import cut_off
from leadline.api.schemas import ChatRequest
from leadline.api.sse import HEADERS, begin_stream, numbered
from leadline.graph.opening import refuse_knobs
from leadline.graph.run import App

router = APIRouter(tags=["chat"])


@router.post("/chat", response_model=None, responses={200: {"content": {"text/event-stream": {}}}})
async def chat(asked: ChatRequest, request: Request, who: Who) -> Response:
    """Answers a question. As a stream: `step`, `query`, `token`, `citation`, …, then one `final` with the result.

    Nobody can be asked while it runs. A run that would have searched the web and had no consent has a `consent` event
    with the query; a client that shows it to its person may ask again with `web_consent`. A client that goes away ends
    its run.
    """
    app: App = request.app.state.leadline
    context = asked.context(app.settings, await known_collection(request, who, asked.collection))
    await refuse_knobs(app.library, context)
    thread = who.thread(asked.thread_id) if asked.thread_id else None
    clean = Cleaning(who, app.settings.data_dir)
    if asked.stream:
        events = clean.events(app.stream(asked.question, context=context, thread_id=thread))
        cut = cut_off(asked.question, context)
        frames = await begin_stream(events, numbered(), heartbeat_s=app.settings.heartbeat_s, cut=cut)
        return StreamingResponse(frames, media_type="text/event-stream", headers=HEADERS)
    result = await while_connected(request, app.ask(asked.question, context=context, thread_id=thread))
    return Response(status_code=CLIENT_GONE) if result is None else JSONResponse(clean.result(result))
