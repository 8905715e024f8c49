"""How much is stored, by which model and in which indexes: of the collections that the caller sees."""

import asyncio
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from leadline.api.access import Who, need_existing
from leadline.api.collections import OneOrAll
from leadline.errors import LeadlineError
from leadline.knowledge import Library
from leadline.models import open_reranker

router = APIRouter(tags=["health"])


class CollectionStats(BaseModel):
    """One collection. `indexes` is leg → what its index says of itself; `problems` are differences, none when empty."""

    documents: int
    chunks: int
    generation: int
    embedding_model: str
    indexes: dict[str, dict[str, Any]]
    calibration: dict[str, Any]
    problems: list[str]


class Stats(BaseModel):
    """Collection → its figures."""

    collections: dict[str, CollectionStats]


@router.get("/stats")
async def stats(request: Request, who: Who, collection: OneOrAll = None) -> Stats:
    """Figures of one collection, or of all that the caller sees."""
    library = request.app.state.leadline.library
    if collection is not None:
        await need_existing(who, library, collection)
        names = [collection]
    else:
        names = [name for name in await library.collections() if who.sees(name)]
    return Stats(collections={name: await _figures(library, name) for name in names})


async def _figures(library: Library, name: str) -> CollectionStats:
    figures = await (await library.collection(name)).get_stats()
    reranker = await asyncio.to_thread(_reranker, library)
    calibration = await library.calibrations.describe(name, reranker)
    return CollectionStats(
        documents=figures["sources"],
        chunks=figures["chunks"],
        generation=figures["generation"],
        embedding_model=without_folder(figures["embedding_model"]),
        # what an index says of each document is with that document
        indexes={leg: _totals(index) for leg, index in figures["indexes"].items()},
        calibration=_named(calibration),
        problems=figures["problems"],
    )


def without_folder(model: str) -> str:
    """A model by its name; of one in a folder only what the folder is called, wherever it is."""
    return PurePath(model).name if PurePath(model).is_absolute() else model


def _named(calibration: dict[str, Any]) -> dict[str, Any]:
    reranker = calibration["reranker"]
    others = [without_folder(other) for other in calibration["others"]]
    return {**calibration, "reranker": None if reranker is None else without_folder(reranker), "others": others}


def _totals(index: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in index.items() if not isinstance(value, dict)}


def _reranker(library: Library) -> str | None:
    """None where the model can't be had, which is no reason not to show the rest."""
    try:
        return open_reranker(library.settings.reranker_model, library.embedder).name
    except LeadlineError:
        return None
