"""The files of hnswlib in a vector segment of Chroma: how many vectors they hold, and whether their links can be
followed. hnswlib follows them unchecked, so one that leads out of the graph ends the process.

Knows nothing of Chroma's database. Reads only; the vectors themselves aren't looked at.
"""

import os
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER_FILE = "header.bin"
LEVEL_0_FILE = "data_level0.bin"
UPPER_FILE = "link_lists.bin"
LENGTHS_FILE = "length.bin"
IDS_FILE = "index_metadata.pickle"
FILES = (HEADER_FILE, LEVEL_0_FILE, UPPER_FILE, LENGTHS_FILE, IDS_FILE)
# Version, offset of level 0, capacity, vectors, bytes a vector, offset of its label, offset of its components, highest
# level, where a search starts, links a vector on an upper level and on level 0, M, the levels' factor, ef_construction.
HEADER = struct.Struct("<IQQQQQQiIQQQdQ")
HEADER_VERSION = 1
PICKLE_END = b"."  # looked at only: nothing of ours reads a pickle
WORD = 4
# Vectors looked at in one go: some 4 MB of links with the 16 neighbours that Leadline sets.
ROWS = 32_768


class Broken(Exception):
    """What is wrong with a file: its name first."""


@dataclass(frozen=True)
class Header:
    """What hnswlib says of a graph: vectors, bytes a vector, highest level, where a search starts, and links at most
    a vector on an upper level and on level 0."""

    vectors: int
    vector_bytes: int
    top: int
    entry: int
    upper_links: int
    links: int


def header(segment: Path) -> Header:
    """The segment's header; raises Broken unless it fits together."""
    path = segment / HEADER_FILE
    content = path.read_bytes() if path.is_file() else b""
    if len(content) < HEADER.size:
        raise Broken(f"{HEADER_FILE} is missing or cut short")
    version, start, _, vectors, vector_bytes, label, components, top, entry, upper, links, *_ = HEADER.unpack_from(
        content
    )
    if version != HEADER_VERSION:
        raise Broken(f"{HEADER_FILE} has the unknown version {version}")
    fits = start == 0 and components == WORD * (1 + links) and components <= label == vector_bytes - 8
    if not fits or not 0 < upper <= links or (vectors and (entry >= vectors or top < 0)):
        raise Broken(f"{HEADER_FILE} contradicts itself")
    return Header(vectors, vector_bytes, top, entry, upper, links)


def is_whole(segment: Path) -> bool:
    """Whether each file of the segment goes to its end, by their sizes: 20 ms for 100,000 vectors.

    What is in them isn't looked at, but for the sizes that lists of links say of themselves.
    """
    try:
        head = header(segment)
        if not head.vectors:
            return True
        sizes = {name: (segment / name).stat().st_size for name in FILES}
        _places(segment / UPPER_FILE, np.fromfile(segment / UPPER_FILE, "<u4"), head)
        with (segment / IDS_FILE).open("rb") as file:
            file.seek(-min(1, sizes[IDS_FILE]), os.SEEK_END)
            ends = file.read() == PICKLE_END
    except (Broken, OSError):
        return False
    return (
        ends and sizes[LEVEL_0_FILE] >= head.vectors * head.vector_bytes and sizes[LENGTHS_FILE] >= WORD * head.vectors
    )


def live_vectors(segment: Path, head: Header) -> int:
    """How many vectors the segment holds that weren't deleted; raises Broken where a link leads nowhere.

    Reads what there is of links, not the vectors between them, a part at a time.
    """
    live = _level_0(segment / LEVEL_0_FILE, head)
    _upper_levels(segment / UPPER_FILE, head)
    return live


def _level_0(path: Path, head: Header) -> int:
    if path.stat().st_size < head.vectors * head.vector_bytes:
        raise Broken(f"{path.name} is cut short")
    row = np.dtype(
        {
            "names": ["count", "deleted", "links"],
            "formats": ["<u2", "u1", ("<u4", (head.links,))],
            "offsets": [0, 2, WORD],
            "itemsize": head.vector_bytes,
        }
    )
    rows = np.memmap(path, row, "r", shape=(head.vectors,))
    live = 0
    for start in range(0, head.vectors, ROWS):
        part = rows[start : start + ROWS]
        _followed(path, part["count"], part["links"], head.vectors)
        live += int((part["deleted"] & 1 == 0).sum())
    return live


def _followed(
    path: Path, counts: NDArray[np.uint16], links: NDArray[np.uint32], vectors: int
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """The links, and which of them hnswlib would follow; each of those leads to a vector."""
    used = np.arange(links.shape[1]) < counts[:, None]
    if (counts > links.shape[1]).any() or (links[used] >= vectors).any():
        raise Broken(f"{path.name} has links that lead nowhere")
    return links, used


def _upper_levels(path: Path, head: Header) -> None:
    """For each vector, the bytes of its levels above 0 come first, then a list of links for each such level."""
    words = np.fromfile(path, "<u4")
    starts, levels = _places(path, words, head)
    if levels.max() > head.top or levels[head.entry] != head.top:
        raise Broken(f"{path.name} doesn't have the levels of {HEADER_FILE}")
    for level in range(1, head.top + 1):
        at = starts[levels >= level] + (level - 1) * (1 + head.upper_links)
        lists = words[at[:, None] + np.arange(1 + head.upper_links)]
        links, used = _followed(path, (lists[:, 0] & 0xFFFF).astype(np.uint16), lists[:, 1:], head.vectors)
        if (levels[links[used]] < level).any():
            raise Broken(f"{path.name} has links to a level that isn't there")


def _places(path: Path, words: NDArray[np.uint32], head: Header) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each vector's first list is, in words, and how many lists it has."""
    each = WORD * (1 + head.upper_links)
    starts, levels = array("q"), array("q")
    sizes, at = words.tolist(), 0
    for _ in range(head.vectors):
        if at >= len(sizes) or sizes[at] % each:
            raise Broken(f"{path.name} is cut short or no list of links")
        starts.append(at + 1)
        levels.append(sizes[at] // each)
        at += 1 + sizes[at] // WORD
    if at > len(sizes):
        raise Broken(f"{path.name} is cut short")
    return np.array(starts), np.array(levels)
