"""Whether the server lives, and whether it can answer."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from leadline.api.access import Who
from leadline.api.cleaning import Cleaning
from leadline.api.problems import problem
from leadline.errors import LeadlineError
from leadline.knowledge import Library

router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> dict[str, str]:
    """The process lives. Says nothing of stores and models: that is `/ready`."""
    return {"status": "ok"}


@router.get("/ready", response_model=None)
async def ready(request: Request, who: Who) -> dict[str, Any] | Response:
    """Stores and models can be used: 200. Otherwise 503 and an error that says what is the matter.

    The first call opens the default collection and loads the embedding model; later ones answer from memory. A token
    that may not see that collection is told only whether the server is ready.
    """
    app, name = request.app.state.leadline, request.app.state.settings.run.collection
    found = await _matter(app.library, name)
    if found is None:
        generation = {"generation": await app.library.generation()} if who.collections is None else {}
        return {"status": "ready", **generation}
    code, message, hint = found if who.sees(name) else ("not_ready", "The server can't answer now.", "")
    told = Cleaning(who, request.app.state.settings.data_dir).text
    return problem(503, code, told(message), told(hint))


async def _matter(library: Library, collection: str) -> tuple[str, str, str] | None:
    """Code, message and hint of what is the matter; None: nothing."""
    try:
        base = await library.collection(collection)
        await asyncio.to_thread(library.embedder.embed_query, "ready")
    except LeadlineError as error:
        return error.code, error.message, error.hint
    if base.problems:
        hint = "`leadline verify --repair` brings the indexes in step with the catalog."
        return "indexes_differ", f"{'; '.join(base.problems)}.", hint
    return None
