"""Collections in the catalog: their names, generations and the manifests of their indexes."""

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from leadline.stores.catalog import Catalog, upsert
from leadline.stores.catalog_schema import collections, info, manifests

# Made once: every search asks.
_BUILDS = select(manifests.c.leg, manifests.c.build).where(manifests.c.collection == bindparam("collection"))

Manifest = dict[str, Any]


def collection_names(catalog: Catalog) -> list[str]:
    """All names, sorted."""
    with catalog.read() as connection:
        return list(connection.execute(select(collections.c.name).order_by(collections.c.name)).scalars())


def create_collection(catalog: Catalog, name: str, leg_manifests: Mapping[str, Manifest]) -> None:
    """Adds the collection with the manifests of its indexes; what is there already stays as it is."""
    with catalog.write() as connection:
        row = {"name": name, "generation": 0, "created": time.time()}
        connection.execute(upsert(connection, collections, keep=True), row)
        for leg, manifest in leg_manifests.items():
            values = {"collection": name, "leg": leg, "manifest": manifest, "build": 0}
            connection.execute(upsert(connection, manifests, keep=True), values)


def stored_manifests(catalog: Catalog, name: str) -> dict[str, Manifest]:
    """Leg → manifest, as written when the index was made."""
    with catalog.read() as connection:
        rows = connection.execute(
            select(manifests.c.leg, manifests.c.manifest).where(manifests.c.collection == name)
        ).all()
    return {row.leg: row.manifest for row in rows}


def current_builds(catalog: Catalog, name: str) -> dict[str, int]:
    """Leg → the number of the index that is in use; empty for a collection that isn't there."""
    with catalog.read() as connection:
        return {row.leg: row.build for row in connection.execute(_BUILDS, {"collection": name})}


def identity(catalog: Catalog) -> str:
    """What tells this catalog from all others: 32 hexadecimal digits."""
    with catalog.read() as connection:
        return str(connection.execute(select(info.c.value).where(info.c.name == "identity")).scalar_one())


def generation(catalog: Catalog, name: str) -> int:
    """How often the live content of the collection has changed; 0 for a collection that isn't there."""
    with catalog.read() as connection:
        found = connection.execute(select(collections.c.generation).where(collections.c.name == name))
        return found.scalar_one_or_none() or 0


def total_generation(catalog: Catalog) -> int:
    """How often the live content of any collection has changed."""
    with catalog.read() as connection:
        return int(connection.execute(select(func.coalesce(func.sum(collections.c.generation), 0))).scalar_one())


def raise_generation(connection: Connection, name: str) -> None:
    """Marks, inside a write, that readers will see something else from now on."""
    connection.execute(
        update(collections).where(collections.c.name == name).values(generation=collections.c.generation + 1)
    )
