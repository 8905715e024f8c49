"""The calibrations of a data folder's collections: kept in the catalog, read anew by every question.

Knows what is kept and what people are told of it. Doesn't know how a calibration is made.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any

from leadline.calibration import Calibration, Zero, zero_of
from leadline.knowledge.gate import Gate
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_calibrations import (
    all_calibrations,
    drop_calibrations,
    find_calibration,
    save_calibration,
)
from leadline.stores.catalog_collections import generation


class Calibrations:
    """One calibration a collection and reranker. From `Library.calibrations`."""

    def __init__(self, catalog: Catalog, gate: Gate, max_wrong: float | None) -> None:
        self._catalog = catalog
        self._gate = gate
        self._max_wrong = max_wrong

    async def zero(self, collection: str, reranker: str) -> Zero:
        """What is taken off the logits of this very reranker; another one's calibration says nothing of it."""
        kept = await asyncio.to_thread(find_calibration, self._catalog, collection, reranker)
        return zero_of(None if kept is None else Calibration.from_json(kept), self._max_wrong)

    async def keep(self, collection: str, reranker: str, calibration: Calibration) -> None:
        """Puts it in the place of an earlier one; the collection must be there. Raises LeaseHeld, StoreError."""
        async with self._gate.hold():
            await asyncio.to_thread(save_calibration, self._catalog, collection, reranker, calibration.to_json())

    async def clear(self, collection: str) -> list[str]:
        """Removes those of every reranker, and says of which there were some. Raises LeaseHeld, StoreError."""
        async with self._gate.hold():
            return await asyncio.to_thread(drop_calibrations, self._catalog, collection)

    async def describe(self, collection: str, reranker: str | None) -> dict[str, Any]:
        """The zero point in force for the reranker, and what it comes from, as JSON. None: its name can't be had.

        `others` are the rerankers whose calibrations aren't applied. `changes_since` says how often the collection's
        content has changed since the calibration was made.
        """
        kept = await asyncio.to_thread(all_calibrations, self._catalog, collection)
        mine = None if reranker is None else kept.pop(reranker, None)
        calibration = None if mine is None else Calibration.from_json(mine)
        zero = zero_of(calibration, self._max_wrong)
        told = {"reranker": reranker, **_as_json(zero), "max_wrong": self._max_wrong, "others": list(kept)}
        if calibration is None:
            return told
        now = await asyncio.to_thread(generation, self._catalog, collection)
        return {**told, **origin(calibration), "changes_since": now - calibration.generation}


def origin(calibration: Calibration) -> dict[str, Any]:
    """What a calibration comes from, as JSON."""
    return {
        "dataset": calibration.dataset,
        "questions": calibration.questions,
        "answerable": calibration.answerable,
        "unanswerable": calibration.unanswerable,
        "passages": calibration.passages,
        "relevant": calibration.relevant,
        "even_chance": calibration.zero_point,
        "slope": calibration.slope,
        "made": datetime.fromtimestamp(calibration.made, UTC).isoformat(timespec="seconds"),
    }


def _as_json(zero: Zero) -> dict[str, Any]:
    told: dict[str, Any] = {"zero_point": zero.value, "basis": zero.basis, "warning": zero.warning}
    if zero.point is None:
        return told
    share = {"answered": zero.point.answered, "wrong": zero.point.wrong, "risk": zero.point.risk}
    return {**told, **share, "risk_interval": list(zero.point.interval)}
