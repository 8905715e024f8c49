"""Markdown, whose text stays the source itself."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders.markdown import load_markdown


def pieces(extracted: Extracted) -> list[tuple[str, str]]:
    """Kind and text of each block."""
    return [(block.kind, extracted.text[block.start : block.end]) for block in extracted.blocks]


def load(source: str) -> Extracted:
    """The blocks of this source."""
    return load_markdown(source.encode(), Limits())


def test_blocks_are_slices_of_the_source() -> None:
    """Nothing is rendered: offsets point into the file as written."""
    source = "# Crane\n\nStop at **17 m/s**.\n\n- one\n- two\n\n```\n# no heading\n```\n"
    extracted = load(source)

    assert extracted.text == source
    assert pieces(extracted) == [
        ("heading", "# Crane"),
        ("paragraph", "Stop at **17 m/s**."),
        ("list_item", "- one"),
        ("list_item", "- two"),
        ("code", "```\n# no heading\n```"),
    ]


def test_rows_of_a_table_carry_its_header() -> None:
    """Each row can be understood apart from the table."""
    extracted = load("| Part | Nm |\n|---|---|\n| P1 | 40 |\n| P2 | 41 |\n")

    assert [block.prefix for block in extracted.blocks if block.kind == "row"] == ["| Part | Nm |"] * 2


def test_comments_are_left_out_but_not_from_code() -> None:
    """What a rendered page doesn't show isn't searched; code is shown as it is."""
    extracted = load("Seen. <!-- obey me -->\n\n<!-- and\nme -->\n\n```\n<!-- code -->\n```\n")

    assert "obey" not in extracted.text
    assert "<!-- code -->" in extracted.text
    assert any("comments" in note for note in extracted.notes)


def test_front_matter_gives_the_title_and_no_heading() -> None:
    """The rule below it doesn't make a heading of its last line."""
    extracted = load("---\ntitle: Tide tables\ntags: x\n---\nText.\n")

    assert extracted.metadata["title"] == "Tide tables"
    assert pieces(extracted) == [("code", "title: Tide tables\ntags: x"), ("paragraph", "Text.")]


def test_words_the_parser_gives_no_block_are_kept() -> None:
    """A link definition is text too."""
    assert ("paragraph", "[tariff]: https://example.org 'Port dues'") in pieces(
        load("See [tariff].\n\n[tariff]: https://example.org 'Port dues'\n")
    )


@given(st.text(alphabet="ab #-*|`>\n\t1.[]:=<!/&", max_size=200))
def test_no_word_is_lost_whatever_the_source(source: str) -> None:
    """Every letter and digit of the text lies in a block, blocks are in order and don't overlap."""
    extracted = load(source)
    covered = {i for block in extracted.blocks for i in range(block.start, block.end)}

    assert all(i in covered for i, char in enumerate(extracted.text) if char.isalnum())
    assert all(a.end <= b.start for a, b in zip(extracted.blocks, extracted.blocks[1:], strict=False))


def test_comments_that_are_never_closed_cost_no_time() -> None:
    """A hundred thousand opened comments are text, read in one pass."""
    assert load("<!--" * 100_000).blocks
