"""Puts drafts into a collection: catalog, then indexes, then one switch that makes them visible."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from leadline.drafts import Layout, SourceDraft
from leadline.errors import EmptyFile
from leadline.knowledge.changes import apply_new, publish_applied, settle_all
from leadline.knowledge.identity import new_version
from leadline.knowledge.opened import Opened, embed_missing, to_the_end
from leadline.knowledge.reports import PutReport
from leadline.knowledge.texts import restore_texts, texts_of
from leadline.stores.catalog_outbox import owe_versions
from leadline.stores.catalog_pending import Added, NewVersion, add_pending
from leadline.stores.catalog_sources import LiveVersion, holders_of, live_versions
from leadline.stores.catalog_vectors import cached_hashes
from leadline.stores.catalog_versions import pending_versions, set_roots


async def put(
    opened: Opened, drafts: Sequence[SourceDraft], root: str = "", *, skip_existing: bool = True
) -> list[PutReport]:
    """One report a draft, in their order. A source that fails leaves its former version in place; the others go in.

    `skip_existing`: what is there as it is, in every index, is neither embedded nor waits for its turn to be stored.
    """
    news = placed(opened, drafts, root)
    reports: dict[int, PutReport] = {}
    waiting = list(range(len(news)))
    while waiting:  # a source that comes twice is put twice, in order
        first = {news[index].doc_id: index for index in reversed(waiting)}
        turn = sorted(first.values())
        reports |= zip(turn, await _put_distinct(opened, [news[index] for index in turn], skip_existing), strict=True)
        waiting = [index for index in waiting if index not in reports]
    return [reports[index] for index in range(len(news))]


def placed(opened: Opened, drafts: Sequence[SourceDraft], root: str = "") -> list[NewVersion]:
    """The drafts as they are stored, with the ids of their chunks."""
    return [new_version(opened.name, _storable(draft), root) for draft in drafts]


async def preview(opened: Opened, drafts: Sequence[SourceDraft], root: str = "") -> list[PutReport]:
    """The status each draft would get from what the catalog holds now. Asks no index, embeds nothing."""
    news = placed(opened, drafts, root)
    live = await asyncio.to_thread(live_versions, opened.catalog, opened.name, [new.doc_id for new in news])
    copies = await _copies(opened, news)
    return [replace(_previewed(new, live.get(new.doc_id)), copy_of=copies.get(new.doc_id)) for new in news]


def _previewed(new: NewVersion, live: LiveVersion | None) -> PutReport:
    if not new.chunks:
        return replace(_report(new), status="failed", error=_no_text(new))
    if live is None:
        return replace(_report(new), status="added", new_chunks=len(new.chunks))
    return replace(_report(new), status="unchanged" if live.fingerprint == new.fingerprint else "replaced")


async def _put_distinct(opened: Opened, news: Sequence[NewVersion], skip_existing: bool) -> list[PutReport]:
    reports = await _untouched(opened, news) if skip_existing else {}
    rest = [new for new in news if new.doc_id not in reports]
    if rest:
        texts = {chunk.content_hash: chunk.draft.embedded_text for new in rest for chunk in new.chunks}
        await embed_missing(opened, texts)
        async with opened.writing:
            # A change that was being stored meanwhile may have swept a vector that nothing used yet.
            usable = await embed_missing(opened, texts)
            noted = [_with_vector_note(new, usable) for new in rest]
            reports |= zip((new.doc_id for new in rest), await to_the_end(_store(opened, noted, usable)), strict=True)
    return [reports[new.doc_id] for new in news]


async def _untouched(opened: Opened, news: Sequence[NewVersion]) -> dict[str, PutReport]:
    """The sources that are as they were, in the catalog and in every index, texts included."""
    if await asyncio.to_thread(pending_versions, opened.catalog, opened.name):
        return {}  # what is live now will not be for long
    live = await asyncio.to_thread(live_versions, opened.catalog, opened.name, [new.doc_id for new in news])
    same = [new for new in news if new.doc_id in live and _is_as_it_was(new, live[new.doc_id])]
    hashes = [chunk.content_hash for new in same for chunk in new.chunks]
    cached = await asyncio.to_thread(cached_hashes, opened.catalog, opened.embedder.name, hashes)
    usable = dict.fromkeys(hashes, True) | cached
    whole = {new.doc_id for new in same}
    for leg, store in opened.followers.items():
        wanted = {chunk_id: new.doc_id for new in same for chunk_id in _ids_in(new, leg, usable)}
        there = await store.existing_ids(list(wanted))
        whole -= {doc_id for chunk_id, doc_id in wanted.items() if chunk_id not in there}
    copies = await _copies(opened, same)
    return {
        new.doc_id: replace(_report(_with_vector_note(new, usable)), copy_of=copies.get(new.doc_id))
        for new in same
        if new.doc_id in whole
    }


def _is_as_it_was(new: NewVersion, live: LiveVersion) -> bool:
    return new.fingerprint == live.fingerprint and new.root in ("", live.root)


async def _store(opened: Opened, news: Sequence[NewVersion], usable: Mapping[str, bool]) -> list[PutReport]:
    live = await asyncio.to_thread(live_versions, opened.catalog, opened.name, [new.doc_id for new in news])
    copies = await _copies(opened, news)
    same = [new for new in news if new.doc_id in live and live[new.doc_id].fingerprint == new.fingerprint]
    reports = await _restore(opened, same, live, usable)
    changed = [new for new in news if new.doc_id not in reports]
    reports |= await _store_changed(opened, changed, live)
    await settle_all(opened)
    return [replace(reports[new.doc_id], copy_of=copies.get(new.doc_id)) for new in news]


async def _store_changed(
    opened: Opened, news: Sequence[NewVersion], live: Mapping[str, LiveVersion]
) -> dict[str, PutReport]:
    errors = {new.doc_id: _no_text(new) for new in news if not new.chunks}
    storable = [new for new in news if new.chunks]
    added, refused = await asyncio.to_thread(add_pending, opened.catalog, opened.name, storable, opened.leg_names)
    texts = {added[new.doc_id].version: texts_of(new) for new in storable if new.doc_id in added}
    failed = await apply_new(opened, texts)
    await publish_applied(opened, [*texts], failed)
    errors |= refused | {doc_id: failed[one.version] for doc_id, one in added.items() if one.version in failed}
    return {new.doc_id: _changed_report(new, live, added, errors) for new in news}


def _changed_report(
    new: NewVersion, live: Mapping[str, LiveVersion], added: Mapping[str, Added], errors: Mapping[str, str]
) -> PutReport:
    if new.doc_id in errors:
        return replace(_report(new), status="failed", error=errors[new.doc_id])
    former = live.get(new.doc_id)
    report = replace(_report(new), new_chunks=added[new.doc_id].new_chunks)
    if former is None:
        return replace(report, status="added")
    notes = report.notes
    if new.root and former.root and new.root != former.root:
        notes = (*notes, f"took the place of {new.draft.uri} from another folder")
    return replace(report, status="replaced", notes=notes)


async def _restore(
    opened: Opened, same: Sequence[NewVersion], live: Mapping[str, LiveVersion], usable: Mapping[str, bool]
) -> dict[str, PutReport]:
    """Sources that are as they were. Where an index lacks chunks of them, it is owed them again, from the cache; where
    texts are missing, they are stored again."""
    owed: dict[str, list[int]] = {leg: [] for leg in opened.leg_names}
    notes = await restore_texts(opened, same)
    for leg, store in opened.stores.items():
        wanted = {new.doc_id: _ids_in(new, leg, usable) for new in same}
        there = await store.existing_ids([chunk_id for ids in wanted.values() for chunk_id in ids])
        for doc_id, ids in wanted.items():
            if lacking := sum(chunk_id not in there for chunk_id in ids):
                owed[leg].append(live[doc_id].version)
                notes[doc_id].append(f"{lacking} chunks were missing in the {leg} index and were put back")
    moved = {new.doc_id: new.root for new in same if new.root not in ("", live[new.doc_id].root)}
    if moved:
        await asyncio.to_thread(set_roots, opened.catalog, moved)
    if any(owed.values()):
        await asyncio.to_thread(owe_versions, opened.catalog, opened.name, owed)
    return {
        new.doc_id: replace(
            _report(new),
            status="restored" if notes[new.doc_id] else "unchanged",
            notes=(*new.draft.notes, *notes[new.doc_id]),
        )
        for new in same
    }


def _ids_in(new: NewVersion, leg: str, usable: Mapping[str, bool]) -> list[str]:
    """The chunks that the leg should hold: the vector index only those with a vector."""
    return [chunk.chunk_id for chunk in new.chunks if leg != "vector" or usable[chunk.content_hash]]


async def _copies(opened: Opened, news: Sequence[NewVersion]) -> dict[str, str]:
    """doc_id → the name of an earlier source with the same bytes, in the collection or before it in this put."""
    holders = await asyncio.to_thread(holders_of, opened.catalog, opened.name, [n.draft.file_hash for n in news])
    copies: dict[str, str] = {}
    for new in news:
        known = holders.setdefault(new.draft.file_hash, [])
        ids = [doc_id for doc_id, _ in known]
        earlier = known[: ids.index(new.doc_id)] if new.doc_id in ids else known
        if earlier:
            copies[new.doc_id] = earlier[0][1]
        if new.doc_id not in ids:
            known.append((new.doc_id, new.draft.file_name))
    return copies


def _no_text(new: NewVersion) -> str:
    return str(EmptyFile(f"{new.draft.file_name} holds no text."))


def _report(new: NewVersion) -> PutReport:
    return PutReport(
        doc_id=new.doc_id,
        uri=new.draft.uri,
        file_name=new.draft.file_name,
        status="unchanged",
        chunks=len(new.chunks),
        notes=new.draft.notes,
        chunk_ids=tuple(chunk.chunk_id for chunk in new.chunks),
    )


def _with_vector_note(new: NewVersion, usable: Mapping[str, bool]) -> NewVersion:
    without = sum(not usable[chunk.content_hash] for chunk in new.chunks)
    if not without:
        return new
    note = f"the model gave no usable vector for {without} chunks: only their words can be searched"
    return replace(new, draft=replace(new.draft, notes=(*new.draft.notes, note)))


def _storable(draft: SourceDraft) -> SourceDraft:
    """The draft without lone surrogates and zeros, which not every store takes: `?` and `�` in its text, a code of
    their own in its names.

    An odd file name has surrogates for bytes that are no text; two such names must not become one.
    """
    chunks = tuple(
        replace(
            chunk,
            text=_encodable(chunk.text),
            prefix=_encodable(chunk.prefix),
            headings=tuple(map(_encodable, chunk.headings)),
        )
        for chunk in draft.chunks
    )
    metadata = {_encodable(k): _encodable(v) if isinstance(v, str) else v for k, v in draft.metadata.items()}
    return replace(
        draft,
        uri=_encodable(draft.uri, "backslashreplace"),
        file_name=_encodable(draft.file_name, "backslashreplace"),
        chunks=chunks,
        metadata=metadata,
        notes=tuple(map(_encodable, draft.notes)),
        layout=None if draft.layout is None else _storable_layout(draft.layout),
    )


def _storable_layout(layout: Layout) -> Layout:
    blocks = tuple(
        (start, end, kind, tuple(map(_encodable, headings)), page, _encodable(prefix))
        for start, end, kind, headings, page, prefix in layout.blocks
    )
    return Layout(tuple(map(_encodable, layout.gaps)), blocks, tuple(map(_encodable, layout.notes)))


def _encodable(text: str, errors: str = "replace") -> str:
    return text.encode("utf-8", errors).decode("utf-8").replace("\x00", "\ufffd")
