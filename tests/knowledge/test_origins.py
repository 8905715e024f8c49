"""Whether what an answer was made from is still in the library."""

from collections.abc import Callable

from leadline.drafts import ChunkDraft, SourceDraft
from leadline.knowledge import KnowledgeBase, Library
from leadline.records import Origin

MakeDraft = Callable[..., SourceDraft]


async def origins(kb: KnowledgeBase, query: str) -> dict[str, Origin]:
    """Text → where it is from."""
    found = [(each["content"], each["metadata"]) for each in await kb.search(query)]
    return {text: Origin(chunk_id=m["chunk_id"], doc_id=m["doc_id"], file_hash=m["file_hash"]) for text, m in found}


async def test_what_was_put_is_there_in_any_collection(library: Library, draft: MakeDraft) -> None:
    """A conversation may have asked several collections; a chunk that never was isn't there."""
    kept: list[Origin] = []
    for name in ("first", "second"):
        kb = await library.collection(name, create=True)
        await kb.put([draft("a.md", f"Numbats of the {name} collection.")])
        kept += (await origins(kb, "numbats")).values()
    unknown = Origin(chunk_id="c", doc_id="d", file_hash="f")
    assert len({origin["chunk_id"] for origin in kept}) == 2
    assert await library.still_there([*kept, unknown]) == {origin["chunk_id"] for origin in kept}
    assert await library.still_there([]) == set()


async def test_more_origins_than_fit_into_a_statement_are_looked_up(library: Library, kb: KnowledgeBase) -> None:
    """A long conversation is no error."""
    await kb.add_documents(["Numbats eat termites."])
    (kept,) = (await origins(kb, "numbats")).values()
    many = [Origin(chunk_id=f"c{n}", doc_id=f"d{n}", file_hash="f") for n in range(2500)]
    assert await library.still_there([*many, kept]) == {kept["chunk_id"]}


async def test_what_was_deleted_is_not(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """Nor is it when an equal text is in another source: that one was not deleted."""
    one, _ = await kb.put([draft("a.md", "Numbats eat termites."), draft("b.md", "Numbats eat termites.")])
    (document,) = await kb.search("numbats")
    metadata = document["metadata"]
    origin = Origin(chunk_id=metadata["chunk_id"], doc_id=metadata["doc_id"], file_hash=metadata["file_hash"])
    assert origin["doc_id"] == one.doc_id
    await kb.delete(one.doc_id)
    assert await library.still_there([origin]) == set()


async def test_a_new_version_has_what_it_did_not_change(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """The passage that was replaced is gone, the one beside it is there."""
    await kb.put([draft("a.md", "Numbats eat termites.", "Numbats live in Perth.")])
    before = await origins(kb, "numbats")
    await kb.put([draft("a.md", "Numbats eat termites.", "Numbats live in Dryandra.")])
    assert await library.still_there([*before.values()]) == {before["Numbats eat termites."]["chunk_id"]}


async def test_text_that_was_only_cut_anew_is_there(library: Library, kb: KnowledgeBase) -> None:
    """Other chunks of the same bytes hold the same text, so nothing that was made from it has to go."""

    def cut(*pieces: str) -> SourceDraft:
        return SourceDraft("a.md", "a.md", "the same bytes", tuple(ChunkDraft(text, 0, len(text)) for text in pieces))

    await kb.put([cut("Numbats eat termites. They live in Perth.")])
    before = [*(await origins(kb, "numbats")).values()]
    await kb.put([cut("Numbats eat termites.", "They live in Perth.")])
    assert {o["chunk_id"] for o in (await origins(kb, "numbats")).values()}.isdisjoint({before[0]["chunk_id"]})
    assert await library.still_there(before) == {before[0]["chunk_id"]}
