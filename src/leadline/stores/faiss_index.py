"""An exact index in memory: inner products of unit vectors, which are cosines.

Knows FAISS and the best vector of a chunk; knows no file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from leadline.errors import StoreError
from leadline.stores import filters
from leadline.stores.base import Vector, Where


class FlatIndex:
    """Vectors of chunks, several a chunk at will. `rows` are (chunk id, little-endian float32 bytes)."""

    def __init__(self, rows: Sequence[tuple[str, bytes]], fields: Mapping[str, str], dimension: int) -> None:
        import faiss

        self._chunk_ids = [chunk_id for chunk_id, _ in rows]
        self._fields = fields
        self._index = faiss.IndexFlatIP(max(dimension, 1))
        if rows:
            vectors = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f4").reshape(len(rows), dimension)
            self._index.add(unit(vectors.astype(np.float32)))

    def best(self, vector: Vector, k: int, where: Where | None) -> list[tuple[float, str]]:
        """(score, chunk id) of the `k` best chunks that pass the filter; fewer where there are no more."""
        if not np.isfinite(vector).all() or not np.any(vector):
            raise StoreError("A question's vector must be finite and not all zero.")
        total, wanted = len(self._chunk_ids), 2 * k
        while total:
            scores, places = self._index.search(unit(vector[np.newaxis].astype(np.float32)), min(wanted, total))
            found: dict[str, float] = {}
            for score, place in zip(scores[0].tolist(), places[0].tolist(), strict=True):
                chunk_id = self._chunk_ids[place]
                if chunk_id not in found and filters.matches(where, json.loads(self._fields[chunk_id])):
                    found[chunk_id] = score
            ranked = sorted((-score, chunk_id) for chunk_id, score in found.items())
            # All that ties with the last one must have been seen before ties can go by chunk id.
            if wanted >= total or (len(ranked) >= k and -ranked[k - 1][0] > scores[0][-1]):
                return [(-score, chunk_id) for score, chunk_id in ranked[:k]]
            wanted *= 4
        return []


def unit(vectors: Vector) -> Vector:
    """Each row at length 1. Scaled by its largest number first, so that the length of tiny ones doesn't vanish."""
    scaled = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    unit_rows: Vector = np.ascontiguousarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True), dtype=np.float32)
    return unit_rows
