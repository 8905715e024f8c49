"""The HTTP application: one open Leadline app behind it, for as long as the server runs.

Knows routes, the shape of errors and who may call. Doesn't know how a question is answered: that is the graph's.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI

from leadline import __version__
from leadline.api.about import router as about
from leadline.api.chat import router as chat
from leadline.api.chunks import router as chunks
from leadline.api.collections import router as collections
from leadline.api.cors import OtherPages
from leadline.api.documents import router as documents
from leadline.api.gate import TokenBook, TokenGate
from leadline.api.headers import SecurityHeaders
from leadline.api.health import router as health
from leadline.api.hosts import KnownHosts, is_loopback
from leadline.api.jobs import router as jobs
from leadline.api.jobs import running_jobs
from leadline.api.limits import Limits, Unread
from leadline.api.metrics import Metrics, Observed
from leadline.api.metrics import router as metrics_route
from leadline.api.openai_api import router as openai
from leadline.api.page import router as page
from leadline.api.problems import Faults, install_handlers
from leadline.api.queries import refuse_unknown_queries
from leadline.api.schemas import ErrorResponse
from leadline.api.stats import router as stats
from leadline.api.threads import router as threads
from leadline.config import Settings
from leadline.graph.run import open_app
from leadline.knowledge import Library
from leadline.nodes import languages


def create_app(settings: Settings, *, library: Library | None = None) -> FastAPI:
    """The application for `settings`. Stores and models are opened when the server starts, not here.

    A `library` that is given is open already, and stays open. The interactive documentation is off, since its page is
    loaded from other people's servers; `/openapi.json` has the schema.
    """

    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(languages.load)  # else the first question in need of it would hold up all others
        async with open_app(settings, library=library) as app:
            api.state.leadline = app
            app.observers.append(metrics)
            async with running_jobs(app) as api.state.jobs:
                yield

    api = FastAPI(
        title="Leadline",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(refuse_unknown_queries)],
        responses={"default": {"model": ErrorResponse}},
    )
    api.state.settings = settings
    api.state.metrics = metrics
    _guard(api, settings)
    api.add_middleware(Observed, metrics=metrics)  # the last one is the outermost: it sees what the others refuse
    install_handlers(api)
    api.include_router(openai)
    for router in (chat, threads, health, about, documents, jobs, chunks, collections, stats, metrics_route, page):
        api.include_router(router)
    return api


def _guard(api: FastAPI, settings: Settings) -> None:
    """What a request passes on its way in, the last one here first."""
    api.add_middleware(Limits, settings=settings)
    others = [host for host in (settings.host, *settings.allowed_hosts) if not is_loopback(host)]
    api.add_middleware(TokenGate, book=TokenBook(settings.data_dir, always=bool(others)))
    if settings.cors_origins:
        api.add_middleware(OtherPages, origins=settings.cors_origins)
    api.add_middleware(KnownHosts, hosts=settings.allowed_hosts, origins=settings.cors_origins)
    api.add_middleware(Faults)
    api.add_middleware(SecurityHeaders)
    api.add_middleware(Unread)
