"""How much one caller may ask for, bytes and seconds of a body, requests a minute and at once; and all callers at once.

Knows sizes and counts only. Doesn't know what is asked: every POST is a question or an upload.
"""

import asyncio
from collections import Counter
from typing import Final

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leadline.api.access import caller_of
from leadline.api.problems import problem
from leadline.api.rates import Rates
from leadline.config import Settings

MAX_BODY: Final = 4_000_000
PARTS: Final = 1_000_000  # of an upload: what stands around the files
BODY_PAUSE_S: Final = 30.0
UPLOADS: Final = "/documents"
# A connection whose body isn't read to its end can't be used again.
CLOSE: Final = {"Connection": "close"}


class Limits:
    """ASGI middleware: refuses what is too much: 408, 413, 429 or 503. In memory, so each worker counts for itself."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._settings = settings
        self._rates = Rates(settings.rate_per_minute)
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on with a bounded body, or refuses it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit, refusal = self._body_limit(scope)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            await _too_large(refusal)(scope, receive, send)
            return
        body = BoundedBody(receive, limit, refusal)
        if scope["method"] != "POST":
            await self.app(scope, body.receive, send)
            return
        name = caller_of(scope).name
        if refused := self._too_much(name):
            await refused(scope, receive, send)
            return
        self._running[name] += 1
        try:
            await self.app(scope, body.receive, send)
        finally:
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]

    def _body_limit(self, scope: Scope) -> tuple[int, str]:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if scope["method"] == "POST" and path == UPLOADS:
            most = self._settings.max_upload_mb
            refusal = f"An upload may have {most:g} MB. Send several, or have LEADLINE_MAX_UPLOAD_MB raised."
            return int(most * 1_000_000) + PARTS, refusal
        return MAX_BODY, f"The body of a request may have {MAX_BODY // 1_000_000} MB."

    def _too_much(self, name: str) -> Response | None:
        most = self._settings.max_running
        if self._running[name] >= most:
            message = f"{most} requests of yours are being worked on, which is the most at once."
            return problem(429, "too_many_at_once", message, "Wait for one to end.", {"Retry-After": "1"})
        if self._running.total() >= self._settings.max_running_all:  # not counted as one of this minute
            message = "This server is working on as many requests as it takes at once."
            return problem(503, "busy", message, "Ask again in a moment.", {"Retry-After": "1"})
        if wait_s := self._rates.take(name):
            message = f"You may ask and upload {self._settings.rate_per_minute} times a minute."
            return problem(429, "rate_limited", message, "Wait a little.", {"Retry-After": str(wait_s)})
        return None


class BoundedBody:
    """A request's body, which ends with an error when it is too long or stops coming."""

    def __init__(self, receive: Receive, limit: int, refusal: str) -> None:
        self._receive = receive
        self._left = limit
        self._refusal = refusal
        self._whole = False

    async def receive(self) -> Message:
        """The next message. Raises HTTPException."""
        if self._whole:  # what comes next is the client's going away, for which there is all the time
            return await self._receive()
        try:
            async with asyncio.timeout(BODY_PAUSE_S):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"Nothing more of the body came for {BODY_PAUSE_S:g} s.") from None
        if message["type"] == "http.request":
            self._whole = not message.get("more_body", False)
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise HTTPException(413, self._refusal)
        return message


class Unread:
    """ASGI middleware: an answer given before all of the body has come ends the connection, so that nobody reads on.

    Stands around whoever refuses: a body without an end is sent by those, too, who have no right to send one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on."""
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        whole = False

        async def receiving() -> Message:
            nonlocal whole
            message = await receive()
            whole = whole or not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and not whole:
                MutableHeaders(scope=message).update(CLOSE)
            await send(message)

        await self.app(scope, receiving, sending)


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _too_large(refusal: str) -> Response:
    return problem(413, "too_large", refusal)
