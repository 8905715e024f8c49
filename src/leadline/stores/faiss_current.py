"""The index over the vectors of a file as they are now: brought up to date before it is asked, saved by its writer.

Knows the tables of the FAISS store and when the index is behind them; leaves how vectors are searched to the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.stores import faiss_filter, faiss_saved
from leadline.stores.base import Vector, Where
from leadline.stores.faiss_index import Damaged, IndexType, Metric, VectorIndex
from leadline.stores.sqlite_file import SqliteFile

# A saved index may be this many vectors behind, or this share of them: they are added when it is opened.
BEHIND_AT_MOST = 1000
BEHIND_SHARE = 0.2
# So few aren't worth saving an index for when a store is closed.
LITTLE = 100
# Where so many times `k` were looked at and too few pass a filter, it is asked first which ones pass at all. If they
# are this share of the vectors or less, their scores are worked out one by one.
WIDE = 8
FEW = 0.2
# Rows in memory at once while an index is made. What they take is not given back to the system: ten times as many, and
# a store of 20,000 vectors of width 384 takes 85 MB more, and is not made sooner.
PAGE = 1000


class CurrentIndex:
    """One store's index. Threads take turns, by the file's lock."""

    def __init__(self, file: SqliteFile, index_type: IndexType, metric: Metric) -> None:
        self._file = file
        self._type = index_type
        self._metric: Metric = metric
        self._index: VectorIndex | None = None
        self._chunks: dict[int, str] = {}
        self._version = -1
        self._wrote = False
        self._saved = ""
        self._saved_id = 0

    def best(self, vector: Vector, k: int, where: Where | None) -> list[tuple[float, str]]:
        """(score, chunk id) of the `k` best chunks that pass the filter; fewer where there are no more."""
        with self._file.lock:
            index = self._refreshed()
            allowed: set[str] | None = None
            wanted = 2 * k
            while True:
                rows, everything = index.search(vector, wanted)
                found = self._by_chunk(rows)
                if where:
                    passing = faiss_filter.passing(self._file, where, list(found)) if allowed is None else allowed
                    found = {chunk_id: score for chunk_id, score in found.items() if chunk_id in passing}
                # All that ties with the last one must have been seen before ties can go by chunk id.
                if everything or (len(found) >= k and sorted(found.values())[-k] > rows[-1][0]):
                    return _ranked(found, k)
                wanted *= 4
                if where and allowed is None and wanted > WIDE * k:
                    allowed = faiss_filter.passing(self._file, where)
                    few = [row_id for row_id, chunk_id in self._chunks.items() if chunk_id in allowed]
                    if len(few) <= max(k, FEW * len(index)):
                        return _ranked(self._by_chunk(index.scored(vector, few)), k)

    def changed(self, gone: Sequence[int]) -> None:
        """This store committed a change that removed these vectors. A graph is kept up at once, and saved in time."""
        self._wrote = True
        if self._index is not None and self._version == self._file.version():
            self._forget(gone)
        else:
            self._version = -1
        if self._type == "hnsw":
            index = self._refreshed()
            if index.last_id - self._saved_id > max(BEHIND_AT_MOST, BEHIND_SHARE * len(index)):
                self._save()

    def cleared(self) -> None:
        """This store committed the removal of everything."""
        self._forget_all()
        faiss_saved.remove(self._file)

    def close(self) -> None:
        """Saves what this store changed. The index is made again when it is asked again."""
        with self._file.lock:
            try:
                if (
                    self._wrote
                    and self._type == "hnsw"
                    and self._index is not None
                    and self._index.last_id - self._saved_id > LITTLE
                ):
                    self._save()
            finally:
                self._forget_all()

    def _forget_all(self) -> None:
        self._index, self._chunks, self._version, self._wrote = None, {}, -1, False
        self._saved, self._saved_id = "", 0

    def _save(self) -> None:
        assert self._index is not None
        self._saved = faiss_saved.write(self._file, self._index.to_bytes())
        self._saved_id = self._index.last_id

    def _refreshed(self) -> VectorIndex:
        """The index, brought up to what is stored now, by this store or another process."""
        # Read first: what is committed from here on changes it, and is taken in the next time.
        version = self._file.version()
        if self._index is None or version != self._version:
            self._reread()
            self._version = version
        assert self._index is not None
        index = self._index
        statement = "SELECT id, chunk_id, vector FROM vectors WHERE id > ? ORDER BY id LIMIT ?"
        while rows := self._file.rows(statement, index.last_id, PAGE):
            self._chunks.update((row_id, chunk_id) for row_id, chunk_id, _ in rows)
            index.add([(row_id, data) for row_id, _, data in rows])
        return index

    def _reread(self) -> None:
        """Takes in what another process did: perhaps by its saved index, which is quicker than adding its vectors."""
        if self._index is None:
            self._index = self._new()
        newest = self._file.number("SELECT max(id) FROM vectors")
        if newest - self._index.last_id > BEHIND_AT_MOST:
            self._index = self._loaded() or self._index
        # Only of vectors that the index has: the others come with their vectors.
        rows = self._file.rows("SELECT id, chunk_id FROM vectors WHERE id <= ?", self._index.last_id)
        self._chunks = dict(rows)
        self._index.keep(self._chunks)
        if len(self._index) != len(self._chunks):  # it lacks some that are stored: it isn't of these vectors
            self._index, self._chunks = self._new(), {}

    def _loaded(self) -> VectorIndex | None:
        """The saved index, if there is another one than we have, and it is whole."""
        newest = faiss_saved.newest(self._file) if self._type == "hnsw" else ""
        if newest in ("", self._saved):
            return None
        content = faiss_saved.read(self._file.folder, newest)
        if content is None:
            return None
        index = self._new()
        try:
            index.load(content)
        except Damaged:
            return None
        self._saved, self._saved_id = newest, index.last_id
        return index

    def _new(self) -> VectorIndex:
        return VectorIndex(self._type, self._metric, self._file.number("SELECT dimension FROM width"))

    def _forget(self, gone: Sequence[int]) -> None:
        assert self._index is not None
        self._index.forget(gone)
        for row_id in gone:
            self._chunks.pop(row_id, None)

    def _by_chunk(self, rows: Sequence[tuple[float, int]]) -> dict[str, float]:
        """Chunk id → score of its best vector."""
        found: dict[str, float] = {}
        for score, row_id in rows:
            found.setdefault(self._chunks[row_id], score)
        return found


def _ranked(found: Mapping[str, float], k: int) -> list[tuple[float, str]]:
    ranked = sorted((-score, chunk_id) for chunk_id, score in found.items())
    return [(-score, chunk_id) for score, chunk_id in ranked[:k]]
