"""Whether the server lives, and whether it can answer."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from leadline import __version__
from leadline.api.problems import problem
from leadline.errors import LeadlineError

router = APIRouter(tags=["health"])


@router.get("/")
async def about() -> dict[str, str]:
    """What this server is."""
    return {"name": "Leadline", "version": __version__, "schema": "/openapi.json", "chat": "POST /chat"}


@router.get("/health")
async def health() -> dict[str, str]:
    """The process lives. Says nothing of stores and models: that is `/ready`."""
    return {"status": "ok"}


@router.get("/ready", response_model=None)
async def ready(request: Request) -> dict[str, Any] | Response:
    """Stores and models can be used: 200. Otherwise 503 and an error that says what is the matter.

    The first call opens the default collection and loads the embedding model; later ones answer from memory.
    """
    library = request.app.state.leadline.library
    try:
        base = await library.collection(request.app.state.settings.run.collection)
        await asyncio.to_thread(library.embedder.embed_query, "ready")
    except LeadlineError as error:
        return problem(503, error.code, error.message, error.hint)
    if base.problems:
        hint = "`leadline verify --repair` brings the indexes in step with the catalog."
        return problem(503, "indexes_differ", f"{'; '.join(base.problems)}.", hint)
    return {"status": "ready", "generation": await library.generation()}
