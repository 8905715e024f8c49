"""A passage as sentences: slices of its own text, with offsets.

Knows what ends a sentence: the splitter's rules, an empty line, and the line ends of headings, list items and table
rows. A line that begins with a label (`Present: …`) begins a sentence. Line breaks inside running text (as PDF pages
have them) end nothing.
"""

import re
from collections.abc import Iterator

from leadline.sentences import sentence_spans as split
from leadline.sentences import trimmed

Span = tuple[int, int, str]

_LINE = re.compile(r"[^\n]*\n?")
_STANDS_ALONE = re.compile(r"\s*(#{1,6}\s|[-*+•]\s|\d{1,3}[.)]\s|\||>|```)|.*\s\|\s|.*\t|[^.!?]{1,60}:\s*$")

_BEGINS_WITH_LABEL = re.compile(r"\s*[A-ZÄÖÜ][^\W\d_]+(?: [^\W\d_]+){0,2}:[ \t]+\S")


def sentence_spans(text: str, language: str = "en") -> list[Span]:
    """(start, end, sentence) of each sentence, in order, white space around it left out."""
    return [span for start, end in _blocks(text) for span in _sentences(text, start, end, language)]


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[Span]:
    if text.startswith("|", start) and (row := trimmed(text, start, end)):  # a full stop in a cell ends nothing
        yield *row, text[row[0] : row[1]]
        return
    for begin, stop in split(text[start:end], language):
        yield start + begin, start + stop, text[start + begin : start + stop]


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Runs of lines that may hold sentences across their line breaks; lines that stand alone are their own."""
    begin = 0
    for line in _LINE.finditer(text):
        if not line.group().strip() or _STANDS_ALONE.match(line.group().rstrip("\n")):
            yield begin, line.start()
            yield line.span()
            begin = line.end()
        elif _BEGINS_WITH_LABEL.match(line.group()):
            yield begin, line.start()
            begin = line.start()
    yield begin, len(text)
