"""KnowledgeBase: the one way into and out of a collection.

Writes go to the catalog first, with what each index is owed, and become visible in one switch. Reads find chunk ids
in an index and the text in the catalog. Knows no backend: see `leadline.stores`.
"""

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from leadline.drafts import ChunkDraft, FieldValue, SourceDraft
from leadline.errors import StoreError
from leadline.knowledge import deletion, put, retrievers, steps, verify
from leadline.knowledge.current import Current
from leadline.knowledge.opened import Opened, to_the_end
from leadline.knowledge.reports import DeleteReport, PutReport, RepairReport, VerifyReport
from leadline.knowledge.steps import POLICY, Options, Sources, SourceStep
from leadline.models.base import Tokenizer
from leadline.ranking import fuse
from leadline.records import Document
from leadline.stores.base import Hit, Policy, Retriever, Where
from leadline.stores.catalog_collections import generation
from leadline.stores.catalog_sources import SourceInfo, count_chunks, find_sources, list_sources
from leadline.stores.filters import storable

T = TypeVar("T")

# What a Document says of the place of a passage: a caller's word can't stand for it.
OWN_FIELDS = frozenset(
    {
        *("chunk_id", "doc_id", "file_hash", "chunk_index", "total_chunks", "source_type"),
        *("start_char", "end_char", "headings", "found_by", "also_in"),
    }
)
TEXT_FIELDS = ("file_name", "url", "title")


class KnowledgeBase:
    """An open collection. From `Library.collection`; usable until the library is closed.

    Any number of searches may run beside a change; changes take turns. A cancelled change ends its step first.
    """

    def __init__(self, current: Current, problems: Sequence[str] = ()) -> None:
        self._current = current
        self._catalog = current.catalog
        self.name = current.name
        self._problems = tuple(problems)

    @property
    def problems(self) -> tuple[str, ...]:
        """In words, what differs between catalog, indexes and texts: as the opening found it, and searches since."""
        lost = self._current.without_text
        return (*self._problems, f"{lost} chunks that were found have no text") if lost else self._problems

    @property
    def tokenizer(self) -> Tokenizer:
        """The embedding model's tokenizer: what chunks are measured by."""
        return self._current.embedder

    async def put(self, drafts: Sequence[SourceDraft], *, root: str = "") -> list[PutReport]:
        """Adds or replaces sources; one report a draft, in their order.

        A source that an index refuses is reported as failed and keeps its former version; the others go in. A source
        that is there unchanged, in every index, is left alone. `root` marks where they came from (see `sync`). Raises
        ModelError if nothing can be embedded, LeaseLost.
        """
        return await self._current.change(lambda opened: put.put(opened, drafts, root))

    def save(
        self,
        upstream: Sources,
        *,
        root: str | Mapping[str, str] = "",
        policy: Policy = POLICY,
        skip_existing: bool = True,
        dry_run: bool = False,
    ) -> SourceStep:
        """A step that puts the sources of a stream in when it is iterated or run; nothing happens before.

            summary = await kb.save(drafts).on_event(show).run()

        Yields a report for each item, in their order, as `put` gives it; a Failed item is a report with its error.
        `root` is one mark for all, or URI → mark. The policy's batches are counted in chunks. `skip_existing` asks
        every index before anything is embedded; with the policy's `recreate_cache` everything is embedded again and
        given to every index again. `dry_run` only says what would be done. Raises as `put`, after the retries.
        """
        return steps.save(self._current, upstream, Options(root, policy, skip_existing, dry_run))

    def sync(
        self,
        upstream: Sources,
        *,
        root: str | Mapping[str, str] = "",
        policy: Policy = POLICY,
        skip_existing: bool = True,
        dry_run: bool = False,
        allow_empty: bool = False,
    ) -> SourceStep:
        """Like `save`; then removes the sources that the run did not yield: those put under the same roots, or without
        any root all of the collection.

        Removes nothing if the run raised, was stopped early, had a failed item, was empty (without `allow_empty`), or
        if an index has not taken in everything. A DocumentsPruned event says what was removed, or why nothing was.
        """
        options = Options(root, policy, skip_existing, dry_run)
        return steps.sync(self._current, upstream, options, allow_empty)

    async def preview(self, drafts: Sequence[SourceDraft], *, root: str = "") -> list[PutReport]:
        """What `put` would report, as far as it can be told without the indexes. Changes nothing."""
        async with self._current.use() as opened:
            return await put.preview(opened, drafts, root)

    async def delete(self, doc_id: str) -> DeleteReport:
        """Removes a source with its text, vectors, terms and entities. Raises StoreError if there is none."""
        sources = [source for source in await self.find_sources(doc_id) if source.doc_id == doc_id]
        if not sources:
            raise StoreError(
                f"There is no document with the id {doc_id} in the collection {self.name}.",
                hint="`leadline ls` lists them.",
            )
        return await self._delete(sources)

    async def delete_by_file(self, file_hash: str) -> int:
        """Removes every source with these bytes; returns how many chunks they had."""
        sources = [source for source in await self.list_sources() if source.file_hash == file_hash]
        return (await self._delete(sources)).chunks if sources else 0

    async def clear(self) -> None:
        """Removes every source of the collection. The indexes are emptied for good."""
        await self._change(deletion.clear)

    async def list_sources(self) -> list[SourceInfo]:
        """All sources, by file name."""
        return await asyncio.to_thread(list_sources, self._catalog, self.name)

    async def find_sources(self, wanted: str) -> list[SourceInfo]:
        """The sources with this id, else this URI, else this file name or hash. More than one can share a name."""
        return await asyncio.to_thread(find_sources, self._catalog, self.name, wanted)

    async def hydrate(self, hits: Sequence[Hit], leg: str) -> list[Document]:
        """The hits of an index as Documents, in their order; what isn't live is left out. Raises TextMissing if that
        is all of them and the catalog can't account for any."""
        async with self._current.use() as opened:
            return await retrievers.hydrate(opened, hits, leg)

    def retrievers(self) -> dict[str, Retriever]:
        """The legs of retrieval by name."""
        legs: tuple[Retriever, ...] = (
            retrievers.VectorRetriever(self._current),
            retrievers.LexicalRetriever(self._current),
            retrievers.GraphRetriever(self._current),
        )
        return {leg.name: leg for leg in legs}

    async def search(self, query: str, top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        """The best `top_k` of all legs, joined by reciprocal rank fusion; equal texts once. Raises StoreError."""
        found: dict[str, list[Document]] = {}
        for leg, answer in (await retrievers.search_all(self.retrievers(), query, k=top_k, where=where)).items():
            if isinstance(answer, BaseException):
                raise answer
            found[leg] = answer
        return fuse(found)[:top_k]

    async def add_documents(
        self,
        texts: Sequence[str],
        metadatas: Sequence[Mapping[str, FieldValue]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[PutReport]:
        """Adds each text as a source of its own, under its id where one is given, else under a hash of the text.

        `file_name` in a text's metadata names it. A text longer than the model's window is cut into windows. Metadata
        are strings, finite numbers, integers of 64 bits and booleans; the fields of a Document that say where a passage
        is aren't among them. Raises StoreError, before anything is stored, for other ones.
        """
        given = [{}] * len(texts) if metadatas is None else metadatas
        names: Sequence[str | None] = [None] * len(texts) if ids is None else ids
        for what, values in (("metadatas", given), ("ids", names)):
            if len(values) != len(texts):
                raise StoreError(f"`{what}` has {len(values)} items for {len(texts)} texts.", hint="Give one for each.")
        for number, metadata in enumerate(given):
            _check_metadata(number, metadata)
        rows = zip(texts, given, names, strict=True)
        drafts = await asyncio.to_thread(lambda: [_text_draft(self.tokenizer, *row) for row in rows])
        return await self.put(drafts)

    async def count(self) -> int:
        """How many chunks the collection has."""
        return await asyncio.to_thread(count_chunks, self._catalog, self.name)

    async def generation(self) -> int:
        """Rises with every change of what a search can find."""
        return await asyncio.to_thread(generation, self._catalog, self.name)

    async def get_stats(self) -> dict[str, Any]:
        """Figures for people: sources, chunks, generation, model, and what each index says of itself."""
        sources = await self.list_sources()
        async with self._current.use() as opened:
            return {
                "collection": self.name,
                "sources": len(sources),
                "chunks": sum(source.chunks for source in sources),
                "generation": await self.generation(),
                "embedding_model": opened.embedder.name,
                "indexes": {leg: await store.stats() for leg, store in opened.stores.items()},
                "problems": list(self.problems),
            }

    async def verify(self) -> VerifyReport:
        """Compares the catalog with every index, id by id, and checks the catalog's file."""
        return await self._change(verify.verify)

    async def repair(self, *, dry_run: bool = False) -> RepairReport:
        """Brings the indexes in step with the catalog, never the other way round."""
        return await self._change(lambda opened: verify.repair(opened, dry_run=dry_run))

    async def _delete(self, sources: Sequence[SourceInfo]) -> DeleteReport:
        return await self._change(lambda opened: deletion.delete(opened, sources))

    async def _change(self, work: Callable[[Opened], Coroutine[Any, Any, T]]) -> T:
        """Does `work` while nobody else changes the collection; a cancelled one ends first."""

        async def alone(opened: Opened) -> T:
            async with opened.writing:
                return await to_the_end(work(opened))

        return await self._current.change(alone)


def _check_metadata(number: int, metadata: Mapping[str, FieldValue]) -> None:
    """Raises StoreError, naming the text and the field, unless every index can keep the metadata and show them."""
    for key, value in metadata.items():
        if key in OWN_FIELDS:
            problem, hint = "is a field that Leadline fills in itself", "Give it another name."
        elif key in TEXT_FIELDS and not isinstance(value, str):
            problem, hint = "is not a string", f"{', '.join(TEXT_FIELDS)} are strings."
        elif key == "page" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            problem, hint = "is not the number of a page", "Pages are counted from 1."
        elif not storable(value):
            problem, hint = "can't be kept", "A value is a string, a finite number, a 64-bit integer or a boolean."
        else:
            continue
        raise StoreError(f"The metadata {key!r} of text {number} {problem}. Nothing was stored.", hint=hint)


def _text_draft(tokenizer: Tokenizer, text: str, metadata: Mapping[str, FieldValue], doc_id: str | None) -> SourceDraft:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    uri = doc_id or f"text:{digest[:32]}"
    windows = (ChunkDraft(text[start:end], start, end) for start, end in _windows(tokenizer, text))
    return SourceDraft(
        uri=uri,
        file_name=str(metadata.get("file_name", uri)),
        file_hash=digest,
        chunks=tuple(window for window in windows if window.text.strip()),
        doc_id=doc_id,
        metadata=metadata,
    )


def _windows(tokenizer: Tokenizer, text: str) -> Iterator[tuple[int, int]]:
    """Start and end of pieces that each fit the model's window, together the whole text."""
    # A piece cut inside a word can have a few tokens more alone than it had in its place.
    step = max(1, tokenizer.max_tokens * 7 // 8)
    starts = [start for start, _ in tokenizer.token_spans(text)][::step]
    return itertools.pairwise([0, *starts[1:], len(text)])
