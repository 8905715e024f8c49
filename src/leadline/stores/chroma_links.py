"""Whether the graph that Chroma saved can be followed: hnswlib reads its links without a look, and a wrong one ends the
process.

Knows the files of hnswlib 0.8 as Chroma 1.5 writes them: `header.bin`; `data_level0.bin`, which holds for each vector
its links of the lowest level, its numbers and a label; and `link_lists.bin` with the links of the levels above.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER = struct.Struct("<IQQQQQQiIQQQ")
COUNT = 0xFFFF  # of the first word of a list of links; the rest are marks
ROWS = 8192


@dataclass(frozen=True, slots=True)
class Header:
    """What `header.bin` says."""

    version: int
    offset: int
    capacity: int
    vectors: int
    vector_bytes: int
    label_offset: int
    data_offset: int
    top_level: int
    entry: int
    links_above: int
    links_below: int
    links_wanted: int


def read_header(content: bytes) -> Header:
    """The header. Raises struct.error if it is cut short."""
    return Header(*HEADER.unpack_from(content))


def fault(segment: Path, header: Header) -> str:
    """What is wrong with the links, or nothing. Reads both files once: a tenth of a second at 100,000 vectors."""
    words = header.vector_bytes // 4
    if header.vector_bytes % 4 or not 0 < header.links_below < words or header.entry >= header.vectors:
        return "header.bin describes no graph"
    below = np.memmap(segment / "data_level0.bin", dtype="<u4", mode="r", shape=(header.vectors, words))
    for start in range(0, header.vectors, ROWS):
        links = np.array(below[start : start + ROWS, : header.links_below + 1])
        if _any_astray(links, header.links_below, header.vectors):
            return "data_level0.bin has links that lead nowhere"
    return _fault_above((segment / "link_lists.bin").read_bytes(), header)


def _any_astray(lists: NDArray[np.uint32], most: int, vectors: int) -> bool:
    """Whether one of the lists (a row each: how many, then the links) is too long or leads out of the graph."""
    counts = lists[:, 0] & COUNT
    used = np.arange(most)[np.newaxis] < counts[:, np.newaxis]
    return bool((counts > most).any() or (lists[:, 1:] >= vectors)[used].any())


def _fault_above(content: bytes, header: Header) -> str:
    wrong = "link_lists.bin has links that lead nowhere"
    a_level = 4 * (header.links_above + 1)
    levels = np.zeros(header.vectors, dtype=np.int64)
    lists: list[NDArray[np.uint32]] = []
    position = 0
    for vector in range(header.vectors):
        if position + 4 > len(content):
            return "link_lists.bin is cut short"
        size = int.from_bytes(content[position : position + 4], "little")
        position += 4
        if size:
            if size % a_level or position + size > len(content):
                return wrong
            levels[vector] = size // a_level
            lists.append(np.frombuffer(content, "<u4", size // 4, position).reshape(-1, header.links_above + 1))
            position += size
    if levels[header.entry] != header.top_level or any(
        _any_astray(of_vector, header.links_above, header.vectors) for of_vector in lists
    ):
        return wrong
    for of_vector in lists:  # a link of a level leads to a vector that has that level
        for level, row in enumerate(of_vector, 1):
            if (levels[row[1 : 1 + (row[0] & COUNT)]] < level).any():
                return wrong
    return ""
