"""Markdown. The extracted text is the source itself, so that offsets point into the file a person wrote.

Knows how CommonMark with tables is laid out in lines. Rows of a table carry the header row as their prefix. HTML
comments are taken out, since a rendered page doesn't show them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from leadline.ingest.extracted import Block, Extracted, Kind, Limits, check_chars
from leadline.ingest.text import decode

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)")
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"[ \t>]*([-*_=])(?:[ \t]*\1){2,}[ \t]*")
_LEAVES = {"heading_open", "paragraph_open", "fence", "code_block", "html_block", "tr_open"}

Lines = tuple[int, int]
Span = tuple[Lines, Kind, int, str]
"""Lines [first, last), the kind, the level of a heading (else 0), and its title or a table's header row."""


def load_markdown(data: bytes, limits: Limits) -> Extracted:
    """Blocks are headings, paragraphs, list items, table rows and code blocks."""
    decoded = decode(data)
    text, hidden = _without_comments(decoded.text)
    check_chars(len(text), limits)
    front = _FRONT_MATTER.match(text)
    skip = text.count("\n", 0, front.end()) if front else 0
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    spans = [*_front_spans(skip), *_filled(_spans(text, skip), text, skip)]
    blocks = tuple(_blocks(text, starts, spans))
    notes = (
        *decoded.notes,
        *((f"HTML comments left out ({hidden}): a rendered page doesn't show them.",) * bool(hidden)),
    )
    title = _title(text, front, spans)
    return Extracted(text, blocks, {"title": title} if title else {}, notes, decoded.encoding)


def _parse(text: str, skip: int) -> list[Token]:
    lines = text.split("\n")
    # Blank lines in place of the front matter keep the line numbers.
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser.parse("\n".join([""] * skip + lines[skip:]))


def _without_comments(text: str) -> tuple[str, int]:
    if "<!--" not in text:
        return text, 0
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    code = [
        (starts[token.map[0]], starts[token.map[1]])
        for token in _parse(text, 0)
        if token.type in {"fence", "code_block"} and token.map
    ]
    kept, position, removed = list[str](), 0, 0
    for start, end in _comments(text):
        fence = bisect_right(code, (start, len(text))) - 1
        if fence < 0 or start >= code[fence][1]:
            kept.append(text[position:start])
            position, removed = end, removed + 1
    return "".join((*kept, text[position:])), removed


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each comment that is closed."""
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start + 4)) >= 0:
        yield start, end + 3
        start = text.find("<!--", end + 3)


def _spans(text: str, skip: int) -> Iterator[Span]:
    items, header, in_head, table_lines = 0, "", False, (0, 0)
    lines = text.split("\n")
    tokens = _parse(text, skip)
    for i, token in enumerate(tokens):
        if token.type in {"list_item_open", "list_item_close"}:
            items += token.nesting
        elif token.type == "thead_open":
            in_head = True
        elif token.type == "thead_close":
            in_head = False
        if token.type not in _LEAVES or token.map is None:
            continue
        table_lines = (token.map[0], token.map[1])
        if token.type == "heading_open":
            yield table_lines, "heading", int(token.tag[1]), tokens[i + 1].content
        elif token.type == "tr_open" and in_head:
            header = lines[token.map[0]].strip()
            yield (token.map[0], token.map[1] + 1), "table_header", 0, ""
        elif token.type == "tr_open":
            yield table_lines, "row", 0, header
        elif token.type in {"fence", "code_block"}:
            yield table_lines, "code", 0, ""
        else:
            yield table_lines, "list_item" if items else "paragraph", 0, ""


def _filled(spans: Iterator[Span], text: str, skip: int) -> Iterator[Span]:
    """The spans, and a paragraph for any words between them that the parser gives no block (link definitions)."""
    lines = text.split("\n")
    position = skip
    for span in spans:
        (first, last), kind, level, extra = span
        if last <= position:
            continue
        yield from _gap(lines, position, first)
        yield (max(first, position), last), kind, level, extra
        position = last
    yield from _gap(lines, position, len(lines))


def _gap(lines: list[str], first: int, last: int) -> Iterator[Span]:
    while first < last and (not lines[first].strip() or _RULE.fullmatch(lines[first])):
        first += 1
    while last > first and (not lines[last - 1].strip() or _RULE.fullmatch(lines[last - 1])):
        last -= 1
    if first < last:
        yield (first, last), "paragraph", 0, ""


def _front_spans(skip: int) -> Iterator[Span]:
    if skip > 2:
        yield (1, skip - 1), "code", 0, ""


def _blocks(text: str, starts: list[int], spans: list[Span]) -> Iterator[Block]:
    path: list[tuple[int, str]] = []
    for (first, last), kind, level, extra in spans:
        start, end = starts[first], min(starts[min(last, len(starts) - 1)], len(text))
        piece = text[start:end]
        end = start + len(piece.rstrip())
        start += len(piece) - len(piece.lstrip())
        if start >= end:
            continue
        if level:
            path = [pair for pair in path if pair[0] < level]
        headings = tuple(name for _, name in path)
        yield Block(start, end, kind, headings, prefix="" if level else extra)
        if level and (title := " ".join(extra.split())):
            path.append((level, title))


def _title(text: str, front: re.Match[str] | None, spans: list[Span]) -> str:
    if front and (named := _FRONT_TITLE.search(text, 0, front.end())):
        return named[1]
    return next((" ".join(title.split()) for _, _, level, title in spans if level == 1), "")
