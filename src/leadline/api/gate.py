"""Lets in whoever has a token, and says who that is. Without tokens everybody at this machine is let in.

Doesn't know what a caller may see: that is asked of the `Caller` where a route knows what is wanted.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from leadline.api.access import NOBODY, Caller
from leadline.api.problems import problem
from leadline.api.rates import Rates
from leadline.api.tokens import FILE, Token, matching, read_tokens
from leadline.errors import StoreDamaged

log = logging.getLogger(__name__)

# What a browser asks for before it has a token; none of it is anybody's.
OPEN: Final = frozenset({"/", "/health", "/about"})
OPEN_UNDER: Final = "/static/"
WRONG_PER_MINUTE: Final = 30  # of one address; whoever has a right token is never counted


class TokenBook:
    """The tokens of a data folder, read again when their file changes.

    They are needed `always`, or once there is a file of them, and then as long as the process lives.
    """

    def __init__(self, folder: Path, *, always: bool = False) -> None:
        self._folder = folder
        self._always = always
        self._read: tuple[int, ...] = ()
        self._tokens: tuple[Token, ...] | None = None

    def tokens(self) -> tuple[Token, ...] | None:
        """Those of now; None where none are needed. Raises StoreDamaged."""
        try:
            found = (self._folder / FILE).stat()
            state = (found.st_mtime_ns, found.st_size, found.st_ino)
        except FileNotFoundError:
            return () if self._always or self._tokens is not None else None
        if state != self._read:
            self._tokens, self._read = read_tokens(self._folder), state
        return self._tokens


class TokenGate:
    """ASGI middleware: finds out who is asking, and answers strangers itself."""

    def __init__(self, app: ASGIApp, book: TokenBook) -> None:
        self.app = app
        self._book = book
        self._wrong = Rates(WRONG_PER_MINUTE)
        # Of its own: whatever else keeps all threads busy, nobody waits at the gate.
        self._thread = ThreadPoolExecutor(1, "leadline-tokens")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on with its caller, or answers 401, 429, or 503 where the tokens can't be read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            tokens = await asyncio.get_running_loop().run_in_executor(self._thread, self._book.tokens)
        except StoreDamaged as error:
            log.error("%s", error)
            answer = problem(503, "tokens", "Nobody can be let in: the server's tokens can't be read.")
            await answer(scope, receive, send)
            return
        found = Caller() if tokens is None else self._caller(scope, tokens)
        if isinstance(found, Response):
            await found(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = found
        scope["state"]["token_needed"] = tokens is not None
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope, tokens: tuple[Token, ...]) -> Caller | Response:
        given = Headers(scope=scope).get("authorization")
        if given is None and _is_open(scope):
            return NOBODY
        scheme, _, secret = (given or "").partition(" ")
        token = matching(tokens, secret.strip()) if scheme.lower() == "bearer" else None
        if token is not None:
            seen = None if token.collections is None else frozenset(token.collections)
            return Caller(token.name, seen, token.may_write)
        return self._refusal(scope, "A token is needed." if given is None else "This token is not known.")

    def _refusal(self, scope: Scope, why: str) -> Response:
        client = scope.get("client")
        wait_s = self._wrong.take(client[0] if client else "")
        if wait_s:
            again = {"Retry-After": str(wait_s)}
            return problem(429, "rate_limited", "Too many requests without a right token.", headers=again)
        hint = "Send it as `Authorization: Bearer …`; `leadline tokens add` makes one."
        return problem(401, "unauthorized", why, hint, headers={"WWW-Authenticate": 'Bearer realm="leadline"'})


def _is_open(scope: Scope) -> bool:
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return scope["method"] in ("GET", "HEAD") and (path in OPEN or path.startswith(OPEN_UNDER))
