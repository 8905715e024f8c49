"""A FAISS index in memory: vectors under ids of their own, searched exactly or through a graph (HNSW).

Knows FAISS, metrics and which ids are gone; knows no file and no chunk. An id never stands for another vector than the
one it was first given to, so an index that is behind can miss vectors but can't confuse them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.stores.base import Vector

Metric = Literal["cosine", "l2", "ip"]
IndexType = Literal["flat", "hnsw"]
Ids = NDArray[np.int64]

NEIGHBOURS = 32
EF_CONSTRUCTION = 100
EF_SEARCH = 128
# Up to here looking at every vector takes about a millisecond, and misses nothing.
EXACT_UP_TO = 2000
# The share of vectors that may be gone before the index is made anew without them.
GONE_AT_MOST = 0.25
COUNT = struct.Struct("<Q")


class Damaged(Exception):
    """The bytes are not those of an index like this one."""


class VectorIndex:
    """Vectors of one width under ids above 0. One thread at a time."""

    def __init__(self, index_type: IndexType, metric: Metric, dimension: int) -> None:
        self._type = index_type
        self._metric = metric
        self._dimension = dimension
        self._live: set[int] = set()
        self.last_id = 0
        self._ids: Ids = np.empty(0, np.int64)
        self._index = self._new()

    def __len__(self) -> int:
        return len(self._live)

    def add(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Adds vectors, as little-endian float32 bytes, under ids that rise above all those it has."""
        if not rows:
            return
        vectors = np.frombuffer(b"".join(data for _, data in rows), dtype="<f4").reshape(len(rows), self._dimension)
        self._add(np.array([row_id for row_id, _ in rows], np.int64), self._prepared(vectors))

    def keep(self, ids: Iterable[int]) -> None:
        """Forgets every vector that isn't among `ids`."""
        self._live.intersection_update(ids)
        self._shrink()

    def forget(self, ids: Iterable[int]) -> None:
        """Forgets vectors; unknown ids are fine."""
        self._live.difference_update(ids)
        self._shrink()

    def search(self, vector: Vector, wanted: int) -> tuple[list[tuple[float, int]], bool]:
        """(score, id) of the `wanted` nearest vectors, best first, without those that are gone; and whether these are
        all there are."""
        query = self._query(vector)
        if not self._live:
            return [], True
        asked = min(wanted, len(self._ids))
        scores, places = self._through_graph(query, asked) or self._exact(query, asked)
        ids = self._ids[places].tolist()
        rows = [(score, row_id) for score, row_id in zip(scores.tolist(), ids, strict=True) if row_id in self._live]
        return rows, asked == len(self._ids)

    def scored(self, vector: Vector, ids: Sequence[int]) -> list[tuple[float, int]]:
        """(score, id) of these of its vectors, best first."""
        import faiss

        query = self._query(vector)
        if not ids:
            return []
        chosen = np.sort(np.array(ids, np.int64))
        some = faiss.IndexFlat(self._dimension, self._kind())
        some.add(self._flat().reconstruct_batch(np.searchsorted(self._ids, chosen)))
        distances, places = some.search(query, len(chosen))
        return list(zip(self._scores(distances[0]).tolist(), chosen[places[0]].tolist(), strict=True))

    def to_bytes(self) -> bytes:
        """The index with its ids, as one unit."""
        import faiss

        return (
            COUNT.pack(len(self._ids)) + self._ids.astype("<i8").tobytes() + bytes(faiss.serialize_index(self._index))
        )

    def load(self, content: bytes) -> None:
        """Takes the vectors of `to_bytes` in place of its own; all of them count until `keep`. Raises Damaged."""
        import faiss

        try:
            (count,) = COUNT.unpack_from(content)
            ids = np.frombuffer(content, "<i8", count, COUNT.size).astype(np.int64)
            index = faiss.deserialize_index(np.frombuffer(content, np.uint8, offset=COUNT.size + ids.nbytes))
            same = (type(index), index.d, index.metric_type) == (type(self._index), self._dimension, self._kind())
        except (struct.error, ValueError, RuntimeError) as error:
            raise Damaged(str(error)) from error
        if not same or index.ntotal != count or (np.diff(ids, prepend=0) < 1).any():
            raise Damaged("it was made with other settings, or isn't whole")
        self._index, self._ids, self._live = index, ids, set(ids.tolist())
        self.last_id = int(ids[-1]) if count else 0

    def _kind(self) -> int:
        import faiss

        return int(faiss.METRIC_L2 if self._metric == "l2" else faiss.METRIC_INNER_PRODUCT)

    def _new(self) -> Any:
        import faiss

        if self._type == "flat":
            return faiss.IndexFlat(max(self._dimension, 1), self._kind())
        index = faiss.IndexHNSWFlat(max(self._dimension, 1), NEIGHBOURS, self._kind())
        index.hnsw.efConstruction = EF_CONSTRUCTION
        return index

    def _add(self, ids: Ids, vectors: Vector) -> None:
        self._index.add(vectors)
        self._ids = np.concatenate([self._ids, ids])
        self._live.update(ids.tolist())
        self.last_id = max(self.last_id, int(ids[-1]))

    def _shrink(self) -> None:
        """Makes the index anew where too much of it is gone."""
        if len(self._ids) - len(self._live) <= GONE_AT_MOST * len(self._ids):
            return
        places = np.flatnonzero(np.isin(self._ids, np.fromiter(self._live, np.int64, len(self._live))))
        ids, vectors = self._ids[places], self._flat().reconstruct_batch(places) if len(places) else None
        self._index, self._ids = self._new(), np.empty(0, np.int64)
        if vectors is not None:
            self._add(ids, vectors)

    def _flat(self) -> Any:
        """All vectors, in order."""
        import faiss

        return self._index if self._type == "flat" else faiss.downcast_index(self._index.storage)

    def _query(self, vector: Vector) -> Vector:
        return self._prepared(vector[np.newaxis])

    def _through_graph(self, query: Vector, asked: int) -> tuple[Vector, Ids] | None:
        """(scores, places) found by the graph; None where looking at every vector is better, or needed."""
        if self._type == "flat" or len(self._ids) <= max(EXACT_UP_TO, 8 * asked):
            return None
        self._index.hnsw.efSearch = max(EF_SEARCH, 2 * asked)
        distances, places = self._index.search(query, asked)
        if (places[0] < 0).any():  # it got stuck, as among many equal vectors
            return None
        return self._scores(distances[0]), places[0]

    def _exact(self, query: Vector, asked: int) -> tuple[Vector, Ids]:
        distances, places = self._flat().search(query, asked)
        return self._scores(distances[0]), places[0]

    def _scores(self, distances: Vector) -> Vector:
        if self._metric == "cosine":
            return np.clip(distances, -1, 1)
        return -distances if self._metric == "l2" else distances

    def _prepared(self, vectors: Vector) -> Vector:
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        return unit(vectors) if self._metric == "cosine" else vectors


def unit(vectors: Vector) -> Vector:
    """Each row at length 1. Scaled by its largest number first, so that the length of tiny ones doesn't vanish."""
    scaled = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    unit_rows: Vector = np.ascontiguousarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True), dtype=np.float32)
    return unit_rows
