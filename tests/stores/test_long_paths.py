"""A data folder whose path is too long for SQLite: the error says so, and one byte less is enough."""

import os
from pathlib import Path

import pytest
from tests.stores.engines import ENGINES, opened, record

from leadline.config import load_settings
from leadline.errors import StoreError
from leadline.knowledge import open_library
from leadline.stores.catalog import Catalog
from leadline.stores.faiss import FILE as FAISS_FILE
from leadline.stores.rank_bm25 import FILE as RANK_BM25_FILE
from leadline.stores.sqlite_file import LONGEST_PATH

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems have other limits")


def folder_for(base: Path, file: str, length: int) -> Path:
    """A folder below `base`, not made yet, in which the path of `file` is so many bytes long."""
    left = length - len(os.fsencode(base)) - len(file) - 1
    parts = []
    while left > 0:
        parts.append("x" * (min(left, 120) - 1 - (left == 121)))  # never leaves a single byte, for a slash alone
        left -= len(parts[-1]) + 1
    folder = base.joinpath(*parts)
    assert len(os.fsencode(folder / file)) == length
    return folder


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("chroma", "vector/chroma.sqlite3"),
        ("faiss", f"vector/{FAISS_FILE}"),
        ("rank-bm25", f"lexical/{RANK_BM25_FILE}"),
        ("graph", "catalog/catalog.db"),
    ],
)
async def test_one_byte_too_many_is_named(name: str, file: str, tmp_path: Path) -> None:
    """The longest path works; a longer one is refused with both lengths and what to do, and nothing is made."""
    engine, base = ENGINES[name], tmp_path.resolve()  # noqa: ASYNC240 - a test
    async with opened(engine, folder_for(base, file, LONGEST_PATH), engine.options) as backend:
        await backend.store.upsert([record("a")])
        assert await backend.find_ids("Quokka") == ["a"]
    longer = folder_for(base / "y", file, LONGEST_PATH + 1)
    with pytest.raises(StoreError, match=rf"{LONGEST_PATH + 1} bytes long.*{LONGEST_PATH}\..*shorter path"):
        async with opened(engine, longer, engine.options):
            pass
    assert not (base / "y").exists()


@pytest.mark.parametrize("length", [480, 500, 600])
async def test_a_long_data_folder_is_named(length: int, tmp_path: Path) -> None:
    """Whether the catalog doesn't fit any more or an index in its folder: it is never the right to write that lacks."""
    with pytest.raises(StoreError, match="bytes long") as caught:
        async with open_library(load_settings(data_dir=folder_for(tmp_path, "x", length))) as library:
            await library.collection()
    assert "right to write" not in str(caught.value)
    assert caught.value.hint == "Set a data folder with a shorter path."


def test_a_link_makes_no_path_shorter(tmp_path: Path) -> None:
    """SQLite follows it, so what counts is where it leads."""
    far = folder_for(tmp_path, "catalog.db", LONGEST_PATH + 1)
    far.mkdir(parents=True)
    (tmp_path / "near").symlink_to(far, target_is_directory=True)
    with pytest.raises(StoreError, match="bytes long"):
        Catalog(tmp_path / "near").open()
