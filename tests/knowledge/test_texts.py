"""The texts in the content store: kept in step with the catalog, missed where they are missing, and put back."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import StoreError, TextMissing
from leadline.knowledge import KnowledgeBase, Library, open_library
from leadline.knowledge.opened import Opened
from leadline.knowledge.retrievers import search_all
from leadline.stores.base import ChunkRecord

MakeDraft = Callable[..., SourceDraft]
PASSAGES = [f"Acme Corp fact {number}." for number in range(6)]


def opened(kb: KnowledgeBase) -> Opened:
    """The collection's stores, to do harm behind its back."""
    return kb._current._opened


async def lose(library: Library, kb: KnowledgeBase, ids: Sequence[str]) -> None:
    """Texts vanish from the content store."""
    async with library.gate.hold():
        await opened(kb).content.delete(ids)


async def test_a_chunk_without_text_is_left_out_and_told(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """The others are found; the collection says that some have no text, until they are put in again."""
    (put,) = await kb.put([draft("a.md", *PASSAGES)])
    await lose(library, kb, put.chunk_ids[:2])
    for leg in kb.retrievers().values():
        assert len(await leg.search("acme corp", k=10)) == 4
    assert kb.problems == ("2 chunks that were found have no text",)
    (again,) = await kb.put([draft("a.md", *PASSAGES)])
    assert (again.status, again.notes) == ("restored", ("the text of 2 chunks was missing and was stored again",))
    assert len(await kb.retrievers()["bm25"].search("acme corp", k=10)) == 6
    assert kb.problems == ()
    assert (await kb.verify()).ok


async def test_texts_that_are_all_missing_are_an_error(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """An index whose hits have no text at all doesn't answer with nothing."""
    (put,) = await kb.put([draft("a.md", *PASSAGES)])
    await lose(library, kb, put.chunk_ids)
    for leg in kb.retrievers().values():
        with pytest.raises(TextMissing, match="ingest again"):
            await leg.search("acme corp", k=10)
    found = await search_all(kb.retrievers(), "acme corp", k=10)
    assert all(isinstance(each, TextMissing) and "ingest again" in each.hint for each in found.values())


async def test_the_opening_looks_for_texts(settings: Settings, draft: MakeDraft) -> None:
    """A content store that belongs to other documents is noticed before the first question."""
    async with open_library(settings) as library:
        kb = await library.collection()
        (put,) = await kb.put([draft("a.md", *PASSAGES)])
        await lose(library, kb, put.chunk_ids)
    async with open_library(settings) as library:
        assert (await library.collection()).problems == ("of 6 chunks looked up, 6 have no text",)


async def test_lost_and_altered_texts_are_named_with_their_files(
    library: Library, kb: KnowledgeBase, draft: MakeDraft
) -> None:
    """Ids, and in words which files to ingest again; a repair can't make texts, but shows no wrong one to anybody."""
    lost, altered, _ = await kb.put(
        [draft(name, f"{name} of Acme Corp.") for name in ("lost.md", "altered.md", "c.md")]
    )
    await lose(library, kb, lost.chunk_ids)
    async with library.gate.hold():
        await opened(kb).content.upsert([ChunkRecord(altered.chunk_ids[0], altered.doc_id, "Forged.")])
    report = await kb.verify()
    assert set(report.legs["content"].missing) == {*lost.chunk_ids, *altered.chunk_ids}
    assert report.problems == (
        "2 of 3 texts are missing or not what was put in; they come back when these files are ingested again:"
        " altered.md, lost.md",
    )
    done = await kb.repair()
    assert done.after.problems == report.problems
    assert "content" not in done.added
    assert "Forged." not in {d["content"] for d in await kb.retrievers()["vector"].search("acme", k=9)}
    statuses = [r.status for r in await kb.put([draft(n, f"{n} of Acme Corp.") for n in ("lost.md", "altered.md")])]
    assert statuses == ["restored", "restored"]
    assert (await kb.verify()).ok


async def test_texts_nobody_needs_are_named_and_removed(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """What no chunk of the catalog has is taken out by a repair, by a dry run first."""
    await kb.put([draft("a.md", *PASSAGES)])
    async with library.gate.hold():
        await opened(kb).content.upsert([ChunkRecord("stray", "d", "Stray text.")])
    report = await kb.verify()
    assert report.problems == ("there are 1 texts that the catalog doesn't have",)
    assert (await kb.repair(dry_run=True)).removed["content"] == 1
    assert (await kb.repair()).after.ok
    assert await opened(kb).content.count() == 6


async def test_texts_come_first_and_go_last(
    kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no moment does an index hold a chunk whose text isn't there."""
    order: list[tuple[str, str]] = []

    def noted(name: str, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (order.append((method, name)), call(*given))[1]

    for name, store in opened(kb).followers.items():
        for method in ("upsert", "delete"):
            monkeypatch.setattr(store, method, noted(name, method, getattr(store, method)))
    (put,) = await kb.put([draft("a.md", *PASSAGES)])
    legs = {"vector", "bm25", "graph"}
    assert order[0] == ("upsert", "content")
    assert set(order[1:]) == {("upsert", leg) for leg in legs}
    order.clear()
    await kb.delete(put.doc_id)
    assert order[-1] == ("delete", "content")
    assert set(order[:-1]) == {("delete", leg) for leg in legs}


async def test_an_index_is_given_what_has_text(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Chunks without text stay owed to an index that lost everything; the others come back to it."""
    (put,) = await kb.put([draft("a.md", *PASSAGES)])
    await lose(library, kb, put.chunk_ids[:1])
    await opened(kb).legs.bm25.delete(put.chunk_ids)
    done = await kb.repair()
    assert done.after.legs["bm25"].missing == (put.chunk_ids[0],)
    await kb.put([draft("a.md", *PASSAGES)])
    assert (await kb.verify()).ok


async def test_without_a_content_store_nothing_is_put_in(
    kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources whose text can't be stored fail with the reason, keep what they were, and go in later."""
    await kb.put([draft("a.md", "The fee at Quokka Bank is 10.")])
    new = [draft("a.md", "The fee at Numbat Bank is 20."), draft("b.md", "Wombat Bank has no fee.")]
    with monkeypatch.context() as patch:
        patch.setattr(opened(kb).content, "upsert", _down)
        reports = await kb.put(new)
    assert [(r.status, r.error) for r in reports] == [("failed", "content: The store is down.")] * 2
    assert [d["content"] for d in await kb.search("bank fee")] == ["The fee at Quokka Bank is 10."]
    assert (await kb.verify()).ok
    assert [r.status for r in await kb.put(new)] == ["replaced", "added"]


class Killed(BaseException):
    """Nothing cleans up after it, as after a kill."""


async def test_a_source_half_of_whose_text_was_stored_never_was(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is given up at the next opening, with the texts that had come so far; the former one answers."""
    async with open_library(settings) as library:
        kb = await library.collection()
        await kb.put([draft("a.md", "The fee at Quokka Bank is 10.")])
        content = opened(kb).content
        store = content.upsert

        async def store_half(records: Sequence[ChunkRecord]) -> int:
            await store(records[: len(records) // 2])
            raise Killed

        monkeypatch.setattr(content, "upsert", store_half)
        with pytest.raises(Killed):
            await kb.put([draft("a.md", *PASSAGES)])
        assert await content.count() == 4
    async with open_library(settings) as library:
        kb = await library.collection()
        assert [d["content"] for d in await kb.search("acme bank fee")] == ["The fee at Quokka Bank is 10."]
        assert await opened(kb).content.count() == 1
        assert (await kb.verify()).ok


async def test_a_deletion_is_owed_to_a_content_store_that_is_down(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reported, shown to nobody meanwhile, and carried out when the collection is opened next."""
    async with open_library(settings) as library:
        kb = await library.collection()
        keep, gone = await kb.put([draft("keep.md", "Numbat Corp."), draft("gone.md", "Quokka Corp.")])
        with monkeypatch.context() as patch:
            patch.setattr(opened(kb).content, "delete", _down)
            report = await kb.delete(gone.doc_id)
        assert report.owed == {"content": "The store is down."}
        assert [d["content"] for d in await kb.search("corp")] == ["Numbat Corp."]
    async with open_library(settings) as library:
        kb = await library.collection()
        assert (await kb.verify()).ok
        assert await opened(kb).content.all_ids() == set(keep.chunk_ids)


async def test_a_passage_cut_elsewhere_is_another_chunk(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """A text that stands under its id never changes, also when heading and passage only part at another place."""
    from dataclasses import replace

    source = draft("a.md", "Fees\nTen euros.")
    (one,) = await kb.put([source])
    (chunk,) = source.chunks
    moved = replace(source, chunks=(replace(chunk, prefix="Fees", text="Ten euros.", start_char=5),))
    (other,) = await kb.put([moved])
    assert other.chunk_ids != one.chunk_ids
    assert [d["content"] for d in await kb.search("fees")] == ["Ten euros."]
    assert (await kb.verify()).ok


async def _down(_: object) -> int:
    raise StoreError("The store is down.")
