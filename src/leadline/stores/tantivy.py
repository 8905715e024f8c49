"""Tantivy over a folder: the default lexical store.

Holds the terms our analyser makes of a chunk, its id and its filter fields, never text. `score` is BM25 (k1 1.2,
b 0.75), above 0 for every chunk that shares a term with the question and growing with rare shared terms. Deleted
chunks weigh in the statistics until their segment is merged.

One writer: whoever writes holds the write lease of the data folder. Readers, also of other processes, see each commit.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from leadline.analysis import Analyzer
from leadline.errors import StoreError
from leadline.stores import filters, index_files, steps, tantivy_files, tantivy_schema
from leadline.stores.base import ChunkRecord, Hit, Policy, Stats, Where, check_ids
from leadline.stores.steps import Records, Step

if TYPE_CHECKING:
    import tantivy


FORMAT = 1
WRITER_BYTES = 50_000_000
# Equal scores at the cut are put in the order of chunk ids, as far as this many more hits.
LONGEST_TIE = 1000


class TantivyStore:
    """A tantivy index as a LexicalStore. Its calls run in threads, writes one at a time; each upsert is one commit."""

    def __init__(self, *, path: Path | str, analyzer: Analyzer, policy: Policy | None = None) -> None:
        self._policy = policy
        self._path = Path(path)
        self._analyzer = analyzer
        self._manifest: dict[str, str | int] = {"backend": "tantivy", "format": FORMAT, "analyzer": analyzer.name}
        self._writing = threading.RLock()
        self._index: tantivy.Index | None = None
        self._in_use = False
        self._seen: tuple[int, int] | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._close)

    async def ensure_ready(self, dimension: int = 0) -> None:  # noqa: ARG002 - a width means nothing here
        """Creates the index where there is none. An index of another analyser was refused on opening."""
        await asyncio.to_thread(self._ensure_ready)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces in one commit; refuses nothing, so returns 0."""
        check_ids(records)
        await asyncio.to_thread(self._upsert, records)
        return 0

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` are indexed."""
        return await asyncio.to_thread(self._existing_ids, ids)

    async def all_ids(self) -> set[str]:
        """The ids of all chunks."""
        return await asyncio.to_thread(self._all_ids)

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes by id in one commit; returns how many were there."""
        return await asyncio.to_thread(self._delete, ids)

    async def count(self) -> int:
        """How many chunks are indexed."""
        return await asyncio.to_thread(self._count)

    async def clear(self) -> None:
        """Removes all chunks, and their files with them."""
        await asyncio.to_thread(self._clear)

    async def stats(self) -> Stats:
        """The backend, how many chunks and the analyser."""
        return {"backend": "tantivy", "count": await self.count(), "analyzer": self._analyzer.name}

    def save(self, upstream: Records, *, skip_existing: bool = False) -> Step:
        """As `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(self, upstream: Records, *, skip_existing: bool = False, allow_empty: bool = False) -> Step:
        """As `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    async def lexical_search(self, text: str, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks that share a term with `text`, best first, equal scores by chunk id."""
        filters.check(where)
        return await asyncio.to_thread(self._search, text, k, where)

    def _open(self) -> None:
        whole = tantivy_files.check(self._path)
        if whole or (self._path / index_files.MANIFEST).exists():
            index_files.check_manifest(self._path, self._manifest)
        if whole:
            self._make()
        self._in_use = True

    def _ensure_in_use(self) -> None:
        if not self._in_use:
            raise StoreError(f"The index in {self._path} isn't open.", hint="Use the store inside `async with`.")

    def _close(self) -> None:
        with self._writing:
            self._index, self._in_use = None, False

    def _ensure_ready(self) -> None:
        self._ensure_in_use()
        self._make()

    def _make(self) -> None:
        import tantivy

        with self._writing:
            if self._index is not None:
                return
            if not tantivy_files.check(self._path):
                self._path.mkdir(parents=True, exist_ok=True)
                index_files.write_manifest(self._path, self._manifest)
            with self._errors_named():
                index = tantivy.Index(tantivy_schema.schema(), path=str(self._path))
            index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
            self._index = index

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:  # the one type tantivy raises
            if "LockBusy" in str(error):
                raise StoreError(f"Another process is writing the index in {self._path}.") from error
            raise index_files.damaged(self._path, str(error)) from error

    def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        self._ensure_ready()
        last = {record.chunk_id: record for record in records}
        if not last:
            return
        with self._commit() as writer:
            writer.delete_documents_by_query(tantivy_schema.any_id(list(last)))
            for record in last.values():
                writer.add_document(tantivy_schema.document(record, self._analyzer.terms(record.text)))

    @contextmanager
    def _commit(self) -> Iterator[tantivy.IndexWriter]:
        """A writer whose changes all take effect at the end, or none."""
        with self._writing, self._errors_named():
            assert self._index is not None
            writer = self._index.writer(heap_size=WRITER_BYTES, num_threads=1)
            try:
                # A commit that was cut short leaves files whose names the next one would use again, and be refused.
                writer.garbage_collect_files()
                yield writer
                writer.commit()
            finally:
                writer.wait_merging_threads()  # lets go of the index: the next writer may be another process
            self._index.reload()

    def _searcher(self) -> tantivy.Searcher | None:
        """The newest commit, whoever made it; None where nothing was made yet."""
        self._ensure_in_use()
        if self._index is None:
            return None
        with self._errors_named():
            state = (self._path / tantivy_files.META).stat()
            if self._seen != (state.st_ino, state.st_mtime_ns):
                self._index.reload()
                self._seen = (state.st_ino, state.st_mtime_ns)
            return self._index.searcher()

    def _existing_ids(self, ids: Sequence[str]) -> set[str]:
        searcher = self._searcher()
        if searcher is None or not ids:
            return set()
        return tantivy_schema.ids(searcher, tantivy_schema.any_id(list(ids)), len(ids))

    def _all_ids(self) -> set[str]:
        import tantivy

        searcher = self._searcher()
        if searcher is None or not searcher.num_docs:
            return set()
        return tantivy_schema.ids(searcher, tantivy.Query.all_query(), searcher.num_docs)

    def _delete(self, ids: Sequence[str]) -> int:
        with self._writing:
            there = self._existing_ids(ids)
            if there:
                with self._commit() as writer:
                    writer.delete_documents_by_query(tantivy_schema.any_id(list(there)))
        return len(there)

    def _count(self) -> int:
        searcher = self._searcher()
        return searcher.num_docs if searcher else 0

    def _clear(self) -> None:
        self._ensure_ready()
        with self._commit() as writer:
            writer.delete_all_documents()
            writer.commit()
            writer.garbage_collect_files()

    def _search(self, text: str, k: int, where: Where | None) -> list[Hit]:
        searcher = self._searcher()
        query = tantivy_schema.query(self._analyzer.query_terms(text), where)
        if searcher is None or query is None or k < 1 or not searcher.num_docs:
            return []
        found: list[tuple[float, str]] = []
        # It makes room for all it is asked for, so never for more than there is.
        looked_at, wanted = 0, min(2 * k, searcher.num_docs)
        while True:
            hits = searcher.search(query, limit=wanted, count=False).hits
            for score, address in hits[looked_at:]:
                if len(found) >= k and (score < found[k - 1][0] or len(found) >= k + LONGEST_TIE):
                    return _ranked(found, k)
                document = searcher.doc(address)
                if not where or filters.matches(where, tantivy_schema.fields(document)):
                    found.append((score, document["chunk_id"][0]))
            if len(hits) < wanted or wanted == searcher.num_docs:
                return _ranked(found, k)
            looked_at, wanted = wanted, min(wanted * 4, searcher.num_docs)


def _ranked(found: Sequence[tuple[float, str]], k: int) -> list[Hit]:
    best = sorted(found, key=lambda item: (-item[0], item[1]))[:k]
    return [Hit(chunk_id, score, rank) for rank, (score, chunk_id) in enumerate(best)]
