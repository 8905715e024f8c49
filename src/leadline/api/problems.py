"""One JSON error shape for every status, whatever went wrong and wherever it was noticed."""

import asyncio
import logging
import re
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leadline.api.access import caller_of
from leadline.api.cleaning import Cleaning
from leadline.api.ids import ID_PATTERN
from leadline.api.schemas import THREAD_PATTERN, ErrorBody, ErrorResponse
from leadline.config import COLLECTION_PATTERN
from leadline.errors import (
    CollectionUnknown,
    ConfigError,
    Forbidden,
    InvalidFilter,
    LeadlineError,
    LeaseHeld,
    ModelUnavailable,
    NotThere,
    QuestionRefused,
    StoreBusy,
    ThreadBusy,
    ThreadElsewhere,
    ThreadUnknown,
    UploadRefused,
    UploadTooLarge,
)

log = logging.getLogger(__name__)

# The first that fits; anything else is a fault of the server.
STATUSES: tuple[tuple[type[LeadlineError], int], ...] = (
    (CollectionUnknown, 404),
    (Forbidden, 403),
    (NotThere, 404),
    (UploadTooLarge, 413),
    (UploadRefused, 422),
    (InvalidFilter, 422),
    (ThreadBusy, 409),
    (ThreadElsewhere, 409),
    (ThreadUnknown, 404),
    (ConfigError, 422),
    (QuestionRefused, 422),
    (LeaseHeld, 503),
    (StoreBusy, 503),
    (ModelUnavailable, 503),
)
CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 408: "too_slow", 413: "too_large"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# What pydantic calls the kinds that a value may be of: no names of a client's.
_KIND = re.compile(r"constrained-str|(?:function-\w+|list|dict)\[.*\]")
# What it says where an object was to come and a text did.
_NO_OBJECT = ("model_attributes_type", "model_type", "dict_type")
COLLECTIONS = "GET /collections lists those that you may ask."
# Pydantic's name of what is wrong, and our words for it; what it says of the bounds is filled in.
WORDS: Mapping[str, str] = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "string_unicode": "half of a surrogate pair is no character",
    "string_type": "it has to be a text",
    "string_too_short": "it has to have at least {min_length} character(s)",
    "string_too_long": "it may have at most {max_length} characters",
    "bool_type": "it has to be true or false",
    "literal_error": "it has to be {expected}",
    "list_type": "it has to be a list",
    "greater_than_equal": "it has to be at least {ge}",
    "less_than_equal": "it may be at most {le}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "it has to be a whole number"),
    **dict.fromkeys(_NO_OBJECT, "it has to be a JSON object: fields in braces"),
}
# What a text has to look like, by the pattern that it has to match.
SHAPES: Mapping[str, str] = {
    COLLECTION_PATTERN: "it has to be 1 to 63 of A-Z, a-z, 0-9, _ and -, with a letter or a digit first",
    THREAD_PATTERN: "it has to be 1 to 128 of A-Z, a-z, 0-9, _ . : and -, with a letter or a digit first",
    ID_PATTERN: "it may have no control characters",
}
MAX_PROBLEMS = 10
MAX_PROBLEM_CHARS = 200


def status_of(error: LeadlineError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def status_of_code(code: str) -> int:
    """The HTTP status of an error that is known by its code only, as in a result."""
    kinds = [LeadlineError]
    while kinds:
        kind = kinds.pop()
        if kind.code == code:
            return next((status for known, status in STATUSES if issubclass(kind, known)), 500)
        kinds += kind.__subclasses__()
    return 500


def problem(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """A response in the error shape."""
    body = ErrorResponse(error=ErrorBody(code=code, message=message, hint=hint))
    return JSONResponse(body.model_dump(), status_code=status, headers=dict(headers or {}))


def install_handlers(api: FastAPI) -> None:
    """Makes `api` answer every error in the one shape."""
    api.exception_handler(LeadlineError)(_known)
    api.exception_handler(RequestValidationError)(_invalid)
    api.exception_handler(HTTPException)(_http)


class ResponseBroken(RuntimeError):
    """A response that had begun could not be finished; the connection is closed, so that nobody takes it for whole."""


class Faults:
    """ASGI middleware: answers what nobody expected with 500.

    The log gets the kind of the error and where it was raised. Its message can hold text of documents, and is left out.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on. Raises ResponseBroken where it is too late to answer."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            # So a server ends those who are not done in time. It would log the way here for each; nobody else waits.
            if scope["type"] != "http":
                raise
            if not begun:
                await problem(503, "stopping", "The server is ending.", "Ask again.")(scope, receive, send)
        except Exception as error:
            if scope["type"] != "http":
                raise
            kind, frames = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            log.error("%s %s failed: %s, raised at\n%s", scope["method"], _path(scope), kind, frames)
            if begun:
                raise ResponseBroken(kind) from None
            hint = "This is a fault in Leadline; the server's log has the details."
            await problem(500, "internal", f"Unexpected {kind}.", hint)(scope, receive, send)


async def _known(request: Request, error: LeadlineError) -> JSONResponse:
    message, hint = error.message, error.hint
    who = caller_of(request.scope)
    if isinstance(error, CollectionUnknown) and (who.collections is not None or not hint):
        hint = COLLECTIONS  # its own names the collections of others
    if who.collections is not None and isinstance(error, ThreadElsewhere):  # so does all of this one
        message, hint = "This conversation is about another collection.", "Begin another conversation."
    told = Cleaning(who, request.app.state.settings.data_dir).text
    return problem(status_of(error), error.code, told(message), told(hint))


async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    wrong = "" if _is_json(request) else _no_json(error)
    if wrong:
        return problem(422, "invalid_request", wrong, "Send the header Content-Type: application/json.")
    return problem(422, "invalid_request", what_is_wrong(error), "The allowed fields are in /openapi.json.")


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and kind.endswith(("/json", "+json"))


def _no_json(error: RequestValidationError) -> str:
    """What is wrong with a body that was not read as JSON for want of its header; empty where that isn't it."""
    unread = any(e["loc"] == ("body",) and e["type"] in _NO_OBJECT for e in error.errors())
    return "body: it was not read as JSON, since the header Content-Type doesn't say that it is." if unread else ""


def what_is_wrong(error: RequestValidationError) -> str:
    """Each field that is wrong and why, in one sentence of bounded length."""
    # A query that may be left out may be None inside, which no client can say.
    told = [e for e in error.errors() if (e["loc"][0], e["type"]) != ("query", "none_required")]
    found = [_told(e)[:MAX_PROBLEM_CHARS] for e in told]
    more = f"; and {len(found) - MAX_PROBLEMS} more" if len(found) > MAX_PROBLEMS else ""
    return f"{'; '.join(found[:MAX_PROBLEMS])}{more}."


def _told(error: Mapping[str, Any]) -> str:
    kind, loc, known = error["type"], error["loc"], error.get("ctx", {})
    if kind == "json_invalid":  # the place is a number: how many characters were read
        return f"{loc[0]}: it is no JSON from character {loc[-1] + 1} on: {known['error']}"
    words = SHAPES.get(known["pattern"]) if kind == "string_pattern_mismatch" else WORDS.get(kind)
    return f"{place(loc)}: {words.format(**known) if words else error['msg'].removeprefix('Value error, ')}"


def place(loc: Sequence[str | int]) -> str:
    """The way to a field, as a client wrote it."""
    return ".".join(str(part) for part in loc if not _KIND.fullmatch(str(part)))


async def _http(request: Request, error: HTTPException) -> JSONResponse:
    code = CODES.get(error.status_code, f"http_{error.status_code}")
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods(request))  # the framework names those of one of the routes only
    return problem(error.status_code, code, str(error.detail), headers=headers)


def _methods(request: Request) -> list[str]:
    """What this address can be asked for."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    routes = request.app.routes
    return [m for m, scope in scopes.items() if any(route.matches(scope)[0] is Match.FULL for route in routes)]


def _path(scope: Scope) -> str:
    return str(scope.get("raw_path", b"").decode("latin-1"))
