"""Which changes below a watched folder count, by whatever path the folder was given."""

import asyncio
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from leadline.cli.watch import document_changes


def _linked(folder: Path) -> Path:
    link = folder.with_name("link")
    link.symlink_to(folder)
    return link


WAYS: dict[str, Callable[[Path], Path]] = {
    "whole": lambda folder: folder,
    "from here": lambda folder: Path(os.path.relpath(folder)),
    "up and down": lambda folder: folder / ".." / folder.name,
    "through a link": _linked,
}


@pytest.mark.parametrize("way", WAYS)
async def test_only_what_can_be_a_document_counts(tmp_path: Path, way: str) -> None:
    """Hidden files and what is written into a data folder inside are no reason to read: else each reading would be one
    for the next."""
    folder = tmp_path / "notes"
    for name in ("data", ".git"):
        (folder / name).mkdir(parents=True)
    given = WAYS[way](folder)
    async with aclosing(document_changes([given], given / "data")) as changes:
        coming = asyncio.ensure_future(anext(changes))
        async with asyncio.timeout(60):
            while not coming.done():  # the watch takes a moment to begin
                for name in ("data/catalog.db", ".git/index", ".hidden.md", "harbour.md"):
                    (folder / name).write_text("The harbour opens at six.")
                await asyncio.wait({coming}, timeout=0.1)
        assert {Path(path).name for _, path in coming.result()} == {"harbour.md"}


async def test_a_hidden_folder_that_is_named_itself_is_watched(tmp_path: Path) -> None:
    """Beside the one that it lies in, too: what ingest reads counts."""
    folder = tmp_path / "notes"
    for name in (".drafts", ".git"):
        (folder / name).mkdir(parents=True)
    async with aclosing(document_changes([folder, folder / ".drafts"], tmp_path / "data")) as changes:
        coming = asyncio.ensure_future(anext(changes))
        async with asyncio.timeout(60):
            while not coming.done():  # the watch takes a moment to begin
                for name in (".git/index.md", ".drafts/pier.md"):
                    (folder / name).write_text("The pier is closed.")
                await asyncio.wait({coming}, timeout=0.1)
        assert {Path(path).name for _, path in coming.result()} == {"pier.md"}
