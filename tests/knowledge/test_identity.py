"""Ids are made of content: equal input gives equal ids, another text another one, whatever stands around it."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.drafts import ChunkDraft, SourceDraft
from leadline.knowledge.identity import hash_of, new_version, place_chunks, source_id

texts = st.lists(st.text(min_size=1, max_size=8), max_size=12)


def chunks_of(passages: list[str], prefix: str = "") -> list[ChunkDraft]:
    """Passages one after the other."""
    return [ChunkDraft(passage, 0, len(passage), prefix) for passage in passages]


@given(texts)
def test_equal_chunks_get_equal_ids(passages: list[str]) -> None:
    """Putting the same source again changes no id."""
    assert place_chunks("d", chunks_of(passages)) == place_chunks("d", chunks_of(passages))


@given(texts)
def test_no_two_chunks_of_a_source_share_an_id(passages: list[str]) -> None:
    """Passages with the same text are told apart by their order."""
    ids = [chunk.chunk_id for chunk in place_chunks("d", chunks_of(passages))]
    assert len(set(ids)) == len(passages)


@given(texts, st.text(min_size=9, max_size=20), st.integers(0, 12))
def test_an_inserted_passage_changes_no_other_id(passages: list[str], new: str, at: int) -> None:
    """An edit costs only what it changed: all other passages keep their ids wherever they move."""
    before = {chunk.chunk_id for chunk in place_chunks("d", chunks_of(passages))}
    edited = [*passages[:at], new, *passages[at:]]
    after = {chunk.chunk_id for chunk in place_chunks("d", chunks_of(edited))}
    assert before < after
    assert len(after - before) == 1


@given(texts)
def test_another_source_has_other_ids_and_shares_the_vectors(passages: list[str]) -> None:
    """Equal passages of two sources are two chunks, and one entry in the vector cache."""
    one, other = place_chunks("d", chunks_of(passages)), place_chunks("e", chunks_of(passages))
    assert not {c.chunk_id for c in one} & {c.chunk_id for c in other}
    assert [c.content_hash for c in one] == [c.content_hash for c in other]


def test_a_changed_heading_makes_another_chunk() -> None:
    """The prefix is embedded too, so it counts as text."""
    (plain,), (headed,) = place_chunks("d", chunks_of(["a"])), place_chunks("d", chunks_of(["a"], prefix="Title"))
    assert plain.chunk_id != headed.chunk_id
    assert plain.content_hash != headed.content_hash


@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(st.text(), min_size=1, max_size=4))
def test_hashes_tell_where_parts_end(left: list[str], right: list[str]) -> None:
    """("ab", "c") and ("a", "bc") are different things; no text breaks the hash, lone surrogates neither."""
    assert (hash_of(*left) == hash_of(*right)) == (left == right)


def test_a_source_is_its_collection_and_uri() -> None:
    """The same path in another collection is another source."""
    assert source_id("a", "x.md") == source_id("a", "x.md")
    assert source_id("a", "x.md") != source_id("b", "x.md")


def test_a_caller_may_name_a_source() -> None:
    """A given id is used as it is."""
    draft = SourceDraft("u", "u", "h", tuple(chunks_of(["a"])), doc_id="mine")
    assert new_version("c", draft, "").doc_id == "mine"


def test_the_fingerprint_changes_with_anything_a_reader_could_see() -> None:
    """Text, page, place, headings, metadata, name: a change of any makes a new version."""
    chunk = ChunkDraft("a", 0, 1)
    same = SourceDraft("u", "u", "h", (chunk,), metadata={"year": 1, "kind": "x"})
    others = [
        SourceDraft("u", "u", "h", (chunk,), metadata={"year": 2, "kind": "x"}),
        SourceDraft("u", "v", "h", (chunk,), metadata={"year": 1, "kind": "x"}),
        SourceDraft("u", "u", "i", (chunk,), metadata={"year": 1, "kind": "x"}),
        SourceDraft("u", "u", "h", (ChunkDraft("a", 0, 1, page=2),), metadata={"year": 1, "kind": "x"}),
        SourceDraft("u", "u", "h", (ChunkDraft("a", 1, 2),), metadata={"year": 1, "kind": "x"}),
        SourceDraft("u", "u", "h", (ChunkDraft("a", 0, 1, headings=("T",)),), metadata={"year": 1, "kind": "x"}),
    ]
    prints = {new_version("c", draft, "").fingerprint for draft in (same, *others)}
    assert len(prints) == 7
    reordered = SourceDraft("u", "u", "h", (chunk,), metadata={"kind": "x", "year": 1})
    assert new_version("c", reordered, "").fingerprint == new_version("c", same, "").fingerprint
