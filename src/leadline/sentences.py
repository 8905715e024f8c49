"""Where sentences begin and end, as offsets.

Knows how to feed sentencex so that long lines cost linear time. Knows no tokens.
"""

import re
from collections.abc import Iterator

WINDOW = 4_000
"""sentencex's time grows with the square of a paragraph's length in scripts beyond ASCII: it sees this much at once."""

_UNIT_END = re.compile(r"(?<=/[a-zA-Z]\.)\s+(?=[A-Z])")


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Start and end of each sentence of `text`, in order, blanks at both ends left out.

    A paragraph break ends a sentence; a single line break doesn't. Linear in the length of the text. A sentence longer
    than a window of some thousand characters may come in two.
    """
    return [span for start, end in boundaries(text, language) if (span := trimmed(text, start, end)) is not None]


def boundaries(text: str, language: str = "en") -> Iterator[tuple[int, int]]:
    """The same with the blanks behind each sentence: together they make up the text."""
    for start, end in _windows(text, language):
        yield from _after_units(text, start, end)


def _after_units(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, cut after `m/s.` and its like, which sentencex takes for an abbreviation."""
    for found in _UNIT_END.finditer(text, start, end):
        yield start, found.end()
        start = found.end()
    yield start, end


def _windows(text: str, language: str) -> Iterator[tuple[int, int]]:
    from sentencex import get_sentence_boundaries

    position = 0
    while position < len(text):
        piece = text[position : position + WINDOW]
        bounds = [(b["start_index"], b["end_index"]) for b in get_sentence_boundaries(language, piece)]
        whole = position + WINDOW >= len(text)
        # The last sentence of a window may go on behind it: the next window begins with it.
        kept = bounds if whole or len(bounds) < 2 else bounds[:-1]
        for start, end in kept:
            yield position + start, position + end
        position += kept[-1][1] if kept else WINDOW


def trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without blanks at its ends, or None where nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
