"""What was deleted is found by nobody, counted nowhere, and its text is in no file of the catalog."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import LargeBinary, Text, cast, select

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import StoreError
from leadline.knowledge import KnowledgeBase, Library, open_library
from leadline.stores.catalog_schema import metadata

MakeDraft = Callable[..., SourceDraft]
SECRET = "Project Quokka has a budget of 42 million."


def tables_with(library: Library, word: str) -> list[str]:
    """The columns of the catalog in which the word stands."""
    with library.catalog.read() as connection:
        return [
            f"{table.name}.{column.name}"
            for table in metadata.sorted_tables
            for column in table.columns
            if not isinstance(column.type, LargeBinary)
            for value in connection.execute(select(cast(column, Text))).scalars()
            if value is not None and word.casefold() in value.casefold()
        ]


def files_with(folder: Path, word: str) -> list[str]:
    """The files below the folder in which the word stands.

    Not Chroma's HNSW segment: it reserves room for vectors and writes it out as the process's memory happens to be.
    """
    files = [p for p in folder.rglob("*") if p.is_file() and p.name != "data_level0.bin"]
    return [p.name for p in files if word.casefold().encode() in p.read_bytes().lower()]


async def test_a_deleted_source_leaves_nothing_behind(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Every index reports what it lost, no leg finds it, and no table nor file of the catalog holds a word of it."""
    keep, secret = await kb.put([draft("keep.md", "Numbats eat termites."), draft("plan.md", SECRET, "More of it.")])
    report = await kb.delete(secret.doc_id)
    assert report.legs == {"vector": 2, "bm25": 2, "graph": 2, "content": 2}
    assert (report.file_names, report.chunks, report.owed) == (("plan.md",), 2, {})
    for leg in kb.retrievers().values():
        assert all(d["metadata"]["doc_id"] == keep.doc_id for d in await leg.search("project quokka budget", k=9))
    assert tables_with(library, "quokka") == []
    assert files_with(library.catalog.path.parent, SECRET) == []
    assert all(not name.startswith("catalog") for name in files_with(library.catalog.path.parent, "quokka"))
    assert (await kb.verify()).ok


async def test_a_deleted_source_stays_gone_after_a_restart_and_can_come_back(
    settings: Settings, draft: MakeDraft
) -> None:
    """Deleting is not remembered against the content."""
    async with open_library(settings) as library:
        kb = await library.collection()
        (put,) = await kb.put([draft("plan.md", SECRET)])
        await kb.delete(put.doc_id)
        assert await kb.search("quokka") == []
    async with open_library(settings) as library:
        kb = await library.collection()
        assert await kb.search("quokka") == []
        assert [report.status for report in await kb.put([draft("plan.md", SECRET)])] == ["added"]
        assert [d["content"] for d in await kb.search("quokka")] == [SECRET]


async def test_deleting_embeds_nothing(
    library: Library, kb: KnowledgeBase, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what goes nor what stays is given to the model again."""
    one, _ = await kb.put([draft("a.md", SECRET), draft("b.md", "Numbats eat termites.")])
    for method in ("embed_passages", "embed_query"):
        monkeypatch.setattr(library.embedder, method, None)
    assert (await kb.delete(one.doc_id)).legs["vector"] == 1
    assert (await kb.verify()).ok
    await kb.clear()
    assert await kb.count() == 0


async def test_a_copy_outlives_its_original(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Two sources of equal text are deleted one by one."""
    one, copy = await kb.put([draft("a.md", SECRET), draft("b.md", SECRET)])
    await kb.delete(one.doc_id)
    (document,) = await kb.search("quokka budget")
    assert document["metadata"]["doc_id"] == copy.doc_id
    assert "also_in" not in document["metadata"]
    assert (await kb.verify()).ok


async def test_all_sources_with_the_same_bytes_go_together(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """By content hash, and the number is of chunks; an unknown hash is nothing to delete."""
    await kb.put([draft("a.md", SECRET), draft("b.md", SECRET), draft("c.md", "Other.")])
    digest = draft("x", SECRET).file_hash
    assert await kb.delete_by_file(digest) == 2
    assert await kb.delete_by_file(digest) == 0
    assert [source.file_name for source in await kb.list_sources()] == ["c.md"]


async def test_the_last_source_can_be_deleted(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """An empty collection is a legal one: searches find nothing, and it can be filled again."""
    (put,) = await kb.put([draft("a.md", SECRET)])
    await kb.delete(put.doc_id)
    assert await kb.count() == 0
    assert await kb.search("anything") == []
    assert (await kb.verify()).ok
    await kb.put([draft("a.md", SECRET)])
    assert await kb.count() == 1


async def test_an_unknown_id_is_an_error(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Deleting what isn't there is said, also when a file has that name."""
    await kb.put([draft("a.md", SECRET)])
    for unknown in ("nobody", "a.md"):
        with pytest.raises(StoreError, match="no document with the id"):
            await kb.delete(unknown)


async def test_clearing_a_collection_leaves_the_others_alone(library: Library, draft: MakeDraft) -> None:
    """All indexes are empty and stay so; the text is gone from the catalog; another collection still answers."""
    first, second = await library.collection("first", create=True), await library.collection("second", create=True)
    await first.put([draft("a.md", SECRET)])
    await second.put([draft("a.md", "Numbats eat termites.")])
    await first.clear()
    report = await first.verify()
    assert report.ok
    assert {leg: found.found for leg, found in report.legs.items()} == dict.fromkeys(
        ["vector", "bm25", "graph", "content"], 0
    )
    assert files_with(library.catalog.path.parent, "quokka") == []
    assert [d["content"] for d in await second.search("termites")] == ["Numbats eat termites."]
    await first.put([draft("a.md", "Quolls are spotted.")])
    assert [d["content"] for d in await first.search("quokka quolls")] == ["Quolls are spotted."]


async def test_sources_can_be_found_by_what_a_person_knows(kb: KnowledgeBase, draft: MakeDraft) -> None:
    """By id, else by URI, else by name or hash; a name that two share gives both."""
    one, two = await kb.put([draft("x/a.md", SECRET), draft("y/a.md", "Other.")])
    assert [s.doc_id for s in await kb.find_sources(one.doc_id)] == [one.doc_id]
    assert [s.doc_id for s in await kb.find_sources("y/a.md")] == [two.doc_id]
    assert [s.uri for s in await kb.find_sources("a.md")] == ["x/a.md", "y/a.md"]
    assert [s.doc_id for s in await kb.find_sources(draft("", SECRET).file_hash)] == [one.doc_id]
    assert await kb.find_sources("nothing") == []
