"""Lets pages of named origins ask from a browser. An origin is never reflected; there are no cookies."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from leadline.api.problems import problem


class OtherPages(CORSMiddleware):
    """ASGI middleware: CORS for these origins, with refusals in the one shape of errors."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After", "X-Run-Id"],
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """What may be sent from there."""
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        said = bytes(answer.body).decode()
        headers = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
        return problem(400, "cors", f"{said}.", "Allowed: GET, POST, DELETE, with a token and JSON.", headers)
