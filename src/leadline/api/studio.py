"""Leadline's own HTTP API beside LangGraph's in one server: `langgraph dev` mounts `app`.

LangGraph has /threads, /runs, /docs and more of its own, so ours are under /leadline. Both use one open library, which
is opened here. Importing this module reads nothing.
"""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from leadline.api.app import create_app
from leadline.api.hosts import KnownHosts
from leadline.api.problems import problem
from leadline.graph.studio import open_installation

PREFIX: Final = "/leadline"
STUDIO: Final = "https://smith.langchain.com"  # where the page of LangGraph Studio is from


class _Mounted:
    """The API once it is open, as if it were at the root of a server."""

    def __init__(self) -> None:
        self.api: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.api is not None, "requests come after the server has started"
        path = scope["path"].removeprefix(PREFIX) or "/"
        await self.api({**scope, "path": path, "raw_path": path.encode(), "root_path": ""}, receive, send)


class OnlyThisMachine:
    """ASGI middleware: refuses clients of other machines, since LangGraph's own routes ask nobody for a token."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers 403."""
        if scope["type"] == "http" and not _is_here(scope.get("client")):
            hint = "`leadline serve` is the server for other machines; it has tokens."
            response = problem(403, "forbidden_host", "LangGraph Studio's server is for this machine only.", hint)
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_here(client: tuple[str, int] | None) -> bool:
    """Whether the address is this machine's; one that isn't known is taken for another's."""
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


_mounted = _Mounted()


async def _to_page(_request: Request) -> RedirectResponse:
    return RedirectResponse(f"{PREFIX}/")


@asynccontextmanager
async def _lifespan(_app: Starlette) -> AsyncIterator[None]:
    async with open_installation() as (settings, library):
        api = create_app(settings, library=library)
        async with api.router.lifespan_context(api):
            _mounted.api = api
            yield


app = Starlette(
    routes=[Route(PREFIX, _to_page), Mount(PREFIX, app=_mounted)],
    lifespan=_lifespan,
    middleware=[Middleware(OnlyThisMachine), Middleware(KnownHosts, origins=[STUDIO])],
)
