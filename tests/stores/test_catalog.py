"""The catalog's file and its tables: what is refused, what survives, what one transaction does."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, update
from tests.servers.postgres import PostgresServer
from tests.stores.catalogs import LEGS, MODEL, add, live, put, version_of, writable

from leadline.errors import ManifestMismatch, StoreError
from leadline.stores.catalog import Catalog, begin_immediate, upsert
from leadline.stores.catalog_collections import (
    collection_names,
    create_collection,
    generation,
    stored_manifests,
    total_generation,
)
from leadline.stores.catalog_outbox import Part, owe_removal, read_owed, read_records, unused_ids, version_sizes
from leadline.stores.catalog_pending import add_pending
from leadline.stores.catalog_schema import collections, info
from leadline.stores.catalog_sources import any_known, count_chunks, expected_ids, live_chunks
from leadline.stores.catalog_vectors import (
    Unembedded,
    cached_hashes,
    chunks_without_vector,
    drop_all_unused,
    save_vectors,
)
from leadline.stores.catalog_versions import (
    abandon,
    pending_versions,
    publish,
    sweep,
)

DATABASES = ("sqlite", "postgres")


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest) -> str | None:
    """Where the catalog is: in a file, or in a PostgreSQL database of the test's own."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
async def catalog(tmp_path: Path, url: str | None) -> AsyncIterator[Catalog]:
    """An open catalog that may be written, with one collection."""
    async with writable(tmp_path / "data", url) as catalog:
        yield catalog


def test_a_catalog_of_another_format_is_refused(tmp_path: Path, url: str | None) -> None:
    """The format is written down, and one that this version doesn't know is named."""
    catalog = Catalog(tmp_path, url)
    catalog.open()
    with begin_immediate(catalog.engine) as connection:
        connection.execute(update(info).values(value="99"))
    catalog.close()
    with pytest.raises(ManifestMismatch, match="format 99"):
        Catalog(tmp_path, url).open()


def test_using_a_closed_catalog_is_an_error_that_says_so(tmp_path: Path, url: str | None) -> None:
    """No connection comes to life behind a closed catalog's back."""
    with pytest.raises(StoreError, match="is not open"):
        collection_names(Catalog(tmp_path, url))


async def test_a_write_that_fails_leaves_nothing_behind(catalog: Catalog) -> None:
    """The whole block or none of it."""
    row = {"name": "half", "generation": 0, "created": 0.0}
    with pytest.raises(StoreError, match="could not be used"), catalog.write() as connection:
        connection.execute(upsert(connection, collections), [row, {**row, "name": "none", "generation": None}])
    assert collection_names(catalog) == ["c"]


def test_a_killed_writer_leaves_the_state_before(tmp_path: Path, url: str | None) -> None:
    """What was committed is there, what was being written is not, and the file is sound."""
    script = """
import os, pathlib, signal, sys
from leadline.stores.catalog import Catalog, begin_immediate, upsert
from leadline.stores.catalog_schema import collections
catalog = Catalog(pathlib.Path(sys.argv[1]), sys.argv[2] or None)
catalog.open()
def add(connection, name):
    connection.execute(upsert(connection, collections), {"name": name, "generation": 0, "created": 0.0})
with begin_immediate(catalog.engine) as connection:
    add(connection, "kept")
with begin_immediate(catalog.engine) as connection:
    for number in range(500):
        add(connection, f"lost{number}")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), url or ""], check=False)
    assert done.returncode == -signal.SIGKILL
    catalog = Catalog(tmp_path, url)
    catalog.open()
    assert collection_names(catalog) == ["kept"]
    assert catalog.integrity_problems() == []
    catalog.close()


async def test_readers_see_one_state_and_never_wait(catalog: Catalog) -> None:
    """A reader goes on with what it saw while another commits beside it."""
    with catalog.read() as reader:
        assert len(reader.execute(select(collections)).all()) == 1
        create_collection(catalog, "later", {})
        assert len(reader.execute(select(collections)).all()) == 1
    assert collection_names(catalog) == ["c", "later"]


async def test_manifests_and_generations_stay_with_their_collection(catalog: Catalog) -> None:
    """Making a collection again changes neither its manifests nor its generation."""
    put(catalog, "d", "a text")
    create_collection(catalog, "c", {"vector": {"model": "another"}})
    assert stored_manifests(catalog, "c") == {"vector": {"model": MODEL}}
    assert generation(catalog, "c") == 1
    assert generation(catalog, "unknown") == 0
    assert total_generation(catalog) == 1


async def test_a_pending_version_is_invisible_until_it_is_published(catalog: Catalog) -> None:
    """The old version answers until the switch; then only the new one does."""
    put(catalog, "d", "old", "both")
    new = add(catalog, "d", "both", "new")
    assert live(catalog, "d:old", "d:both", "d:new") == ["both", "old"]
    publish(catalog, "c", [new], LEGS)
    assert live(catalog, "d:old", "d:both", "d:new") == ["both", "new"]
    assert [(owed.leg, owed.chunk_ids) for owed in read_owed(catalog, "c")] == [
        ("vector", ("d:old",)),
        ("bm25", ("d:old",)),
        ("content", ("d:old",)),
    ]


async def test_an_abandoned_version_gives_the_indexes_back_what_was(catalog: Catalog) -> None:
    """What only the abandoned version had is owed to go; the live one is owed again, its fields may have changed."""
    before = put(catalog, "d", "old", "both")
    abandon(catalog, "c", add(catalog, "d", "both", "new"), LEGS)
    owed = [(row.leg, row.version, row.chunk_ids) for row in read_owed(catalog, "c")]
    assert ("vector", None, ("d:new",)) in owed
    assert ("content", None, ("d:new",)) in owed
    assert ("bm25", before, ()) in owed
    assert live(catalog, "d:old", "d:both", "d:new") == ["both", "old"]


async def test_an_interrupted_version_gives_way_to_the_next(catalog: Catalog) -> None:
    """A version left pending can't come back to life after a later one of the same source."""
    add(catalog, "d", "interrupted")
    second = add(catalog, "d", "second")
    assert pending_versions(catalog, "c") == [second]
    assert {row.version for row in read_owed(catalog, "c")} == {None, second}


async def test_one_source_that_can_not_be_stored_does_not_stop_the_others(catalog: Catalog) -> None:
    """An id that another collection uses fails alone, in the same commit as the rest."""
    put(catalog, "taken", "a text")
    create_collection(catalog, "other", {})
    added, errors = add_pending(catalog, "other", [version_of("taken", "x"), version_of("free", "y")], LEGS)
    assert list(added) == ["free"]
    assert "already used in the collection c" in errors["taken"]
    assert live(catalog, "taken:a text") == ["a text"]


async def test_a_value_the_database_refuses_fails_its_source_alone(catalog: Catalog) -> None:
    """Not every database stores every number; what one refuses is said, and the other sources go in."""
    odd = version_of("odd", "x")
    odd = replace(odd, draft=replace(odd.draft, metadata={"year": float("nan")}))
    added, errors = add_pending(catalog, "c", [odd, version_of("free", "y")], LEGS)
    assert "free" in added
    assert ("odd" in added) != ("odd" in errors)
    if errors:
        assert "refuses odd.md" in errors["odd"]


async def test_the_sweep_keeps_what_the_live_version_still_has(catalog: Catalog) -> None:
    """Chunks shared by the old and the new version stay, with their vectors."""
    put(catalog, "d", "old", "both")
    save_vectors(catalog, MODEL, ["hash:old", "hash:both"], np.ones((2, 3), dtype=np.float32))
    put(catalog, "d", "both", "new")
    sweep(catalog, ["d"])
    assert live(catalog, "d:old", "d:both", "d:new") == ["both", "new"]
    assert cached_hashes(catalog, MODEL, ["hash:old", "hash:both"]) == {"hash:both": True}
    assert catalog.integrity_problems() == []


async def test_an_index_may_lose_only_what_no_version_has(catalog: Catalog) -> None:
    """A deletion applied late doesn't remove a chunk that has come back since."""
    put(catalog, "d", "a", "b")
    put(catalog, "d", "a")
    put(catalog, "d", "a", "b")
    assert unused_ids(catalog, ["d:a", "d:b", "d:gone"]) == ["d:gone"]


async def test_records_carry_what_an_index_needs(catalog: Catalog) -> None:
    """Embedded text once the text is known, vector and filter fields, for whole versions and for parts of one."""
    added, _ = add_pending(catalog, "c", [version_of("d", "a", "b", "c", prefix="Title")], LEGS)
    version = added["d"].version
    save_vectors(catalog, MODEL, ["hash:a"], np.array([[1, 2, 3]], dtype=np.float32))
    assert version_sizes(catalog, [version, 999]) == {version: 3}
    records = read_records(catalog, MODEL, [Part(version, 0, 3, 3)])[version]
    assert [record.chunk_id for record in records] == ["d:a", "d:b", "d:c"]
    assert records[0].with_text("a").text == "Title\na"
    np.testing.assert_array_equal(records[0].with_text("a").vectors[0], [1, 2, 3])
    assert records[1].with_text("b").vectors == ()
    assert records[2].with_text("c").fields == {
        "year": 2020,
        "doc_id": "d",
        "file_name": "d.md",
        "file_hash": "bytes:('a', 'b', 'c')",
        "source_type": "file",
        "chunk_index": 2,
    }
    part = read_records(catalog, MODEL, [Part(version, 1, 2, 3)])[version]
    assert [record.chunk_id for record in part] == ["d:b"]


async def test_a_text_without_a_usable_vector_is_remembered(catalog: Catalog) -> None:
    """It isn't embedded again and again, and the vector index isn't expected to have it."""
    put(catalog, "d", "good", "bad", "unseen")
    rows = np.array([[1, 0], [np.nan, 0]], dtype=np.float32)
    assert save_vectors(catalog, MODEL, ["hash:good", "hash:bad"], rows) == {"hash:good": True, "hash:bad": False}
    assert cached_hashes(catalog, MODEL, ["hash:good", "hash:bad", "hash:unseen"]) == {
        "hash:good": True,
        "hash:bad": False,
    }
    assert set(expected_ids(catalog, "c")) == {"d:good", "d:bad", "d:unseen"}
    assert set(expected_ids(catalog, "c", with_vector=MODEL)) == {"d:good", "d:unseen"}
    assert chunks_without_vector(catalog, "c", MODEL) == {"hash:unseen": Unembedded("d:unseen", "")}


async def test_vectors_that_nothing_uses_can_be_dropped(catalog: Catalog) -> None:
    """What an interrupted ingest left in the cache goes when asked, and nothing else."""
    put(catalog, "d", "used")
    save_vectors(catalog, MODEL, ["hash:used", "hash:orphan"], np.ones((2, 2), dtype=np.float32))
    drop_all_unused(catalog)
    assert cached_hashes(catalog, MODEL, ["hash:used", "hash:orphan"]) == {"hash:used": True}


async def test_chunks_on_their_way_are_told_from_unknown_ones(catalog: Catalog) -> None:
    """A hit may be ahead of the switch or behind a deletion; anything else is a difference."""
    assert not any_known(catalog, "c", "vector", ["d:a"])
    add(catalog, "d", "a")
    assert any_known(catalog, "c", "vector", ["d:a"])
    assert not any_known(catalog, "c", "vector", ["stranger"])
    owe_removal(catalog, "c", "vector", ["stranger"])
    assert any_known(catalog, "c", "vector", ["stranger"])
    assert not any_known(catalog, "c", "bm25", ["stranger"])


async def test_many_ids_fit_into_one_question(catalog: Catalog) -> None:
    """More ids than a statement takes are fetched all the same."""
    texts = [f"text {number}" for number in range(1200)]
    put(catalog, "d", *texts)
    assert len(live_chunks(catalog, "c", [f"d:{text}" for text in texts])) == 1200
    assert count_chunks(catalog, "c") == 1200
