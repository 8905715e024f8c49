"""Plain text."""

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
