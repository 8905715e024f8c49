"""Plain text, source code, logs: paragraphs are what blank lines set apart.

Knows the underlined headings of reStructuredText and of plain-text manuals. The extracted text is the file's own text,
so offsets count from its beginning (line ends normalised).
"""

import re

from leadline.ingest.extracted import Block, Extracted, Kind, Limits, check_chars
from leadline.ingest.text import decode

_PARAGRAPH = re.compile(r"\S(?:.*(?:\n(?![ \t]*\n).*)*)")
_HEADING = re.compile(
    r"^(?P<title>\S[^\n]{0,119})\n(?P<line>(?P<char>[=\-~^*+#\"])(?P=char){2,119})[ \t]*$", re.MULTILINE
)


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
    headings = [] if kind == "code" else _headings(text)
    blocks = _blocks(text, headings, kind)
    title = headings[0][2] if headings else ""
    metadata = {"title": title} if title else {}
    return Extracted(text, tuple(blocks), metadata, decoded.notes, decoded.encoding)


def _headings(text: str) -> list[tuple[int, int, str, int]]:
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


def _blocks(text: str, headings: list[tuple[int, int, str, int]], kind: Kind) -> list[Block]:
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
