"""The moment at which new indexes take the place of the old ones."""

from collections.abc import Collection, Mapping, Sequence

from leadline.stores.catalog import Catalog, upsert
from leadline.stores.catalog_collections import Manifest, raise_generation
from leadline.stores.catalog_schema import manifests
from leadline.stores.catalog_versions import make_live


def switch_builds(
    catalog: Catalog,
    collection: str,
    leg_manifests: Mapping[str, Manifest],
    builds: Mapping[str, int],
    ready: Sequence[int],
    legs: Collection[str],
) -> None:
    """From here on the indexes with these numbers and manifests are in use, and the versions `ready` are live."""
    with catalog.write() as connection:
        rows = [
            {"collection": collection, "leg": leg, "manifest": manifest, "build": builds[leg]}
            for leg, manifest in leg_manifests.items()
        ]
        connection.execute(upsert(connection, manifests), rows)
        if ready:
            make_live(connection, collection, ready, legs)
        else:
            raise_generation(connection, collection)
