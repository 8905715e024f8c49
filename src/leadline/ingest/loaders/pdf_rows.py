"""How the rows of PDF tables become text: each a line that names its columns, over the end of a page too.

Knows the first row's names from a row of data by its words and fonts. Knows no places.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from leadline.ingest.loaders.pdf_layout import EDGE_LINES, Cells, Line
from leadline.ingest.loaders.rows import is_header, row_text

_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
MAX_NAME = 60
"""Characters of a column's name; a longer first cell is data."""


@dataclass(frozen=True, slots=True)
class _Open:
    """The table that a page ended with."""

    header: tuple[str, ...]
    columns: tuple[tuple[float, float], ...]


def with_names(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages with each row of a table in its final words. A row of names goes into the rows below it."""
    named = list[list[Line]]()
    before: _Open | None = None
    for page in pages:
        lines, before = _page(page, before)
        named.append(lines)
    return named


def _page(page: Sequence[Line], before: _Open | None) -> tuple[list[Line], _Open | None]:
    lines = list[Line]()
    last: _Open | None = None
    rest = 0
    for number, group in groupby(page, key=lambda line: line.cells.table if line.cells else 0):
        members = [*group]
        rows = [line.cells for line in members if line.cells]
        if not number or not rows:
            lines += members
            rest += sum(1 for line in members if line.text)
            continue
        carried = before if last is None and rest <= 1 and before and _goes_on(before, rows[0]) else None
        header, skipped = _header_here(rows, carried)
        lines += _rows(members[skipped:], header)
        last, rest = _Open(header, rows[0].columns), 0
    return lines, last if rest <= EDGE_LINES else None


def _goes_on(before: _Open, row: Cells) -> bool:
    pairs = [*zip(before.columns, row.columns, strict=False)]
    aligned = all(min(one[1], other[1]) > max(one[0], other[0]) for one, other in pairs)
    return bool(before.header) and len(before.columns) == len(row.columns) and aligned


def _header_here(rows: Sequence[Cells], carried: _Open | None) -> tuple[tuple[str, ...], int]:
    """The names of a table's columns, and how many of its rows they are."""
    if carried is not None and (rows[0].texts == carried.header or not _is_set_off(rows)):
        return carried.header, int(rows[0].texts == carried.header)
    header = header_of(rows)
    return header, int(bool(header))


def header_of(rows: Sequence[Cells]) -> tuple[str, ...]:
    """The first row where it names the columns, else nothing.

    A first row of words may be data as well (a form has names and values side by side), so there must be another sign:
    it has a font of its own, lines set it off, or figures stand below a word.
    """
    first, body = rows[0].texts, rows[1:]
    if not body or not is_header(first) or any(len(cell) > MAX_NAME or cell.endswith(":") for cell in first):
        return ()
    below = [[row.texts[i] for row in body if row.texts[i]] for i in range(len(first))]
    if not all(first[1:]) or any(_is_like_below(cell, texts) for cell, texts in zip(first, below, strict=True)):
        return ()
    figures = [_is_of_figures(cell, texts) for cell, texts in zip(first, below, strict=True)]
    codes = figures[0] and not any(" " in text for text in below[0])
    return first if _is_set_off(rows) or rows[0].headed or codes or (any(figures) and len(first) > 2) else ()


def _is_of_figures(name: str, below: Sequence[str]) -> bool:
    """Whether figures stand below a word, or other figures than years below a year."""
    named = not _DIGIT.search(name) or (_YEAR.fullmatch(name) and not any(map(_YEAR.fullmatch, below)))
    return bool(named) and len(below) > 1 and all(map(_DIGIT.search, below))


def _is_set_off(rows: Sequence[Cells]) -> bool:
    """Whether the first row is in another font than every cell below."""
    below = {font for row in rows[1:] for font in row.fonts if font}
    return bool(below) and not below & set(rows[0].fonts)


def _is_like_below(cell: str, below: Sequence[str]) -> bool:
    """Whether a cell with figures is written as all cells below it are (E01 above E02)."""
    shapes = {re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text)) for text in (cell, *filter(None, below))}
    return len(shapes) == 1 and bool(re.search(r"\d", cell)) and any(below)


def _rows(lines: Sequence[Line], header: tuple[str, ...]) -> Iterator[Line]:
    cells = [line.cells.texts for line in lines if line.cells]
    # A row with one cell stands without a name: it may be a title of those below.
    used = {i for texts in cells if sum(map(bool, texts)) > 1 for i, text in enumerate(texts) if text}
    if lines and any(name and i not in used for i, name in enumerate(header)):
        # A name without a value below it would be lost.
        yield replace(lines[0], text=" | ".join(filter(None, header)))
    for line in lines:
        texts = line.cells.texts if line.cells else ()
        filled = [text for text in texts if text]
        if header and len(filled) > 1:
            yield replace(line, text=row_text(header, texts, " | "))
        else:
            yield replace(line, text=re.sub(r": \| ", ": ", " | ".join(filled)))
