"""The catalog in a file: what is refused and kept, what a copy is worth, and what deleting leaves in it."""

import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from tests.stores.catalogs import LEGS, MODEL, live, put, writable
from tests.stores.plans import plans_of

from leadline.errors import StoreDamaged, StoreError
from leadline.stores.base import ChunkRecord
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import collection_names
from leadline.stores.catalog_content import CatalogChunkStore
from leadline.stores.catalog_outbox import read_owed, settle
from leadline.stores.catalog_sources import holders_of, list_sources, live_chunks
from leadline.stores.catalog_vectors import cached_hashes, save_vectors
from leadline.stores.catalog_versions import retire_sources, retired_sources, sweep


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[Catalog]:
    """An open catalog that may be written, with one collection."""
    async with writable(tmp_path / "data") as catalog:
        yield catalog


def open_and_list(folder: Path) -> None:
    """Reads a catalog as any reader would."""
    catalog = Catalog(folder)
    try:
        catalog.open()
        list_sources(catalog, "c")
    finally:
        catalog.close()


@pytest.mark.parametrize("content", [b"not a database at all, only words" * 100, b"\x00" * 4096])
def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    """Opening says which file can't be read and why, and doesn't touch it."""
    path = tmp_path / "catalog.db"
    path.write_bytes(content)
    with pytest.raises(StoreDamaged, match=r"catalog\.db can't be read"):
        Catalog(tmp_path).open()
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused_and_kept(tmp_path: Path) -> None:
    """Another program's SQLite file in our place is not filled with our tables."""
    path = tmp_path / "catalog.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamaged, match="something else"):
        Catalog(tmp_path).open()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("photos",)]
    connection.close()


async def test_a_truncated_catalog_is_refused_and_kept(catalog: Catalog, tmp_path: Path) -> None:
    """A catalog cut short is an error when it is opened or read, never an empty catalog."""
    for number in range(50):
        put(catalog, f"d{number}", f"text {number} " * 50)
    catalog.forget_deleted()
    copy = tmp_path / "copy"
    copy.mkdir()
    content = catalog.path.read_bytes()
    (copy / "catalog.db").write_bytes(content[: len(content) // 3])
    with pytest.raises(StoreDamaged, match="ingest again"):
        open_and_list(copy)
    assert (copy / "catalog.db").stat().st_size == len(content) // 3


@pytest.mark.parametrize("empty_file", [False, True])
def test_a_missing_or_empty_file_is_an_empty_catalog(tmp_path: Path, empty_file: bool) -> None:
    """Nothing there yet, or a process killed before it wrote anything: not an error."""
    if empty_file:
        (tmp_path / "catalog.db").touch()
    catalog = Catalog(tmp_path)
    catalog.open()
    assert collection_names(catalog) == []
    catalog.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A data folder below a file is an error about that folder."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        Catalog(tmp_path / "file" / "data").open()


async def test_a_copied_folder_opens(catalog: Catalog, tmp_path: Path) -> None:
    """Nothing in the catalog depends on where it lies."""
    put(catalog, "d", "moved text")
    catalog.forget_deleted()
    shutil.copytree(catalog.path.parent, tmp_path / "elsewhere")
    copy = Catalog(tmp_path / "elsewhere")
    copy.open()
    assert live(copy, "d:moved text") == ["moved text"]
    copy.close()


async def test_what_is_swept_is_gone_from_the_files(catalog: Catalog) -> None:
    """After a deletion no byte of the text is left in the catalog or its log."""
    secret = "Quokka budget forty-two"
    texts = CatalogChunkStore(catalog, "c")
    for doc_id, text in (("keep", "other words"), ("d", secret)):
        put(catalog, doc_id, text)
        await texts.upsert([ChunkRecord(f"{doc_id}:{text}", doc_id, text)])
    save_vectors(catalog, MODEL, [f"hash:{secret}", "hash:other words"], np.ones((2, 3), dtype=np.float32))
    assert retire_sources(catalog, "c", ["d"], LEGS) == [f"d:{secret}"]
    assert live(catalog, f"d:{secret}") == []
    assert retired_sources(catalog, "c") == ["d"]
    assert await texts.delete([f"d:{secret}"]) == 1
    settle(catalog, [row.id for row in read_owed(catalog, "c")])
    sweep(catalog, ["d"])
    assert cached_hashes(catalog, MODEL, [f"hash:{secret}", "hash:other words"]) == {"hash:other words": True}
    assert [source.doc_id for source in list_sources(catalog, "c")] == ["keep"]
    for path in catalog.path.parent.iterdir():
        assert b"Quokka" not in path.read_bytes(), path.name


async def test_a_few_chunks_are_found_without_the_other_sources(catalog: Catalog) -> None:
    """Neither the places of chunks nor the holders of a content are looked for source by source."""
    put(catalog, "d", "One.")
    (content,) = (source.file_hash for source in list_sources(catalog, "c"))
    with plans_of(catalog) as steps:
        assert live_chunks(catalog, "c", ["d:One."]).keys() == {"d:One."}
        assert live_chunks(catalog, "another", ["d:One."]) == {}
        assert holders_of(catalog, "c", [content]) == {content: [("d", "d.md")]}
        assert holders_of(catalog, "another", [content]) == {}
    assert steps
    assert [step for step in steps if "ix_sources_collection" in step or step.startswith("SCAN")] == []


def test_a_new_file_that_another_process_is_just_making(tmp_path: Path) -> None:
    """Opening waits until the other is done, even where SQLite itself would say at once that the file is locked."""
    other = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(0.3, other.rollback)
    timer.start()
    catalog = Catalog(tmp_path)
    catalog.open()
    catalog.close()
    timer.join()
    other.close()
