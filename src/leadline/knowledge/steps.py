"""The save and sync of a collection: sources out of a stream into the catalog and every index.

Knows how a stream becomes puts, what is told of them, and which sources a sync may delete.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Final, TypeAlias

from leadline.drafts import SourceDraft
from leadline.events import DocumentEmbedded, DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.knowledge import deletion, put
from leadline.knowledge.changes import settle_all
from leadline.knowledge.current import Current
from leadline.knowledge.opened import Opened, embed_missing, to_the_end
from leadline.knowledge.reports import PutReport
from leadline.stores.base import Failed, Policy
from leadline.stores.batches import Turns, in_batches
from leadline.stores.catalog_outbox import owe_versions, read_owed
from leadline.stores.catalog_pending import NewVersion
from leadline.stores.catalog_sources import SourceInfo, list_sources, live_versions
from leadline.stores.catalog_vectors import cached_hashes
from leadline.stores.lazy import LazyRun, Tell
from leadline.stores.pruning import Pruning, then_prune
from leadline.stores.steps import retried

Sources: TypeAlias = AsyncIterable[SourceDraft | Failed]
SourceStep: TypeAlias = LazyRun[PutReport]
POLICY: Final = Policy(concurrency=2)
AHEAD: Final = 32  # sources read and not yet in a put, at most


@dataclass(frozen=True, slots=True)
class Options:
    """How a save works.

    `root` marks where the sources come from: all of them, or each by its URI. The batches of the policy are counted
    in chunks; of two under way one is embedded while the other is stored.
    """

    root: str | Mapping[str, str] = ""
    policy: Policy = POLICY
    skip_existing: bool = True
    dry_run: bool = False

    def root_of(self, draft: SourceDraft) -> str:
        """Where the source comes from."""
        return self.root if isinstance(self.root, str) else self.root.get(draft.uri, "")

    def coming_from_there(self, sources: Iterable[SourceInfo]) -> list[SourceInfo]:
        """The stored sources that come from where the stream does; of one root for all, an empty one means all."""
        if self.root == "":
            return list(sources)
        roots = {self.root} if isinstance(self.root, str) else set(self.root.values()) - {""}
        return [source for source in sources if source.root in roots]


def save(current: Current, upstream: Sources, options: Options) -> SourceStep:
    """See `KnowledgeBase.save`."""
    return LazyRun(lambda tell: _save(_Saving(current, options, tell), upstream))


def sync(current: Current, upstream: Sources, options: Options, allow_empty: bool) -> SourceStep:
    """See `KnowledgeBase.sync`."""

    def start(tell: Tell) -> AsyncGenerator[PutReport, None]:
        saving = _Saving(current, options, tell)
        pruning = Pruning(_kept, lambda: saving.failed, saving.prune, allow_empty)
        return then_prune(_save(saving, upstream), pruning, tell)

    return LazyRun(start)


async def _save(saving: _Saving, upstream: Sources) -> AsyncGenerator[PutReport, None]:
    batches = in_batches(upstream, saving.batch, saving.options.policy, weigh=_weight, ahead=AHEAD)
    async with aclosing(batches):
        async for batch in batches:
            for report in batch:
                yield report


class _Saving:
    """One run of a save: what it works with, and what it has done so far."""

    def __init__(self, current: Current, options: Options, tell: Tell) -> None:
        self.options = options
        self.failed = 0
        self._current = current
        self._tell = tell
        self._turns = Turns()

    async def batch(self, items: Sequence[SourceDraft | Failed]) -> list[PutReport]:
        """Puts the sources in; one report an item, in their order."""
        drafts = [item for item in items if isinstance(item, SourceDraft)]
        reports: list[PutReport] = []
        async with self._turns.after(draft.doc_id or draft.uri for draft in drafts):
            for root, together in itertools.groupby(drafts, key=self.options.root_of):
                reports += await self._put(list(together), root)
        in_turn = iter(reports)
        every = [_report_of(item) if isinstance(item, Failed) else next(in_turn) for item in items]
        for report in every:
            self._tell_of(report)
        return every

    async def prune(self, kept: set[str]) -> AsyncIterator[DocumentsPruned]:
        """Deletes the sources that are not in `kept`. None, if an index has not taken in all of the others."""
        if self.options.dry_run:
            yield _pruned(await asyncio.to_thread(self._gone, kept))
        else:
            yield await self._current.change(partial(self._prune, kept=kept))

    async def _prune(self, opened: Opened, kept: set[str]) -> DocumentsPruned:
        async with opened.writing:
            if owed := await asyncio.to_thread(read_owed, opened.catalog, opened.name):
                reason = f"{len(owed)} changes have not reached an index yet"
                return DocumentsPruned(deleted=0, kept=0, skipped=True, reason=reason)
            gone = await asyncio.to_thread(self._gone, kept)
            report = await to_the_end(deletion.delete(opened, gone))
            late = ", ".join(f"{leg}: {why}" for leg, why in report.owed.items())
            return _pruned(gone, f"an index follows later ({late})" if late else "")

    def _gone(self, kept: set[str]) -> list[SourceInfo]:
        sources = list_sources(self._current.catalog, self._current.name)
        return [each for each in self.options.coming_from_there(sources) if each.doc_id not in kept]

    async def _put(self, drafts: Sequence[SourceDraft], root: str) -> list[PutReport]:
        if self.options.dry_run:
            async with self._current.use() as opened:
                return await put.preview(opened, drafts, root)
        work = partial(self._put_into, drafts=drafts, root=root)
        reports, embedded = await retried(self.options.policy, lambda: self._current.change(work))
        for event in embedded:
            self._tell(event)
        return reports

    async def _put_into(
        self, opened: Opened, drafts: Sequence[SourceDraft], root: str
    ) -> tuple[list[PutReport], list[Event]]:
        """The reports, and what is to be told of the embedding."""
        fresh = self.options.policy.recreate_cache
        placed = put.placed(opened, drafts, root)
        before = await _cached(opened, placed)
        if fresh:
            texts = {chunk.content_hash: chunk.draft.embedded_text for new in placed for chunk in new.chunks}
            await embed_missing(opened, texts, fresh=True)
        skip = self.options.skip_existing and not fresh
        reports = await put.put(opened, drafts, root, skip_existing=skip)
        if fresh:
            reports = await _given_again(opened, reports)
        after = await _cached(opened, placed)
        hashes = {chunk.chunk_id: chunk.content_hash for new in placed for chunk in new.chunks}
        made = {key for key in after if fresh or key not in before}
        return reports, [
            DocumentEmbedded(chunk_id=chunk_id, cached=hashes[chunk_id] not in made)
            for report in reports
            if report.error is None
            for chunk_id in report.chunk_ids
            # Of a chunk that is in no cache the indexes had the vector already.
            if after.get(hashes[chunk_id], True)
        ]

    def _tell_of(self, report: PutReport) -> None:
        if report.error is not None:
            self.failed += 1
            self._tell(ItemFailed(item=report.uri, error=report.error))
        elif not self.options.dry_run:
            cached = report.status == "unchanged"
            for chunk_id in report.chunk_ids:
                self._tell(DocumentSaved(chunk_id=chunk_id, cached=cached))


async def _cached(opened: Opened, placed: Sequence[NewVersion]) -> dict[str, bool]:
    hashes = [chunk.content_hash for new in placed for chunk in new.chunks]
    return await asyncio.to_thread(cached_hashes, opened.catalog, opened.embedder.name, hashes)


async def _given_again(opened: Opened, reports: Sequence[PutReport]) -> list[PutReport]:
    """Gives every index the chunks of the sources that no put had to touch."""
    same = [report.doc_id for report in reports if report.status in ("unchanged", "restored")]
    async with opened.writing:
        await to_the_end(_give_again(opened, same))
    note = "embedded again and written to every index"
    return [
        replace(report, status="restored", notes=(*report.notes, note)) if report.doc_id in same else report
        for report in reports
    ]


async def _give_again(opened: Opened, doc_ids: Sequence[str]) -> None:
    live = await asyncio.to_thread(live_versions, opened.catalog, opened.name, doc_ids)
    versions = [one.version for one in live.values()]
    await asyncio.to_thread(owe_versions, opened.catalog, opened.name, dict.fromkeys(opened.leg_names, versions))
    await settle_all(opened)


def _kept(report: PutReport) -> str | None:
    return None if report.error is not None else report.doc_id


def _pruned(gone: Sequence[SourceInfo], reason: str = "") -> DocumentsPruned:
    return DocumentsPruned(deleted=len(gone), kept=0, reason=reason, items=tuple(each.uri for each in gone))


def _report_of(item: Failed) -> PutReport:
    name = PurePath(item.item).name
    return PutReport(doc_id="", uri=item.item, file_name=name, status="failed", chunks=0, error=item.error)


def _weight(item: SourceDraft | Failed) -> int:
    return max(1, len(item.chunks)) if isinstance(item, SourceDraft) else 1
