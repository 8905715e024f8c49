"""Builds new indexes of a collection beside the old ones, and puts them in their place at one moment.

For other settings than the indexes were built with: another backend, embedding model, chunk size or analyser. What can
be kept is kept: text comes from the content store, a vector in the cache is not made again. Questions are answered from
the old indexes until the moment of the switch, whatever process asks them; whoever was using those ends with them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import StoreError
from leadline.knowledge import opening, places
from leadline.knowledge.changes import apply_upserts
from leadline.knowledge.former import remove_replaced
from leadline.knowledge.gate import Gate
from leadline.knowledge.identity import new_version
from leadline.knowledge.manifest import Manifest, cut_otherwise, differing_legs, manifests_for
from leadline.knowledge.opened import Opened, embed_into_cache
from leadline.knowledge.reports import ReindexReport
from leadline.knowledge.texts import texts_of, unembedded_texts, whole_drafts
from leadline.models.base import Embedder
from leadline.stores.base import ChunkStore
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_builds import switch_builds
from leadline.stores.catalog_collections import current_builds, stored_manifests
from leadline.stores.catalog_drafts import live_versions_of
from leadline.stores.catalog_pending import NewVersion, add_pending
from leadline.stores.catalog_schema import BUILDING

SOURCES_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be built: the legs that differ, each under a new number, and whether the chunks are cut anew."""

    stored: Mapping[str, Manifest]
    wanted: Mapping[str, Manifest]
    before: Mapping[str, int]
    builds: Mapping[str, int]
    legs: tuple[str, ...]
    recut: bool


@dataclass(frozen=True, slots=True)
class Reindex:
    """A collection whose indexes are to be built as `settings` and `embedder` say.

    `recut` cuts a source anew for them. `told` is called with what is being done, how much is done, and of how much.
    """

    name: str
    settings: Settings
    catalog: Catalog
    content: ChunkStore
    embedder: Embedder
    gate: Gate
    recut: Callable[[SourceDraft], SourceDraft]
    told: Callable[[str, int, int], None]

    async def run(self, *, everything: bool = False, dry_run: bool = False) -> ReindexReport:
        """Builds what differs, or `everything`, and switches. If it ends before, the old indexes stay in use.

        Raises StoreError, ModelError, LeaseHeld.
        """
        plan = await self._plan(everything)
        if dry_run or not plan.legs:
            live = await self._live()
            return ReindexReport(self.name, plan.legs, plan.recut, len(live), 0, dry_run)
        await self._embed(plan)  # this takes long, and others may go on changing the collection
        async with self.gate.hold():
            if await self._plan(everything) != plan:
                raise StoreError(
                    f"Another process has built the indexes of the collection {self.name} anew meanwhile.",
                    hint="Run the command again.",
                )
            await replace(self, told=lambda *_: None)._embed(plan)  # what came in meanwhile
            return await self._build_and_switch(plan)

    async def _plan(self, everything: bool) -> Plan:
        stored = await asyncio.to_thread(stored_manifests, self.catalog, self.name)
        before = await asyncio.to_thread(current_builds, self.catalog, self.name)
        wanted = await asyncio.to_thread(manifests_for, self.settings, self.embedder)
        if not stored:  # nothing was ever put in
            return Plan(stored, wanted, before, before, (), False)
        recut = cut_otherwise(stored, wanted)
        legs = tuple(wanted) if everything or recut else tuple(differing_legs(stored, wanted))
        builds = {leg: number + (leg in legs) for leg, number in before.items()}
        return Plan(stored, wanted, before, builds, legs, recut)

    async def _build_and_switch(self, plan: Plan) -> ReindexReport:
        await self._remove_all_but(plan.before)
        opened = await opening.open_build(self.name, self.settings, self.catalog, self.embedder, self.gate, plan.builds)
        async with opened.stack:
            for leg in plan.legs:  # on a server an interrupted one may have left something
                await opened.stores[leg].clear()
            live = await self._live()
            uncut: list[str] = []
            versions = await self._cut_anew(uncut) if plan.recut else list(live.values())
            await self._fill(opened, versions, plan.legs)
            ready = versions if plan.recut else []
            switch = (self.catalog, self.name, plan.wanted, plan.builds, ready, opened.leg_names)
            await asyncio.to_thread(switch_builds, *switch)
            await opening.finish(opened)
            chunks = await opened.legs.bm25.count()
        replaced = {leg: plan.before[leg] for leg in plan.legs}
        left = await remove_replaced(self.settings, self.catalog, self.name, plan.stored, replaced)
        await self._remove_all_but(plan.builds)
        return ReindexReport(self.name, plan.legs, plan.recut, len(live), chunks, uncut=tuple(uncut), left=tuple(left))

    async def _remove_all_but(self, builds: Mapping[str, int]) -> None:
        await asyncio.to_thread(places.remove_former, self.settings.data_dir, self.name, builds)

    async def _fill(self, opened: Opened, versions: Sequence[int], legs: Sequence[str]) -> None:
        for start in range(0, len(versions), SOURCES_AT_ONCE):
            self.told("Indexing", start, len(versions))
            failed = await apply_upserts(opened, versions[start : start + SOURCES_AT_ONCE], legs)
            if failed:
                raise StoreError(
                    f"The new indexes of the collection {self.name} could not be built: {next(iter(failed.values()))}",
                    hint="The old ones are still in use.",
                )
        self.told("Indexing", len(versions), len(versions))

    async def _cut_anew(self, uncut: list[str]) -> list[int]:
        """Versions of all sources in new chunks, which nobody sees before the switch."""
        versions: list[int] = []
        async for news in self._news():
            uncut += [new.draft.file_name for new in news if new.draft.layout is None]
            added, refused = await asyncio.to_thread(add_pending, self.catalog, self.name, news, [], BUILDING)
            if refused:
                raise StoreError(f"The catalog can't take the new chunks: {next(iter(refused.values()))}")
            self.gate.lease.ensure_held()
            await self.content.upsert([text for new in news for text in texts_of(new)])
            versions += [one.version for one in added.values()]
        return versions

    async def _embed(self, plan: Plan) -> None:
        """Sees to it that every text has its vector in the cache."""
        if "vector" not in plan.legs:
            return
        if not plan.recut:
            texts = await unembedded_texts(self.catalog, self.content, self.name, self.embedder.name)
            await self._embed_texts(texts)
            return
        total = len(await self._live())
        done = 0
        async for news in self._news():
            await embed_into_cache(
                self.catalog,
                self.embedder,
                {chunk.content_hash: chunk.draft.embedded_text for new in news for chunk in new.chunks},
            )
            done += len(news)
            self.told("Embedding", done, total)

    async def _embed_texts(self, texts: Mapping[str, str]) -> None:
        keys = list(texts)
        for start in range(0, len(keys), SOURCES_AT_ONCE):
            part = {key: texts[key] for key in keys[start : start + SOURCES_AT_ONCE]}
            await embed_into_cache(self.catalog, self.embedder, part)
            self.told("Embedding", start + len(part), len(keys))

    async def _news(self) -> AsyncIterator[list[NewVersion]]:
        """All sources, cut anew, some at a time."""
        versions = list((await self._live()).values())
        for start in range(0, len(versions), SOURCES_AT_ONCE):
            drafts = await whole_drafts(self.catalog, self.content, versions[start : start + SOURCES_AT_ONCE])
            yield await asyncio.to_thread(self._cut, drafts)

    def _cut(self, drafts: Sequence[tuple[SourceDraft, str]]) -> list[NewVersion]:
        return [new_version(self.name, self.recut(draft), root) for draft, root in drafts]

    async def _live(self) -> dict[str, int]:
        return await asyncio.to_thread(live_versions_of, self.catalog, self.name)
