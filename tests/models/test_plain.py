"""Text without characters that no text may have, whole and in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.models.plain import PlainStream, plain


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("20 EUR\x00 a month", "20 EUR  a month"),
        ("red \x1b[31m", "red  [31m"),
        ("half \ud800.", "half \ufffd."),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("a\r\nb\rc\td\n", "a\nb\nc\td\n"),
        ("Größe 價 😀", "Größe 價 😀"),
    ],
)
def test_only_what_no_text_may_have_goes(text: str, clean: str) -> None:
    """Pairs are put together, halves and control characters replaced, all else stays."""
    assert plain(text) == clean


@given(st.lists(st.text(alphabet="a\r\n\x00\ud83d\ude00\udbff😀", max_size=4), max_size=6))
def test_pieces_give_the_same_text(pieces: list[str]) -> None:
    """However it is cut, also within a pair; what comes out can be written as UTF-8."""
    stream = PlainStream()
    joined = "".join([*map(stream.feed, pieces), stream.flush()])
    assert joined == plain("".join(pieces))
    assert joined.encode().decode() == joined
