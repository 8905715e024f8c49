"""One JSON error shape for every status, whatever went wrong and wherever it was noticed."""

import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from leadline.api.schemas import ErrorBody, ErrorResponse
from leadline.errors import (
    CollectionUnknown,
    ConfigError,
    Forbidden,
    InvalidFilter,
    LeadlineError,
    LeaseHeld,
    ModelUnavailable,
    NotThere,
    ThreadBusy,
    ThreadElsewhere,
    ThreadUnknown,
    UploadRefused,
    UploadTooLarge,
)
from leadline.telemetry import run_id

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
    (LeaseHeld, 503),
    (ModelUnavailable, 503),
)
CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}


def status_of(error: LeadlineError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


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
    api.exception_handler(Exception)(_unexpected)


async def _known(_request: Request, error: LeadlineError) -> JSONResponse:
    return problem(status_of(error), error.code, error.message, error.hint)


async def _invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
    found = [f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()]
    return problem(422, "invalid_request", f"{'; '.join(found)}.", "The allowed fields are in /openapi.json.")


async def _http(_request: Request, error: HTTPException) -> JSONResponse:
    code = CODES.get(error.status_code, f"http_{error.status_code}")
    return problem(error.status_code, code, str(error.detail), headers=error.headers)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    hint = "This is a fault in Leadline; the server's log has the details."
    return problem(500, "internal", f"Unexpected {type(error).__name__}.", hint, {"X-Run-Id": run_id()})
