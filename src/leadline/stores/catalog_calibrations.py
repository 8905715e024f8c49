"""Calibrations in the catalog: what a reranker's logits mean on a collection, as JSON."""

from typing import Any

from sqlalchemy import bindparam, delete, select

from leadline.stores.catalog import Catalog, upsert
from leadline.stores.catalog_schema import calibrations

# Made once: every question asks.
_ONE = select(calibrations.c.calibration).where(
    calibrations.c.collection == bindparam("collection"), calibrations.c.reranker == bindparam("reranker")
)


def save_calibration(catalog: Catalog, collection: str, reranker: str, calibration: dict[str, Any]) -> None:
    """Keeps it in the place of an earlier one of the same collection and reranker."""
    with catalog.write() as connection:
        row = {"collection": collection, "reranker": reranker, "calibration": calibration}
        connection.execute(upsert(connection, calibrations), row)


def find_calibration(catalog: Catalog, collection: str, reranker: str) -> dict[str, Any] | None:
    """The calibration of the collection for this very reranker."""
    with catalog.read() as connection:
        found = connection.execute(_ONE, {"collection": collection, "reranker": reranker}).scalar_one_or_none()
    return None if found is None else dict(found)


def all_calibrations(catalog: Catalog, collection: str) -> dict[str, dict[str, Any]]:
    """Reranker → calibration."""
    statement = select(calibrations.c.reranker, calibrations.c.calibration)
    statement = statement.where(calibrations.c.collection == collection).order_by(calibrations.c.reranker)
    with catalog.read() as connection:
        return {row.reranker: dict(row.calibration) for row in connection.execute(statement)}


def drop_calibrations(catalog: Catalog, collection: str) -> list[str]:
    """Removes those of every reranker, and says of which there were some."""
    with catalog.write() as connection:
        gone = delete(calibrations).where(calibrations.c.collection == collection).returning(calibrations.c.reranker)
        return sorted(connection.execute(gone).scalars())
