"""Chunks with vectors of width 2, for tests that look at single requests and scores."""

from typing import Any

import numpy as np

from leadline.stores.base import ChunkRecord, Vector

EAST, NORTH, NORTH_EAST = ([1.0, 0.0], [0.0, 1.0], [0.8, 0.6])


def chunk(chunk_id: str, *vectors: list[float], text: str = "quokka", **fields: Any) -> ChunkRecord:
    """A chunk of document d."""
    return ChunkRecord(chunk_id, "d", text, tuple(map(vector, vectors)), fields)


def vector(numbers: list[float]) -> Vector:
    """A vector to store or to search by."""
    return np.array(numbers, dtype=np.float32)
