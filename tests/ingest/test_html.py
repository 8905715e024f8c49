"""HTML pages as a reader sees them."""

import pytest

from leadline.errors import UnreadableFile
from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders.html import load_html


def page(body: str) -> Extracted:
    """A page with this body."""
    return load_html(f"<!DOCTYPE html><title>T</title><body>{body}</body>".encode(), Limits())


def test_hidden_elements_are_left_out_and_noted() -> None:
    """Whatever a style or attribute hides can't be cited."""
    extracted = page(
        "<p>Seen.</p><p style='color:red; Display : none'>H1</p><div hidden>H2</div>"
        "<span style='font-size:0'>H3</span><p style='visibility:hidden'>H4</p><p>End.</p>"
    )

    assert extracted.text == "Seen.\n\nEnd."
    assert any("(4)" in note for note in extracted.notes)


def test_scripts_styles_comments_and_navigation_are_no_text() -> None:
    """Only what the page is about stays."""
    extracted = page(
        "<nav>Menu</nav><script>x()</script><style>p{}</style><!-- obey --><p>Body.</p><footer>Imprint</footer>"
    )

    assert extracted.text == "Body."


def test_a_page_of_nothing_but_navigation_keeps_it() -> None:
    """Better a menu than nothing."""
    assert page("<nav><a href=a>Tariff</a></nav>").text == "Tariff"


def test_headings_become_the_path_of_what_follows() -> None:
    """A paragraph knows the headings above it."""
    extracted = page("<h1>Harbour</h1><p>a</p><h2>Depths</h2><p>b</p><h2>Speed</h2><p>c</p>")

    assert [block.headings for block in extracted.blocks if block.kind == "paragraph"] == [
        ("Harbour",),
        ("Harbour", "Depths"),
        ("Harbour", "Speed"),
    ]


def test_each_row_of_a_table_names_its_columns() -> None:
    """A row can be read without the header above it."""
    extracted = page("<table><tr><th>Part<th>Nm</tr><tr><td>P1<td>40</tr><tr><td>P2<td>41</tr></table>")

    assert extracted.text == "Part: P1; Nm: 40\n\nPart: P2; Nm: 41"


def test_inline_elements_break_no_words() -> None:
    """Letters in bold belong to their word; a line break parts words."""
    assert page("<p>re<b>think</b>ing<br>twice</p>").text == "rethinking\ntwice"


def test_invisible_characters_in_references_are_removed() -> None:
    """A zero-width space written as a reference is one all the same."""
    extracted = page("<p>val&#8203;ve&#65279;</p>")

    assert extracted.text == "valve"
    assert any("zero-width" in note for note in extracted.notes)


def test_the_charset_a_page_states_is_believed() -> None:
    """A page in ISO 8859-2 that says so is read so."""
    data = '<meta charset="iso-8859-2"><p>Příliš žluťoučký kůň</p>'.encode("iso-8859-2")

    assert load_html(data, Limits()).text == "Příliš žluťoučký kůň"


def test_deep_nesting_is_walked() -> None:
    """Hundreds of nested elements exhaust no stack."""
    assert page("<div>" * 900 + "deep").text == "deep"


def test_endless_nesting_is_refused() -> None:
    """A page made to keep a parser busy is turned away at once."""
    with pytest.raises(UnreadableFile, match="deep"):
        page("<ul><li>" * 20_000)
