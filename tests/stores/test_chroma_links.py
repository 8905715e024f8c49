"""The files of a vector segment that Chroma wrote out, each damaged by one number: refused before they are followed."""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline.errors import StoreDamaged
from leadline.stores.base import ChunkRecord
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.chroma_links import HEADER, HEADER_FILE, LEVEL_0_FILE, UPPER_FILE, WORD, Header, header

# Chroma writes a segment out every 1,000 changes.
COUNT, SAVED = 2300, 2000
WIDTH = 4
FIELDS = (
    *("version", "start", "capacity", "vectors", "vector_bytes", "label", "components", "top", "entry"),
    *("upper_links", "links", "m", "factor", "ef_construction"),
)
Words = NDArray[np.uint32]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Chroma folder with a segment written out, and more vectors than are in it."""
    folder = tmp_path_factory.mktemp("chroma") / "whole"

    async def fill() -> None:
        vectors = np.random.default_rng(0).normal(size=(COUNT, WIDTH)).astype(np.float32)
        async with ChromaVectorStore(path=folder) as store:
            await store.upsert([ChunkRecord(f"c{n}", "d", vectors=(vector,)) for n, vector in enumerate(vectors)])

    asyncio.run(fill())
    return folder


@pytest.fixture
def segment(whole: Path, tmp_path: Path) -> Path:
    """The segment of a copy."""
    shutil.copytree(whole, tmp_path / "copy")
    (found,) = (tmp_path / "copy").rglob(HEADER_FILE)
    return found.parent


async def refused(segment: Path) -> str:
    """Why the folder of the segment is refused; nothing in it is changed."""
    before = contents(segment)
    with pytest.raises(StoreDamaged, match="verify --repair") as caught:
        async with ChromaVectorStore(path=segment.parent) as store:
            await store.search(np.ones(WIDTH, dtype=np.float32), k=1)
    assert contents(segment) == before
    return str(caught.value)


def contents(segment: Path) -> Mapping[str, bytes]:
    """Name → bytes of the segment's files."""
    return {path.name: path.read_bytes() for path in segment.iterdir()}


def rows(segment: Path) -> Words:
    """The rows of level 0, as words that can be changed: the count of links and the mark of the deleted, the links."""
    head = header(segment)
    shape = (head.vectors, head.vector_bytes // WORD)
    return np.memmap(segment / LEVEL_0_FILE, "<u4", "r+", shape=shape)


def lists(segment: Path) -> tuple[Words, list[int], list[int]]:
    """The words of the upper levels, and for each vector where its lists begin and how many it has."""
    head, words = header(segment), np.memmap(segment / UPPER_FILE, "<u4", "r+")
    starts, levels, at = [], [], 0
    for _ in range(head.vectors):
        starts.append(at + 1)
        levels.append(int(words[at]) // (WORD * (1 + head.upper_links)))
        at += 1 + int(words[at]) // WORD
    assert at == len(words)
    return words, starts, levels


async def test_a_whole_segment_is_taken(segment: Path) -> None:
    """Nothing is wrong with what Chroma wrote, nor with how it is read here."""
    assert header(segment).vectors == SAVED
    assert max(lists(segment)[2]) == header(segment).top > 0
    async with ChromaVectorStore(path=segment.parent) as store:
        assert len(await store.search(np.ones(WIDTH, dtype=np.float32), k=50)) == 50
        assert await store.count() == COUNT


@pytest.mark.parametrize("seed", range(5))
async def test_a_header_of_other_bytes(seed: int, segment: Path) -> None:
    """Of the right size, but written over."""
    path = segment / HEADER_FILE
    path.write_bytes(np.random.default_rng(seed).bytes(path.stat().st_size))
    assert HEADER_FILE in await refused(segment)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda _: {"version": 0}, "unknown version"),
        (lambda _: {"version": 2}, "unknown version"),
        (lambda _: {"start": WORD}, "contradicts itself"),
        (lambda head: {"vector_bytes": head.vector_bytes + WORD}, "contradicts itself"),
        (lambda head: {"label": head.vector_bytes}, "contradicts itself"),
        (lambda _: {"components": 0}, "contradicts itself"),
        (lambda head: {"links": head.links + 1}, "contradicts itself"),
        (lambda _: {"upper_links": 0}, "contradicts itself"),
        (lambda head: {"upper_links": head.links + 1}, "contradicts itself"),
        (lambda head: {"entry": head.vectors}, "contradicts itself"),
        (lambda _: {"top": -1}, "contradicts itself"),
        (lambda head: {"top": head.top + 1}, "doesn't have the levels"),
        (lambda head: {"top": head.top - 1}, "doesn't have the levels"),
        (lambda head: {"upper_links": head.upper_links - 1}, "no list of links"),
        (lambda head: {"vectors": head.vectors + 10**6}, "cut short"),
        (lambda head: {"vectors": head.vectors - 1}, "lead nowhere"),
        (lambda _: {"vectors": 0}, "holds 0 vectors, not 2000"),
    ],
)
async def test_a_number_of_the_header(changed: Callable[[Header], dict[str, Any]], reason: str, segment: Path) -> None:
    """One number that doesn't fit the others or the files is found, whichever it is."""
    path = segment / HEADER_FILE
    numbers = dict(zip(FIELDS, HEADER.unpack(path.read_bytes()), strict=True))
    path.write_bytes(HEADER.pack(*(numbers | changed(header(segment))).values()))
    assert reason in await refused(segment)


async def test_an_entry_that_is_not_on_the_highest_level(segment: Path) -> None:
    """A search would begin among links that aren't there."""
    path, lowest = segment / HEADER_FILE, lists(segment)[2].index(0)
    numbers = dict(zip(FIELDS, HEADER.unpack(path.read_bytes()), strict=True))
    path.write_bytes(HEADER.pack(*(numbers | {"entry": lowest}).values()))
    assert "doesn't have the levels" in await refused(segment)


@pytest.mark.parametrize("gone", [1, 700])
async def test_too_few_live_vectors(gone: int, segment: Path) -> None:
    """Vectors marked as deleted that the database still counts would be missing in every answer without a word."""
    rows(segment)[:gone, 0] |= 1 << 16
    assert f"holds {SAVED - gone} vectors, not {SAVED}" in await refused(segment)


async def test_a_link_out_of_level_0(segment: Path) -> None:
    """One link of one vector leads to the first number that is no vector."""
    rows(segment)[1234, 1] = SAVED
    assert f"{LEVEL_0_FILE} has links that lead nowhere" in await refused(segment)


async def test_a_link_that_nobody_follows(segment: Path) -> None:
    """What stands beyond the count of links is left-over memory, and no damage."""
    level_0, links = rows(segment), header(segment).links
    short = int(np.argmin(level_0[:, 0] & 0xFFFF))
    assert level_0[short, 0] & 0xFFFF < links
    level_0[short, links] = 2**32 - 1
    async with ChromaVectorStore(path=segment.parent) as store:
        assert len(await store.search(np.ones(WIDTH, dtype=np.float32), k=50)) == 50


@pytest.mark.parametrize("file", [LEVEL_0_FILE, UPPER_FILE])
async def test_more_links_than_there_is_room_for(file: str, segment: Path) -> None:
    """The next vector's bytes would be read as links."""
    head = header(segment)
    if file == LEVEL_0_FILE:
        rows(segment)[77, 0] = head.links + 1
    else:
        words, starts, levels = lists(segment)
        words[starts[levels.index(1)]] = head.upper_links + 1
    assert f"{file} has links that lead nowhere" in await refused(segment)


async def test_a_link_out_of_an_upper_level(segment: Path) -> None:
    """As on level 0."""
    words, starts, levels = lists(segment)
    words[starts[levels.index(1)] + 1] = SAVED
    assert f"{UPPER_FILE} has links that lead nowhere" in await refused(segment)


async def test_a_link_to_a_level_that_is_not_there(segment: Path) -> None:
    """It leads to a vector that exists, but not on the level where a search would go on from it."""
    words, starts, levels = lists(segment)
    words[starts[levels.index(1)] + 1] = levels.index(0)
    assert f"{UPPER_FILE} has links to a level that isn't there" in await refused(segment)


async def test_upper_levels_without_their_end(segment: Path) -> None:
    """Cut between two vectors, where each that is left is whole."""
    path = segment / UPPER_FILE
    path.write_bytes(path.read_bytes()[:-WORD])
    assert f"{UPPER_FILE} is cut short" in await refused(segment)
