"""Chunks: exact slices that the embedder reads whole."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.drafts import ChunkDraft
from leadline.ingest.chunking import chunk
from leadline.ingest.extracted import Extracted, Kind, Limits, TextBuilder
from leadline.ingest.loaders import load
from leadline.ingest.loaders.plain import load_plain
from leadline.models.minilm import MiniLM
from leadline.sentences import sentence_spans

Drafts = tuple[ChunkDraft, ...]


def check(extracted: Extracted, drafts: Drafts, tokenizer: MiniLM) -> None:
    """What holds for the chunks of any text."""
    for draft in drafts:
        assert draft.text == extracted.text[draft.start_char : draft.end_char]
        assert draft.text == draft.text.strip() != ""
        assert len(tokenizer.token_spans(draft.embedded_text)) <= tokenizer.max_tokens
    for before, after in pairwise(drafts):
        assert before.end_char <= after.start_char
    covered = {i for draft in drafts for i in range(draft.start_char, draft.end_char)}
    titles = {name for draft in drafts for name in draft.headings}
    for block in extracted.blocks:
        if block.kind == "heading" and any(title in extracted.text[block.start : block.end] for title in titles):
            continue
        span = range(block.start, block.end)
        assert all(i in covered for i in span if not extracted.text[i].isspace()), extracted.text[
            block.start : block.end
        ]


WORDS = st.text(alphabet="abcdefgh ij.!?,;-0123456789éß東京。ไทย\n\"'()", max_size=400)
LONG = st.sampled_from(["x" * 3000, "東" * 900, "a-b" * 500, "word " * 700, "😀" * 400, "1.2.3." * 300, "ตัวอย่าง" * 200])


KINDS: tuple[Kind, ...] = ("heading", "paragraph", "paragraph", "list_item", "row", "code")


@st.composite
def extracted_texts(draw: st.DrawFn) -> Extracted:
    """Documents of headings, paragraphs, rows and code over several pages."""
    builder = TextBuilder(Limits())
    page = draw(st.sampled_from([None, 1]))
    for _ in range(draw(st.integers(1, 8))):
        kind: Kind = draw(st.sampled_from(KINDS))
        text = draw(st.one_of(WORDS, LONG))
        if kind == "heading":
            builder.add_heading(draw(st.integers(1, 4)), text, page=page)
        else:
            builder.add(kind, text, page=page)
        page = page + draw(st.integers(0, 1)) if page else None
    return Extracted(builder.text, tuple(builder.blocks))


@settings(max_examples=60, deadline=None)
@given(extracted=extracted_texts(), chunk_tokens=st.integers(20, 300))
def test_chunks_are_ordered_slices_within_the_window_and_lose_nothing(
    extracted: Extracted, chunk_tokens: int, tokenizer: MiniLM
) -> None:
    """Whatever the text: exact slices, in order, no overlap, no word lost, never more than the model reads."""
    drafts, _ = chunk(extracted, tokenizer, chunk_tokens=chunk_tokens)

    check(extracted, drafts, tokenizer)
    for draft in drafts:
        pages = {b.page for b in extracted.blocks if b.start < draft.end_char and draft.start_char < b.end}
        assert pages == {draft.page}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(3, 60), min_size=1, max_size=40))
def test_a_sentence_that_fits_is_never_split(tokenizer: MiniLM, lengths: list[int]) -> None:
    """Every sentence lies whole in one chunk."""
    text = " ".join("The " + " ".join(["valve"] * length) + " opens." for length in lengths)
    extracted = load(text.encode(), "a.txt")
    drafts, notes = chunk(extracted, tokenizer, chunk_tokens=100)

    for start, end in sentence_spans(text):
        assert any(d.start_char <= start and end <= d.end_char for d in drafts)
    assert notes == ()


def test_a_sentence_longer_than_a_chunk_but_not_than_the_window_stays_whole(tokenizer: MiniLM) -> None:
    """It gets a chunk of its own, and the headings give way to it."""
    sentence = "The " + "very " * 240 + "long way."
    drafts, _ = chunk(load(f"# {'Heading ' * 30}\n\n{sentence} Next.".encode(), "a.md"), tokenizer, chunk_tokens=50)

    assert drafts[0].text == sentence


def test_a_sentence_longer_than_the_window_is_cut_and_noted(tokenizer: MiniLM) -> None:
    """The end of it can be found, and the notes say that it was cut."""
    drafts, notes = chunk(load(b"word " * 900 + b"needle.", "a.txt"), tokenizer)

    assert drafts[-1].text.endswith("needle.")
    assert any("longer than the model's window" in note for note in notes)


def test_headings_go_into_the_prefix(tokenizer: MiniLM) -> None:
    """The path stands before the text for search, not in it; sections aren't mixed."""
    drafts, _ = chunk(load(b"# Crane\n\nIntro.\n\n## Wind\n\nStop at 17 m/s.\n", "a.md"), tokenizer)

    assert [(d.prefix, d.text) for d in drafts] == [("Crane", "Intro."), ("Crane > Wind", "Stop at 17 m/s.")]
    assert drafts[1].headings == ("Crane", "Wind")


def test_headings_with_nothing_under_them_are_not_lost(tokenizer: MiniLM) -> None:
    """They are text then, and several share a chunk."""
    drafts, _ = chunk(load(b"# Crane\n\n## Wind\n\n## Loads\n\n## People\n\nWear helmets.\n", "a.md"), tokenizer)

    assert [d.text for d in drafts] == ["## Wind\n\n## Loads", "Wear helmets."]


def test_a_long_heading_path_is_shortened_from_outside(tokenizer: MiniLM) -> None:
    """The nearest heading stays, the prefix takes a quarter of the window at most, and a note says so."""
    source = f"# {'Outer ' * 70}\n\n## Inner\n\nText.\n"
    drafts, notes = chunk(load(source.encode(), "a.md"), tokenizer)

    assert drafts[0].prefix == "Inner"
    assert any("shortened" in note for note in notes)


def test_every_chunk_of_a_long_table_has_the_header(tokenizer: MiniLM) -> None:
    """Row 390 can be understood, and its offsets point to the true row."""
    rows = "".join(f"| P-{i} | {i * 2} | M{i % 9} |\n" for i in range(1, 401))
    extracted = load(f"# Torques\n\n| Part | Torque Nm | Bolt |\n|---|---|---|\n{rows}".encode(), "a.md")
    drafts, _ = chunk(extracted, tokenizer)
    draft = next(d for d in drafts if "| P-390 |" in d.text)

    assert all("| Part | Torque Nm | Bolt |" in d.embedded_text for d in drafts)
    assert "| P-390 | 780 | M3 |" in extracted.text[draft.start_char : draft.end_char]
    assert all(line.count("|") == 4 for d in drafts for line in d.text.splitlines())


def test_a_page_is_never_mixed_with_the_next(tokenizer: MiniLM) -> None:
    """Two short pages are two chunks."""
    builder = TextBuilder(Limits())
    builder.add("paragraph", "Alpha.", page=1)
    builder.add("paragraph", "Bravo.", page=2)
    drafts, _ = chunk(Extracted(builder.text, tuple(builder.blocks)), tokenizer)

    assert [(d.page, d.text) for d in drafts] == [(1, "Alpha."), (2, "Bravo.")]


@pytest.mark.parametrize("piece", ["a", "東京の本社は移転した。", "ตัวอย่างข้อความ ", "word ", "The fox ran. ", "((("])
def test_time_grows_with_the_length_only(tokenizer: MiniLM, piece: str) -> None:
    """Eight times the text takes some eight times the time, also on one endless line."""

    def seconds(length: int) -> float:
        extracted = load((piece * (length // len(piece))).encode(), "a.txt")
        start = time.process_time()
        chunk(extracted, tokenizer)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(160_000) < 25 * max(seconds(20_000), 0.02)


def test_sentences_keep_their_offsets_in_any_script() -> None:
    """Spans are slices of the text, beyond the first window too."""
    text = "東京の本社は2019年に移転した。" * 700
    spans = sentence_spans(text, "ja")

    assert len(spans) == 700
    assert {text[start:end] for start, end in spans} == {"東京の本社は2019年に移転した。"}


class Watched:
    """The tokenizer, and how many characters it was given since the last check."""

    def __init__(self, tokenizer: MiniLM) -> None:
        self.max_tokens = tokenizer.max_tokens
        self._tokenizer = tokenizer
        self.unchecked = self.most_unchecked = 0

    def check(self) -> None:
        """What a caller may look at now and then."""
        self.unchecked = 0

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """As the tokenizer."""
        self.unchecked += len(text)
        self.most_unchecked = max(self.most_unchecked, self.unchecked)
        return self._tokenizer.token_spans(text)


@pytest.mark.parametrize("text", ["7", "a. ", "字", "Otters eat at noon. ", "Otters eat. \n\n"])
def test_a_caller_may_end_it_soon_whatever_the_text(tokenizer: MiniLM, text: str) -> None:
    """It is asked at least once in 50,000 characters, one paragraph of millions or many; what it raises ends it."""
    extracted = load_plain((text * (300_000 // len(text))).encode(), Limits())
    watched = Watched(tokenizer)
    assert chunk(extracted, watched, check=watched.check)[0]
    assert 0 < watched.most_unchecked <= 50_000

    def over() -> None:
        raise TimeoutError("enough")

    with pytest.raises(TimeoutError, match="enough"):
        chunk(extracted, tokenizer, check=over)
