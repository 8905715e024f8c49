"""Leadline's own HTTP API beside LangGraph's in one server: `langgraph dev` mounts `app`.

LangGraph has /threads, /runs, /docs and more of its own, so ours are under /leadline. Both use one open library, which
is opened here. Importing this module reads nothing.
"""

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
    middleware=[Middleware(KnownHosts, origins=[STUDIO])],
)
