"""Refuses requests that name another host than this machine.

A page on the web can make a browser call a server on loopback under a name of its own (DNS rebinding); the Host header
gives it away, and so does an Origin of another machine. Doesn't know who the user is: there are no tokens.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from leadline.api.problems import problem

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class LoopbackOnly:
    """ASGI middleware: Host, and Origin where there is one, must be this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers 403."""
        if scope["type"] == "http" and (stranger := _stranger(Headers(scope=scope))):
            response = problem(403, "forbidden_host", f"Requests by way of {stranger} are not served.")
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    return host.strip("[]").lower() in LOOPBACK


def _stranger(headers: Headers) -> str:
    origin = headers.get("origin")
    for url in (f"//{headers.get('host', '')}", *([origin] if origin else [])):
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:
            host = ""
        if not is_loopback(host):
            return host or "an unnamed host"
    return ""
