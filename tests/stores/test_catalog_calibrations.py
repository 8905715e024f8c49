"""Calibrations in the catalog, in a file and in PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.servers.postgres import PostgresServer
from tests.stores.catalogs import writable

from leadline.errors import StoreError
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_calibrations import (
    all_calibrations,
    drop_calibrations,
    find_calibration,
    save_calibration,
)
from leadline.stores.catalog_collections import collection_names, create_collection
from leadline.stores.catalog_schema import calibrations

KEPT = {"zero_point": 0.1 + 0.2, "curve": [[1e-300, 1, 0], [-2.5, 2, 1]], "dataset": "Fragen"}


@pytest.fixture(params=["sqlite", "postgres"])
async def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Catalog]:
    """An open catalog that may be written, with the collection `c`."""
    url = None
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    async with writable(tmp_path / "data", url) as catalog:
        yield catalog


async def test_a_calibration_is_one_of_its_collection_and_reranker(catalog: Catalog) -> None:
    """It comes back to the last digit, to no other collection or model; a new one takes its place."""
    create_collection(catalog, "d", {})
    save_calibration(catalog, "c", "model/1", KEPT)
    save_calibration(catalog, "c", "model/2", {"zero_point": 2.0})
    save_calibration(catalog, "d", "model/1", {"zero_point": 3.0})
    assert find_calibration(catalog, "c", "model/1") == KEPT
    assert find_calibration(catalog, "c", "model/3") is None
    assert find_calibration(catalog, "nowhere", "model/1") is None
    save_calibration(catalog, "c", "model/1", {"zero_point": 1.0})
    assert all_calibrations(catalog, "c") == {"model/1": {"zero_point": 1.0}, "model/2": {"zero_point": 2.0}}


async def test_calibrations_are_dropped_with_all_of_their_collection(catalog: Catalog) -> None:
    """Those of every reranker, named; another collection's stay."""
    create_collection(catalog, "d", {})
    for collection, name in (("c", "two"), ("c", "one"), ("d", "one")):
        save_calibration(catalog, collection, name, KEPT)
    assert drop_calibrations(catalog, "c") == ["one", "two"]
    assert drop_calibrations(catalog, "c") == []
    assert all_calibrations(catalog, "c") == {}
    assert all_calibrations(catalog, "d").keys() == {"one"}


async def test_a_collection_that_is_not_there_has_none(catalog: Catalog) -> None:
    """Nothing is kept of what isn't there."""
    with pytest.raises(StoreError):
        save_calibration(catalog, "nowhere", "model/1", KEPT)


async def test_a_catalog_from_before_there_were_calibrations_gets_the_table(tmp_path: Path) -> None:
    """Opening it is enough; what it holds stays."""
    async with writable(tmp_path) as catalog:
        with catalog.write() as connection:
            calibrations.drop(connection)
    async with writable(tmp_path) as catalog:
        save_calibration(catalog, "c", "model/1", KEPT)
        assert find_calibration(catalog, "c", "model/1") == KEPT
        assert collection_names(catalog) == ["c"]
