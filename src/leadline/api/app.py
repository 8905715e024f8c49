"""The HTTP application: one open Leadline app behind it, for as long as the server runs.

Knows routes, the shape of errors and who may call. Doesn't know how a question is answered: that is the graph's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from leadline import __version__
from leadline.api.chat import router as chat
from leadline.api.health import router as health
from leadline.api.hosts import LoopbackOnly
from leadline.api.metrics import Metrics, Observed
from leadline.api.metrics import router as metrics_route
from leadline.api.problems import install_handlers
from leadline.api.schemas import ErrorResponse
from leadline.config import Settings
from leadline.graph.run import open_app


def create_app(settings: Settings) -> FastAPI:
    """The application for `settings`. Stores and models are opened when the server starts, not here.

    The interactive documentation is off, since its page is loaded from other people's servers; `/openapi.json` has
    the schema.
    """

    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        async with open_app(settings) as app:
            api.state.leadline = app
            app.observers.append(metrics)
            yield

    api = FastAPI(
        title="Leadline",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": ErrorResponse}},
    )
    api.state.settings = settings
    api.state.metrics = metrics
    api.add_middleware(LoopbackOnly)
    api.add_middleware(Observed, metrics=metrics)  # the last one is the outermost: it sees what the others refuse
    install_handlers(api)
    api.include_router(chat)
    api.include_router(health)
    api.include_router(metrics_route)
    return api
