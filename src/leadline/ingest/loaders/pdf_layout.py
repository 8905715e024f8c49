"""From the lines of PDF pages back to headings, paragraphs and list items.

Knows what lines look like: how long they are, how large their letters, which of them stand on every page. Knows
nothing of the PDF format itself.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal

FULL_LINE = 0.8
"""A line at least this long, as a share of the page's long lines, goes on in the next one."""
HEADING_SIZE = 1.15
"""Letters of a heading are at least this much larger than those of the text."""
MAX_HEADING = 120
MAX_HEADING_SHARE = 0.2
"""Where more of the text than this is in large letters, they mean nothing (slides, posters)."""
EDGE_LINES = 2
MIN_RUNNING_PAGES, RUNNING_SHARE = 3, 0.6

_ITEM = re.compile(r"[-*•‣▪–—·◦]\s|\(?\d{1,3}[.)]\s|\(?[a-zA-Z][.)]\s")
_STOP = (".", "!", "?", ":", ";", "。", "！", "？")
WORD = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]{2,})*")
_NUMBERED = re.compile(
    r"(?:(?:chapter|section|part|kapitel|teil)\s+|§\s?)?(\d{1,2}(?:\.\d{1,2})*|[IVX]+|[A-Z])[.):]?\s+\w", re.I
)
_FIRST_NUMBERS = {"0", "1", "1.1", "I", "A"}
_BROKEN = re.compile(r"[^\W\d_]{2,}-$")


@dataclass(frozen=True, slots=True)
class Cells:
    """A row of a table, the page's `table`th: one text a column (empty where there is none), the fonts they begin in,
    and the columns as (left, right) in points. `headed` says that the lines drawn speak for a row of names."""

    texts: tuple[str, ...]
    fonts: tuple[str, ...]
    columns: tuple[tuple[float, float], ...]
    table: int
    headed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page, blanks tidied, with the size of most of its letters in points (0 where unknown)."""

    text: str
    size: float
    cells: Cells | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, list item or table row; a heading where `level` is above 0 (1 = outermost)."""

    text: str
    level: int = 0
    kind: Literal["paragraph", "list_item", "row"] = "paragraph"


def lines_of(fragments: Sequence[tuple[str, float]]) -> list[Line]:
    """The lines of a page from its text in order of reading, each fragment with its letter size."""
    lines: list[Line] = []
    text, sizes = "", Counter[float]()
    for fragment, size in chain(fragments, [("\n", 0.0)]):
        for i, part in enumerate(fragment.split("\n")):
            if i:
                lines.append(Line(" ".join(text.split()), sizes.most_common(1)[0][0] if sizes else 0.0))
                text, sizes = "", Counter()
            text += part
            if letters := len(part.strip()):
                sizes[size] += letters
    return lines


def without_running_heads(pages: Sequence[list[Line]]) -> tuple[list[list[Line]], int]:
    """The pages without the lines that stand at the edge of most of them; the first of each is kept.

    Such a line differs by the number of its page only, and is either numbered or in letters of another size than the
    text: a form's `Status: passed` may stand on every page as well. The second value is how many lines went.
    """
    body = _text_size(pages)
    edges = [dict(_edges(page, number, body)) for number, page in enumerate(pages, 1)]
    counts = Counter(key for edge in edges for key in set(edge.values()))
    needed = max(MIN_RUNNING_PAGES, RUNNING_SHARE * len(pages))
    seen: set[str] = set()
    kept = []
    for page, edge in zip(pages, edges, strict=True):
        kept.append([line for i, line in enumerate(page) if edge.get(i) not in seen])
        seen |= {key for key in edge.values() if counts[key] >= needed}
    return kept, sum(map(len, pages)) - sum(map(len, kept))


def _edges(page: list[Line], number: int, body: float) -> Iterator[tuple[int, str]]:
    """Index and text of the first and last lines of a page that may be running heads, its own number taken out."""
    filled = [i for i, line in enumerate(page) if line.text]
    for i in dict.fromkeys([*filled[:EDGE_LINES], *filled[-EDGE_LINES:]]):
        key = re.sub(rf"(?<!\d){number}(?!\d)", "#", page[i].text)
        if "#" in key or page[i].size != body:
            yield i, key


def _text_size(pages: Sequence[list[Line]]) -> float:
    """The letter size that most of the text has; 0 where there is none."""
    letters = _letters(pages)
    return letters.most_common(1)[0][0] if letters else 0.0


def _letters(pages: Sequence[list[Line]]) -> Counter[float]:
    letters = Counter[float]()
    for line in chain.from_iterable(pages):
        letters[line.size] += len(line.text)
    return letters


def heading_sizes(pages: Sequence[list[Line]]) -> dict[float, int]:
    """Letter size → level of heading, by comparison with the size that most of the text has.

    A size counts that the first page has (titles), or that comes back on another page and mostly stands right above
    text: what doesn't is the lettering of figures.
    """
    letters, body = _letters(pages), _text_size(pages)
    titles = {line.size for line in pages[0]}
    above = _sizes_above_text(pages, body)
    large = sorted((s for s in letters if s >= HEADING_SIZE * body > 0 and (s in titles or s in above)), reverse=True)
    if sum(letters[size] for size in large) > MAX_HEADING_SHARE * letters.total():
        return {}
    return {size: level for level, size in enumerate(large, 1)}


def _sizes_above_text(pages: Sequence[list[Line]], body: float) -> set[float]:
    """Sizes met on several pages whose lines are mostly followed by a line of text in the `body` size."""
    lines, above, seen_on = Counter[float](), Counter[float](), Counter[float]()
    for page in pages:
        filled = [line for line in page if line.text]
        seen_on.update({line.size for line in filled})
        for line, following in pairwise(filled):
            lines[line.size] += 1
            above[line.size] += following.size == body
    return {size for size, count in seen_on.items() if count > 1 and 2 * above[size] > lines[size]}


def pieces_of(page: Sequence[Line], levels: dict[float, int]) -> Iterator[Piece]:
    """The pieces of a page in order; lines that go on are joined, words broken at a line end too."""
    lengths = sorted(len(line.text) for line in page if line.text and not line.cells)
    full = FULL_LINE * lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0
    known = {word.casefold() for line in page for word in WORD.findall(line.text)}
    for group, level in _groups(page, levels, full):
        text = "".join(
            _joined(line.text, following, known) for line, following in zip(group, [*group[1:], None], strict=True)
        )
        yield Piece(text, level, "row" if group[0].cells else "list_item" if _ITEM.match(text) else "paragraph")


def _groups(page: Sequence[Line], levels: dict[float, int], full: float) -> Iterator[tuple[list[Line], int]]:
    """The lines of each piece, and its level."""
    group: list[Line] = []
    level = 0
    for line in page:
        here = _level(line, levels)
        goes_on = bool(group and line.text) and here == level and not line.cells and not group[-1].cells
        goes_on = goes_on and (not _opens(group, line) if here else _goes_on(group[-1].text, line.text, full))
        if group and not goes_on:
            yield group, level
            group = []
        if line.text:
            group.append(line)
            level = here
    if group:
        yield group, level


def title_among(pieces: Sequence[Piece]) -> Piece | None:
    """The first heading, where it is the document's title in the letters of its sections: the next one is the first of
    the numbered sections, and it isn't numbered itself."""
    headings = [piece for piece in pieces if piece.level]
    if len(headings) < 2 or headings[0].level != headings[1].level or _NUMBERED.match(headings[0].text):
        return None
    number = _NUMBERED.match(headings[1].text)
    return headings[0] if number and number[1] in _FIRST_NUMBERS else None


def _opens(heading: Sequence[Line], line: Line) -> bool:
    """Whether a line in the letters of the heading above it is a heading of its own: a numbered one, the first of all
    (below a title) or below another numbered one."""
    number = _NUMBERED.match(line.text)
    return number is not None and (number[1] in _FIRST_NUMBERS or _NUMBERED.match(heading[0].text) is not None)


def _level(line: Line, levels: dict[float, int]) -> int:
    if line.cells:
        return 0
    letters = sum(map(str.isalpha, line.text))
    titled = letters >= 2 and 2 * letters >= len(line.text.replace(" ", "")) and not line.text.endswith((".", ",", ";"))
    return levels.get(line.size, 0) if titled and len(line.text) <= MAX_HEADING else 0


def _goes_on(line: str, following: str, full: float) -> bool:
    if not line or not following or _ITEM.match(following) or not any(map(str.isalnum, line)):
        return False
    return following[0].islower() or len(line) >= full


def _joined(line: str, following: Line | None, known: set[str]) -> str:
    """A line as it stands before the next one of its piece: with a blank, a line break, or its hyphen taken off.

    After the end of a sentence the line break stays, in case the next line is another cell of a table.
    """
    if following is None:
        return line
    joined = without_hyphen(line, following.text, known)
    return f"{line}\n" if joined.endswith(" ") and line.endswith(_STOP) else joined


def without_hyphen(line: str, following: str, known: set[str]) -> str:
    """A line as it stands before the one it goes on in: with a blank, or without the hyphen of a broken word."""
    broken = _BROKEN.search(line[-MAX_HEADING:])
    if broken and following[0].islower():
        head, tail = broken[0][:-1], (WORD.match(following) or [""])[0]
        hyphenated = f"{head}-{tail}".casefold() in known and (head + tail).casefold() not in known
        return line if hyphenated else line[:-1]
    return f"{line} "
