"""`/v1/chat/completions` and `/v1/models`: Leadline as a model, for programs that speak OpenAI's protocol.

Errors have the one shape of this server, which OpenAI's clients read as well, and with it the type and the parameter
that theirs have. A request that isn't right is a 400 here.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute

from leadline.api.access import Caller, Who
from leadline.api.asked import CLIENT_GONE, while_connected
from leadline.api.cleaning import Cleaning
from leadline.api.collections import known_collection
from leadline.api.cut import cut_off
from leadline.api.openai_schemas import MODEL, CompletionRequest, collection_of
from leadline.api.openai_wire import INTERRUPTED, Reply, as_openai, failure
from leadline.api.problems import place, status_of_code, what_is_wrong
from leadline.api.sse import HEADERS, begin_stream
from leadline.errors import ConfigError, InvalidFilter, QuestionRefused
from leadline.graph.opening import refuse_knobs
from leadline.graph.run import App

MAX_NAME = 200
BAD_REQUEST, NOT_FOUND, UNPROCESSABLE, BAD_GATEWAY = 400, 404, 422, 502


class _Route(APIRoute):
    """A route whose bad requests are 400, as OpenAI's are."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                _, *where = error.errors()[0]["loc"]  # body, then a field, or where it is no JSON, or nothing
                return _refused(what_is_wrong(error), place(where) if where and isinstance(where[0], str) else None)
            except ConfigError as error:  # an LLM that isn't offered
                return _wrong(BAD_REQUEST, error.code, error.message, error.hint, "leadline.llm")
            except InvalidFilter as error:
                return _wrong(UNPROCESSABLE, error.code, error.message, error.hint, "leadline.filters")
            except QuestionRefused as error:
                return _wrong(BAD_REQUEST, error.code, error.message, error.hint, "messages")

        return handler


router = APIRouter(prefix="/v1", tags=["openai"], route_class=_Route)


@router.get("/models")
async def models(request: Request, who: Who) -> dict[str, Any]:
    """The models of this caller: `leadline` asks the collection of `GET /about`, `leadline/NAME` another."""
    return {"object": "list", "data": [_model(name) for name in await _names(request.app.state.leadline, who)]}


@router.get("/models/{model:path}", response_model=None)
async def model(model: str, request: Request, who: Who) -> Response:
    """One of them."""
    found = len(model) <= MAX_NAME and model in await _names(request.app.state.leadline, who)
    return JSONResponse(_model(model)) if found else _no_model(model[:MAX_NAME])


@router.post("/chat/completions", response_model=None, responses={200: {"content": {"text/event-stream": {}}}})
async def completions(asked: CompletionRequest, request: Request, who: Who) -> Response:
    """Answers the last message of a conversation, whole or as a stream of chunks.

    The answer is text with `[n]`; what each points to is in `annotations`, and the whole result in `leadline`.
    """
    app: App = request.app.state.leadline
    if asked.model not in await _names(app, who):
        return _no_model(asked.model)
    if refused := asked.why_not():
        param, reason = refused
        return _refused(reason, param)
    collection = await known_collection(request, who, collection_of(asked.model))
    context = asked.leadline.context(app.settings, collection)
    await refuse_knobs(app.library, context)
    reply = Reply(asked.model, str(request.base_url), bool(context.llm), asked.usage_wanted)
    clean = Cleaning(who, app.settings.data_dir)
    if asked.stream:
        events = clean.events(app.stream(asked.question, context=context, history=asked.history()))
        cut = cut_off(asked.question, context)
        frames = await begin_stream(events, reply.writer(), heartbeat_s=app.settings.heartbeat_s, cut=cut)
        return StreamingResponse(frames, media_type="text/event-stream", headers=HEADERS)
    work = app.ask(asked.question, context=context, history=asked.history())
    result = await while_connected(request, work)
    if result is None:
        return Response(status_code=CLIENT_GONE)
    result = clean.result(result)
    if error := failure(result):
        status = BAD_GATEWAY if error["code"] == INTERRUPTED else status_of_code(error["code"])
        return JSONResponse({"error": as_openai(error)}, status)
    return JSONResponse(reply.completion(result), headers=HEADERS)


async def _names(app: App, who: Caller) -> list[str]:
    seen = [name for name in await app.library.collections() if who.sees(name)]
    own = [MODEL] if who.default(app.settings.run.collection) in seen else []
    return own + [f"{MODEL}/{name}" for name in seen]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


def _refused(reason: str, param: str | None) -> Response:
    return _wrong(BAD_REQUEST, "invalid_request", reason, "docs/openai.md says what is understood.", param)


def _no_model(name: str) -> Response:
    hint = f"{MODEL} and {MODEL}/COLLECTION are there; GET /v1/models lists them."
    return _wrong(NOT_FOUND, "model_not_found", f"There is no model {name}.", hint, "model")


def _wrong(status: int, code: str, message: str, hint: str, param: str | None) -> Response:
    told = {"code": code, "message": message, "hint": hint}
    return JSONResponse({"error": as_openai(told, kind="invalid_request_error", param=param)}, status)
