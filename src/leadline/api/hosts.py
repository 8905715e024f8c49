"""Refuses requests under a name that isn't this server's, and from pages that aren't its own or allowed.

A page on the web can make a browser call a server on loopback under a name of its own (DNS rebinding), which the Host
header gives away, or send it a form, which the Origin gives away. Doesn't know who the user is.
"""

import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# A host and a port it may have, and nothing else: of evil@localhost a lenient reader sees the part behind the @ only.
_PLAIN = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]*)?", re.IGNORECASE | re.ASCII)


class KnownHosts:
    """ASGI middleware: Host must be this machine or an allowed name, Origin (if any) the same or an allowed one."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self.app = app
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers 403."""
        if scope["type"] == "http" and (stranger := self._stranger(Headers(scope=scope))):
            from leadline.api.problems import problem  # here: who only asks what is loopback has no need of all this

            hint = "A server behind a proxy is told its names by LEADLINE_ALLOWED_HOSTS."
            response = problem(403, "forbidden_host", f"Requests by way of {stranger} are not served.", hint)
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _stranger(self, headers: Headers) -> str:
        host = headers.get("host", "")
        for named in headers.getlist("host") or [""]:  # httptools lets two of them pass
            if _host_of(named) not in self._hosts:
                return named[:100] or "an unnamed host"
        for origin in headers.getlist("origin"):
            if not self._is_ours(origin.lower(), host.lower()):
                return f"the origin {origin[:100]}"
        return ""

    def _is_ours(self, origin: str, host: str) -> bool:
        """The page of this very address, one of an allowed name (a proxy may not pass Host on), or an allowed one."""
        if origin in self._origins or origin in (f"http://{host}", f"https://{host}"):
            return True
        scheme, _, rest = origin.partition("://")
        return scheme in ("http", "https") and _host_of(rest) in self._hosts - LOOPBACK


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    return host.strip("[]").lower() in LOOPBACK


def _host_of(written: str) -> str:
    """The host of host[:port]; empty where that isn't what is written."""
    found = _PLAIN.fullmatch(written)
    return found[1].strip("[]").rstrip(".").lower() if found else ""
