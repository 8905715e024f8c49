"""Putting sources in: what is stored once, what is replaced whole, and what a failure leaves as it was."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from leadline.config import Settings
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.errors import StoreError
from leadline.knowledge import KnowledgeBase, Library, open_library, opening
from leadline.models.base import Vectors
from leadline.stores.base import ChunkRecord

MakeDraft = Callable[..., SourceDraft]


async def found_by(kb: KnowledgeBase, query: str) -> dict[str, list[str]]:
    """Leg → the texts it finds for the query."""
    legs = kb.retrievers()
    return {name: [d["content"] for d in await leg.search(query, k=10)] for name, leg in legs.items()}


async def statuses(kb: KnowledgeBase, *drafts: SourceDraft) -> list[str]:
    """Puts the drafts; what became of each."""
    return [report.status for report in await kb.put(drafts)]


async def test_a_source_is_found_by_every_leg(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """By meaning, by word and by name, with the places of the passage and no path of the machine."""
    (report,) = await kb.put([draft("a/zoo.md", "Dana Fox feeds the otters.", "Tickets cost ten euros.", kind="note")])
    assert (report.status, report.chunks, report.new_chunks, report.error) == ("added", 2, 2, None)
    for leg, documents in {name: await r.search("dana fox", k=5) for name, r in kb.retrievers().items()}.items():
        first = documents[0]
        assert first["content"] == "Dana Fox feeds the otters."
        assert first["source"] == leg
        assert first["rerank_score"] == 0.0
        assert first["metadata"] == {
            "chunk_id": report.chunk_ids[0],
            "doc_id": report.doc_id,
            "file_name": "zoo.md",
            "file_hash": first["metadata"]["file_hash"],
            "chunk_index": 0,
            "total_chunks": 2,
            "source_type": "file",
            "start_char": 0,
            "end_char": 26,
            "headings": [],
            "kind": "note",
            "found_by": {leg: {"rank": 0, "score": first["score"]}},
        }


async def test_the_same_source_twice_is_left_alone(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """The second time nothing is embedded, written or counted as a change."""
    await kb.put([draft("a.md", "One fact.")])
    generation = await kb.generation()
    assert await statuses(kb, draft("a.md", "One fact.")) == ["unchanged"]
    assert await kb.generation() == generation
    assert await kb.count() == 1
    assert len(await kb.search("fact")) == 1


async def test_a_copy_under_another_name_is_kept_and_said_to_be_one(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Both names are listed; a search shows the text once, with both places."""
    reports = await kb.put([draft("x.md", "One fact."), draft("copy-of-x.md", "One fact.")])
    assert [report.copy_of for report in reports] == [None, "x.md"]
    (later,) = await kb.put([draft("third.md", "One fact.")])
    assert later.copy_of == "x.md"
    assert [source.file_name for source in await kb.list_sources()] == ["copy-of-x.md", "third.md", "x.md"]
    (document,) = await kb.search("fact")
    others = {place["file_name"] for place in document["metadata"]["also_in"]}
    assert {document["metadata"]["file_name"], *others} == {"x.md", "copy-of-x.md", "third.md"}


async def test_a_changed_source_answers_with_its_new_text_only(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """A word that only the old version had is found by no leg; passages that stayed keep their ids."""
    (old,) = await kb.put([draft("p.md", "The fee at Quokka Bank is 10.", "Opening hours are nine to five.")])
    (new,) = await kb.put([draft("p.md", "The fee at Numbat Bank is 20.", "Opening hours are nine to five.")])
    assert (new.status, new.new_chunks, new.doc_id) == ("replaced", 1, old.doc_id)
    assert new.chunk_ids[1] == old.chunk_ids[1]
    found = await found_by(kb, "Quokka Bank fee")
    assert all("Quokka" not in text for texts in found.values() for text in texts)
    assert found["bm25"] == ["The fee at Numbat Bank is 20."]
    assert (await found_by(kb, "Quokka"))["bm25"] == []
    assert (await found_by(kb, "Quokka"))["graph"] == []
    assert (await kb.verify()).ok


async def test_a_passage_that_moved_is_filtered_by_its_new_page(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """The same chunk id with other fields: every index gets the new ones."""
    await kb.put([draft("p.pdf", "Alpha Tower stands here.", pages=True)])
    await kb.put([draft("p.pdf", "A new first page.", "Alpha Tower stands here.", pages=True)])
    for leg in kb.retrievers().values():
        assert await leg.search("alpha tower", k=5, where={"page": 1, "chunk_index": {"$gte": 1}}) == []
        (document,) = await leg.search("alpha tower", k=5, where={"page": 2})
        assert document["metadata"]["page"] == 2


async def test_filters_reach_every_leg(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Fields of the source and our own narrow each leg before its cut."""
    await kb.put([draft("a.md", "Acme Corp grew.", year=2020), draft("b.md", "Acme Corp shrank.", year=2021)])
    for where in ({"year": 2021}, {"file_name": "b.md"}, {"year": {"$gt": 2020}, "source_type": "file"}):
        for leg in kb.retrievers().values():
            assert [d["content"] for d in await leg.search("acme corp", k=1, where=where)] == ["Acme Corp shrank."]


async def test_a_source_that_comes_twice_in_one_put_ends_as_the_last(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """In order, as if put one after the other."""
    assert await statuses(kb, draft("a.md", "First."), draft("b.md", "Other."), draft("a.md", "Second.")) == [
        "added",
        "added",
        "replaced",
    ]
    assert [d["content"] for d in await kb.search("first second other")] != []
    assert await kb.count() == 2
    assert (await kb.verify()).ok


async def test_an_empty_source_fails_and_the_others_go_in(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """No row without text behind it."""
    reports = await kb.put([draft("empty.md"), draft("full.md", "Words.")])
    assert [report.status for report in reports] == ["failed", "added"]
    assert "empty.md" in (reports[0].error or "")
    assert [source.file_name for source in await kb.list_sources()] == ["full.md"]


async def test_nothing_is_embedded_twice(library: Library, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in another source, nor in another collection, nor after a restart of the put."""
    given: list[str] = []
    embed = library.embedder.embed_passages

    def counted(texts: Sequence[str]) -> Vectors:
        given.extend(texts)
        return embed(texts)

    monkeypatch.setattr(library.embedder, "embed_passages", counted)
    first, second = await library.collection("first", create=True), await library.collection("second", create=True)
    await first.put([draft("a.md", "Shared.", "Shared.", "Own."), draft("b.md", "Shared.")])
    await second.put([draft("a.md", "Shared.", "New.")])
    assert sorted(given) == ["New.", "Own.", "Shared."]


async def test_text_the_model_can_not_embed_is_kept_and_reported(
    library: Library, kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One passage without a usable vector doesn't lose its file: words still find it, and the report says so."""
    embed = library.embedder.embed_passages

    def broken(texts: Sequence[str]) -> Vectors:
        vectors = embed(texts)
        vectors[[text.startswith("Odd") for text in texts]] = np.nan
        return vectors

    monkeypatch.setattr(library.embedder, "embed_passages", broken)
    (report,) = await kb.put([draft("a.md", "Odd signs here.", "Plain words here.")])
    assert report.status == "added"
    assert "no usable vector for 1 chunks" in report.notes[0]
    assert [d["content"] for d in await kb.retrievers()["bm25"].search("odd signs", k=3)] == ["Odd signs here."]
    assert (await kb.verify()).ok
    assert await statuses(kb, draft("a.md", "Odd signs here.", "Plain words here.")) == ["unchanged"]


async def test_lone_surrogates_are_stored_as_question_marks(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """No text stops a put, and offsets keep their meaning."""
    (report,) = await kb.put([SourceDraft("s.md", "s.md", "h", (ChunkDraft("bad \ud800 sign", 0, 10),))])
    assert report.status == "added"
    assert [d["content"] for d in await kb.search("bad sign")] == ["bad ? sign"]


async def test_names_that_differ_in_undecodable_bytes_stay_apart(kb: KnowledgeBase) -> None:
    """Two files whose names hold different bytes that are no text are two sources; neither replaces the other."""
    chunks = (ChunkDraft("A fact.", 0, 7),)
    drafts = [SourceDraft(name, name, "h", chunks) for name in ("bad\udcff.md", "bad\udcfe.md")]
    assert await statuses(kb, *drafts) == ["added", "added"]
    assert len({source.file_name for source in await kb.list_sources()}) == 2


async def test_another_folders_file_of_the_same_name_is_mentioned(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """A replacement that may not have been meant is said; a folder that moved is followed without a change."""
    await kb.put([draft("readme.md", "Of the first folder.")], root="one")
    (report,) = await kb.put([draft("readme.md", "Of the second folder.")], root="two")
    assert "from another folder" in report.notes[-1]
    assert [r.status for r in await kb.put([draft("readme.md", "Of the second folder.")], root="three")] == [
        "unchanged"
    ]
    assert (await kb.list_sources())[0].root == "three"


async def test_an_index_that_lost_its_chunks_gets_them_back(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unchanged means: in every index. After the vector folder was deleted the same put rebuilds it, from the cache."""
    import shutil

    async with open_library(settings) as library:
        await (await library.collection()).put([draft("a.md", "Where is it now?"), draft("b.md", "Gone away.")])
    shutil.rmtree(settings.data_dir / "indexes" / "default" / "vector")
    async with open_library(settings) as library:
        monkeypatch.setattr(library.embedder, "embed_passages", None)  # nothing may be embedded again
        kb = await library.collection()
        assert kb.problems == ("the vector index holds 0 chunks, the catalog 2",)
        reports = await kb.put([draft("a.md", "Where is it now?"), draft("b.md", "Gone away.")])
        assert [report.status for report in reports] == ["restored", "restored"]
        assert "missing in the vector index" in reports[0].notes[0]
        assert (await kb.verify()).ok


class Refusing:
    """A real store whose upsert or delete fails for records of one source."""

    def __init__(self, store: Any, *, method: str, doc_id: str = "") -> None:
        self._store, self._method, self._doc_id = store, method, doc_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def __aenter__(self) -> "Refusing":
        await self._store.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._store.__aexit__(*error)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Fails if one of the records is the source's."""
        if self._method == "upsert" and any(r.doc_id == self._doc_id and "bad" in r.text for r in records):
            raise StoreError("no room for it")
        return int(await self._store.upsert(records))

    async def delete(self, ids: Sequence[str]) -> int:
        """Fails if there is something to delete."""
        if self._method == "delete" and ids:
            raise StoreError("the disk is away")
        return int(await self._store.delete(ids))


def refuse(monkeypatch: pytest.MonkeyPatch, **how: str) -> None:
    """From now on libraries open a lexical index that fails as said."""
    real = opening.open_lexical_store
    monkeypatch.setattr(opening, "open_lexical_store", lambda *a, **k: Refusing(real(*a, **k), **how))


async def test_a_source_one_index_refuses_fails_alone(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported with the index and the reason, nothing of it stays anywhere, and the others are in."""
    async with open_library(settings) as library:
        (good,) = await (await library.collection()).put([draft("a.md", "The good old text.")])
    with monkeypatch.context() as patch:
        refuse(patch, method="upsert", doc_id=good.doc_id)
        async with open_library(settings) as library:
            kb = await library.collection()
            bad, fine = await kb.put([draft("a.md", "The bad new text."), draft("b.md", "A fine text.")])
            assert (bad.status, fine.status) == ("failed", "added")
            assert bad.error == "bm25: no room for it"
            texts = {d["content"] for d in await kb.search("text")}
            assert texts == {"The good old text.", "A fine text."}
    async with open_library(settings) as library:
        report = await (await library.collection()).verify()
        assert report.ok
        assert report.chunks == 2


async def test_a_deletion_an_index_can_not_follow_is_made_up_for(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is gone at once, the report says which index lags, and the next opening clears it."""
    with monkeypatch.context() as patch:
        refuse(patch, method="delete")
        async with open_library(settings) as library:
            kb = await library.collection()
            (put,) = await kb.put([draft("a.md", "Quokka budget.")])
            deleted = await kb.delete(put.doc_id)
            assert deleted.owed == {"bm25": "the disk is away"}
            assert deleted.legs["vector"] == 1
            assert await kb.search("quokka") == []
            assert (await kb.verify()).owed == 1
    async with open_library(settings) as library:
        kb = await library.collection()
        assert (await kb.verify()).ok
        assert (await kb.get_stats())["indexes"]["bm25"]["count"] == 0


async def test_a_chunk_that_came_back_is_not_lost_to_a_late_deletion(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal still owed to an index is not applied to a chunk that a later version has again."""
    with monkeypatch.context() as patch:
        refuse(patch, method="delete")
        async with open_library(settings) as library:
            kb = await library.collection()
            for passages in (["Now here."], ["Something else."], ["Now here."]):
                await kb.put([draft("a.md", *passages)])
    async with open_library(settings) as library:
        kb = await library.collection()
        assert (await kb.verify()).ok
        assert (await found_by(kb, "now here"))["bm25"] == ["Now here."]


async def test_a_cancelled_put_ends_its_step_first(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Whenever it is cancelled, catalog and indexes agree, and the source is whole or not there."""
    for delay in (0.0, 0.02, 0.05, 0.1):
        name = f"{delay}.md"
        task = asyncio.create_task(kb.put([draft(name, *(f"Passage {i} of {name}." for i in range(20)))]))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        report = await kb.verify()
        assert report.ok
        assert report.chunks % 20 == 0


async def test_concurrent_puts_take_turns(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Eight at once: all eight are there, and every index agrees."""
    await asyncio.gather(*(kb.put([draft(f"doc{i}.md", f"Fact number {i}.")]) for i in range(8)))
    report = await kb.verify()
    assert report.ok
    assert report.sources == 8


async def test_a_source_larger_than_a_page_goes_in_whole(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """More chunks than any index takes at once, across pages, from the cache of very few texts."""
    passages = [f"word{i % 7}" for i in range(2300)]
    (report,) = await kb.put(
        [
            draft("lines.txt", *passages),
        ]
    )
    assert report.chunks == 2300
    assert (await kb.verify()).ok
    (report,) = await kb.put([draft("lines.txt", *passages[:10])])
    assert (await kb.verify()).chunks == 10


async def test_texts_can_be_added_without_files(kb: KnowledgeBase) -> None:
    """Texts with their metadata and ids; a text longer than the model's window is cut, not lost."""
    long = " ".join(f"token{i}" for i in range(400)) + " The vault code is 7719."
    reports = await kb.add_documents(
        ["A short text.", long], [{"kind": "note"}, {"file_name": "long.txt"}], ["t1", "t2"]
    )
    assert [report.doc_id for report in reports] == ["t1", "t2"]
    assert reports[1].chunks > 1
    found = await kb.search("short text", where={"kind": "note"})
    assert [d["content"] for d in found] == ["A short text."]
    pieces = [d for d in await kb.search("vault code 7719", 20) if d["metadata"]["doc_id"] == "t2"]
    assert "7719" in pieces[0]["content"]
    assert all(long[d["metadata"]["start_char"] : d["metadata"]["end_char"]] == d["content"] for d in pieces)
    (unnamed,) = await kb.add_documents(["Nameless."])
    assert unnamed.file_name.startswith("text:")


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"a": None}, "can't be kept"),
        ({"a": ["x"]}, "can't be kept"),
        ({"a": float("nan")}, "can't be kept"),
        ({"a": 2**63}, "can't be kept"),
        ({"page": "three"}, "number of a page"),
        ({"url": 3}, "not a string"),
        ({"chunk_id": "x"}, "fills in itself"),
    ],
)
async def test_metadata_that_not_every_index_keeps_is_refused(
    kb: KnowledgeBase, metadata: dict[str, Any], problem: str
) -> None:
    """The text and the field are named, and nothing of the call is stored."""
    with pytest.raises(StoreError, match=f"text 1.*{problem}"):
        await kb.add_documents(["One.", "Two."], [{"page": 3, "url": "https://example.org"}, metadata])
    assert await kb.count() == 0


async def test_texts_and_what_comes_with_them_are_counted(kb: KnowledgeBase) -> None:
    """A metadata or an id too few or too many is refused in words."""
    with pytest.raises(StoreError, match="`metadatas` has 1 items for 2 texts"):
        await kb.add_documents(["One.", "Two."], [{}])
    with pytest.raises(StoreError, match="`ids` has 3 items for 2 texts"):
        await kb.add_documents(["One.", "Two."], ids=["a", "b", "c"])


async def test_a_preview_changes_nothing(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """It says what a put would do."""
    await kb.put([draft("same.md", "Same."), draft("other.md", "Old.")])
    before = await kb.generation()
    drafts = [draft("same.md", "Same."), draft("other.md", "New."), draft("third.md", "Same."), draft("empty.md")]
    reports = await kb.preview(drafts)
    assert [report.status for report in reports] == ["unchanged", "replaced", "added", "failed"]
    assert reports[2].copy_of == "same.md"
    assert await kb.generation() == before
    assert await kb.count() == 2
