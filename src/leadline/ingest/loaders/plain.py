"""Plain text, source code, logs: paragraphs are what blank lines set apart.

Knows the underlined headings of reStructuredText and of plain-text manuals, and numbered ones (`5. Oven`) where they
count on through the file and stand above text. The extracted text is the file's own text,
so offsets count from its beginning (line ends normalised).
"""

import re

from leadline.ingest.extracted import Block, Extracted, Kind, Limits, check_chars
from leadline.ingest.text import decode

_PARAGRAPH = re.compile(r"\S(?:.*(?:\n(?![ \t]*\n).*)*)")
_HEADING = re.compile(
    r"^(?P<title>\S[^\n]{0,119})\n(?P<line>(?P<char>[=\-~^*+#\"])(?P=char){2,119})[ \t]*$", re.MULTILINE
)
_NUMBERED = re.compile(
    r"(?:\A|(?<=\n))(?P<number>\d{1,2}(?:\.\d{1,2}){0,3})[.)]?[ \t]+(?P<title>[^\W\d_][^\n]{0,58}?)[ \t]*"
    r"(?=(?P<below>\n\s*[^\n]*))"
)
_ENDS = (".", ",", ";", ":", "!", "?", "-")
_NUMBERED_LEVEL = 1_000
"""Numbered headings lie below underlined ones."""
MIN_TEXT = 40
"""Characters of the line right below a numbered heading: a shorter one may be the rest of a list item."""

Heading = tuple[int, int, str, int]
"""Start, end, title and level."""


def load_plain(data: bytes, limits: Limits, charset: str | None = None) -> Extracted:
    """Prose, with underlined headings. `charset` is what a server says of it."""
    return _load(data, limits, "paragraph", charset)


def load_lines(data: bytes, limits: Limits) -> Extracted:
    """Text whose lines are its units: source code, logs, JSON Lines."""
    return _load(data, limits, "code")


def _load(data: bytes, limits: Limits, kind: Kind, charset: str | None = None) -> Extracted:
    decoded = decode(data, charset)
    text = decoded.text
    check_chars(len(text), limits)
    headings = [] if kind == "code" else sorted([*_headings(text), *_numbered_headings(text)])
    blocks = _blocks(text, headings, kind)
    title = headings[0][2] if headings else ""
    metadata = {"title": title} if title else {}
    return Extracted(text, tuple(blocks), metadata, decoded.notes, decoded.encoding)


def _headings(text: str) -> list[Heading]:
    """Start, end, title and level of each heading; levels by the order in which the underlines first come."""
    order: list[str] = []
    found = []
    for match in _HEADING.finditer(text):
        title = match["title"].strip()
        if len(match["line"]) < 0.7 * len(title) or not any(char.isalpha() for char in title):
            continue
        if match["char"] not in order:
            order.append(match["char"])
        found.append((match.start(), match.end(), title, order.index(match["char"])))
    return found


def _numbered_headings(text: str) -> list[Heading]:
    """Short numbered lines below a blank line and above text that counts on from 1. None where one is out of turn, for
    then the numbers may be anything: the whole file must agree."""
    found = list[Heading]()
    before: tuple[int, ...] = (0,)
    for match in _NUMBERED.finditer(text):
        title, line = match["title"], match.start()
        above = text[text.rfind("\n", 0, max(line - 1, 0)) + 1 : line]
        if above.strip() or not _is_title(title, match["number"], match["below"]):
            continue
        number = tuple(map(int, match["number"].split(".")))
        if not _follows(before, number):
            return []
        start, end = match.start("number"), match.end("title")
        found.append((start, end, " ".join(text[start:end].split()), _NUMBERED_LEVEL + len(number)))
        before = number
    return found if len(found) > 1 else []


def _is_title(title: str, number: str, below: str) -> bool:
    line = below.strip()
    if title[0].islower() or title.endswith(_ENDS) or not any(map(str.isalnum, line)):  # an underline is no text
        return False
    item = re.match(r"(\d{1,2}(?:\.\d{1,2})*)[.)]?[ \t]", line)
    if item is not None:
        return item[1].startswith(f"{number}.")
    apart = below[1:].lstrip(" \t").startswith("\n")
    return apart or (not below[1:2].isspace() and not line[0].islower() and len(line) >= MIN_TEXT)


def _follows(before: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether a section's number is the next one: 1 after nothing, 2 or 1.1 after 1, 2 after 1.3."""
    if len(number) > len(before):
        return number == (*before, 1)
    return number[:-1] == before[: len(number) - 1] and number[-1] == before[len(number) - 1] + 1


def _blocks(text: str, headings: list[Heading], kind: Kind) -> list[Block]:
    blocks: list[Block] = []
    path: list[tuple[int, str]] = []
    position = 0
    for start, end, title, level in headings:
        blocks += _paragraphs(text, position, start, kind, path)
        path = [pair for pair in path if pair[0] < level]
        blocks.append(Block(start, end, "heading", tuple(name for _, name in path)))
        path.append((level, title))
        position = end
    return blocks + _paragraphs(text, position, len(text), kind, path)


def _paragraphs(text: str, start: int, end: int, kind: Kind, path: list[tuple[int, str]]) -> list[Block]:
    names = tuple(name for _, name in path)
    spans = ((match.start(), match.end()) for match in _PARAGRAPH.finditer(text, start, end))
    return [Block(first, last, kind, names) for first, last in spans]
