"""Plain text."""

import pytest

from leadline.ingest.extracted import Limits
from leadline.ingest.loaders.plain import load_lines, load_plain


def test_underlined_lines_are_headings() -> None:
    """The first kind of underline met is the outermost level."""
    extracted = load_plain(b"Minutes\n=======\n\nPresent.\n\n1. Tariff\n---------\n\nAgreed.\n\nNext day.\n", Limits())

    assert [(block.kind, block.headings) for block in extracted.blocks] == [
        ("heading", ()),
        ("paragraph", ("Minutes",)),
        ("heading", ("Minutes",)),
        ("paragraph", ("Minutes", "1. Tariff")),
        ("paragraph", ("Minutes", "1. Tariff")),
    ]
    assert extracted.metadata["title"] == "Minutes"


def test_the_text_is_the_files_own() -> None:
    """Offsets count from the beginning of the file."""
    source = "  First line\n  second line.\n\n\nNext paragraph.\n"
    extracted = load_plain(source.encode(), Limits())

    assert extracted.text == source
    assert [source[b.start : b.end].strip() for b in extracted.blocks] == [
        "First line\n  second line.",
        "Next paragraph.",
    ]


def test_source_code_has_no_headings() -> None:
    """A comment line of dashes underlines nothing."""
    extracted = load_lines(b"# Setup\n-------\nx = 1\n", Limits())

    assert [block.kind for block in extracted.blocks] == ["code"]


MINUTES = """Minutes of May

1. Oven
The second deck oven broke down again, and a repair would cost 7,800 EUR.

2. Prices

Flour has become dearer.

2.1 Bread

Twenty cents more from July.

3. Shop

Postponed.
"""


def test_numbered_lines_above_text_are_headings() -> None:
    """Right above their text or apart from it; a deeper number lies under the one before."""
    extracted = load_plain(MINUTES.encode(), Limits())

    assert [(MINUTES[b.start : b.end], b.headings) for b in extracted.blocks if b.kind == "heading"] == [
        ("1. Oven", ()),
        ("2. Prices", ()),
        ("2.1 Bread", ("2. Prices",)),
        ("3. Shop", ()),
    ]
    assert extracted.blocks[-1].headings == ("3. Shop",)


def test_a_numbered_heading_with_an_underline_is_one() -> None:
    """However long it is: the underline is no text below it."""
    first, second = (
        "1. Introduction to the maintenance of deck ovens",
        "2. What to do before the first baking of the day",
    )
    text = f"{first}\n{'=' * len(first)}\n\nClean it.\n\n{second}\n{'=' * len(second)}\n\nHeat it."
    extracted = load_plain(text.encode(), Limits())

    assert [(extracted.text[b.start : b.end].split("\n")[0], b.headings) for b in extracted.blocks] == [
        (first, ()),
        ("Clean it.", (first,)),
        (second, ()),
        ("Heat it.", (second,)),
    ]


def test_a_line_of_blanks_is_a_blank_line() -> None:
    """Editors leave blanks in the lines between a numbered heading and its text."""
    extracted = load_plain(MINUTES.replace("\n\n", "\n  \n").encode(), Limits())

    assert [b.headings for b in extracted.blocks if b.kind == "heading"] == [(), (), ("2. Prices",), ()]


@pytest.mark.parametrize(
    "text",
    [
        "1. Milk\n2. Bread\n3. Eggs\n",
        "1. Milk\n\n2. Bread\n\n3. Eggs\n",
        "1. Open the lid\nand wait.\n\n2. Close the lid\nand go.\n",
        "1. Open the lid.\n\nIt is hot.\n\n2. Close the lid.\n\nIt is done.\n",
        "3 May 2024\n\nHello there.\n\n7 May 2024\n\nGoodbye.\n",
        "1. Oven\n\nOne numbered line alone says nothing.\n",
    ],
)
def test_lists_and_dates_are_no_headings(text: str) -> None:
    """Items follow each other, end like sentences or don't count on from 1."""
    assert all(block.kind == "paragraph" for block in load_plain(text.encode(), Limits()).blocks)
