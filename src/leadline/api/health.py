"""Whether the server lives, and whether it can answer."""

from typing import Any

from fastapi import APIRouter, Request

from leadline import __version__

router = APIRouter(tags=["health"])


@router.get("/")
async def about() -> dict[str, str]:
    """What this server is."""
    return {"name": "Leadline", "version": __version__, "schema": "/openapi.json", "chat": "POST /chat"}


@router.get("/health")
async def health() -> dict[str, str]:
    """The process lives. Says nothing of stores and models: that is `/ready`."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request) -> dict[str, Any]:
    """Stores and models can be used: 200, or an error that says what is missing."""
    return {"status": "ready", "generation": await request.app.state.leadline.library.generation()}
