"""From the pieces of text of a PDF page to blocks of lines, and to blocks that stand side by side.

Knows places and sizes. A block is what a cell of a table is: one line, or lines right below each other.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from leadline.ingest.loaders.pdf_fragments import Fragment
from leadline.ingest.loaders.pdf_layout import WORD, without_hyphen

SAME_LINE = 0.4
"""Baselines that differ by less than this, in letter heights, are one line."""
CELL_GAP = 0.9
"""Pieces of a line further apart than this, in letter heights, are two cells."""
LINE_GAP = 1.5
MAX_LINES = 200
MIN_COLUMN, MAX_COLUMN_WORDS = 3, 4
"""Lines of a column drawn as a whole, and words in most of its lines."""
_FIGURES = re.compile(r"(?:^|\s)(?:[^\s\w]*\d\S*|[-–—])\s+(?:[^\s\w]*\d\S*|[-–—])$")


@dataclass(slots=True)
class TextLine:
    """Pieces next to each other on one baseline; `first` and `last` are the indexes of its fragments."""

    pieces: list[str]
    left: float
    right: float
    y: float
    first: int
    last: int
    size: float
    font: str

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class Block:
    """Lines right below each other."""

    lines: list[TextLine]

    @property
    def left(self) -> float:
        return min(line.left for line in self.lines)

    @property
    def right(self) -> float:
        return max(line.right for line in self.lines)

    @property
    def top(self) -> float:
        """The baseline of its first line."""
        return self.lines[0].y

    @property
    def bottom(self) -> float:
        return self.lines[-1].y

    @property
    def size(self) -> float:
        return self.lines[0].size

    @property
    def font(self) -> str:
        return self.lines[0].font

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def words(self) -> list[str]:
        return [word for line in self.lines for word in WORD.findall(line.text)]

    def joined(self, known: set[str]) -> str:
        """Its text on one line, words broken at a line end put together; `known` are the words of the table."""
        text = self.lines[0].text
        for line in self.lines[1:]:
            text = f"{without_hyphen(text, line.text, known)}{line.text}"
        return text


class Row:
    """Blocks side by side, from left to right, in the page's order. `top` and `bottom` are its outer baselines."""

    def __init__(self, *blocks: Block) -> None:
        self.blocks = [*blocks]
        self.top = max(block.top for block in blocks)
        self.bottom = min(block.bottom for block in blocks)

    def add(self, block: Block) -> None:
        self.blocks.append(block)
        self.top, self.bottom = max(self.top, block.top), min(self.bottom, block.bottom)

    @property
    def size(self) -> float:
        return self.blocks[0].size

    @property
    def first(self) -> int:
        return min(line.first for block in self.blocks for line in block.lines)

    @property
    def last(self) -> int:
        return max(line.last for block in self.blocks for line in block.lines)


def rows_of(fragments: Sequence[Fragment]) -> Iterator[Row]:
    """All blocks of a page in its order, those that stand side by side in one row."""
    for row in _rows(fragments):
        yield from _by_lines(row)


def _by_lines(row: Row) -> Iterator[Row]:
    """The row itself, or a row for each line of its blocks, where they are whole columns of a table: equally many short
    lines on the same baselines."""
    columns = [block.lines for block in row.blocks]
    count = len(columns[0])
    if len(columns) < 2 or count < MIN_COLUMN or any(len(column) != count for column in columns):
        yield row
        return
    level = all(abs(one.y - other.y) < SAME_LINE * one.size for one, other in zip(columns[0], columns[-1], strict=True))
    brief = sum(1 for column in columns if median(len(line.text.split()) for line in column) <= MAX_COLUMN_WORDS)
    running = sum(1 for column in columns for line in column[1:] if line.text[0].islower())
    if not level or brief + 1 < len(columns) or not brief or 2 * running > (count - 1) * len(columns):
        yield row
        return
    for lines in zip(*columns, strict=True):
        yield Row(*(Block([line]) for line in lines))


def _rows(fragments: Sequence[Fragment]) -> Iterator[Row]:
    row: Row | None = None
    for block in _blocks(fragments):
        if row is not None and _beside(row, block):
            row.add(block)
            continue
        if row is not None and (cell := _last_line_beside(row, block)) is not None:
            yield Row(*row.blocks)
            row = Row(cell, block)
            continue
        if row is not None:
            yield row
        row = Row(block)
    if row is not None:
        yield row


def _beside(row: Row, block: Block) -> bool:
    """Whether the block is to the right of the row's last one, at its height."""
    near = SAME_LINE * row.size
    return block.left > row.blocks[-1].right and block.bottom <= row.top + near and block.top >= row.bottom - near


def _last_line_beside(row: Row, block: Block) -> Block | None:
    """The last line of the row's only block, taken off it, where that line is the first cell of a row with `block`:
    the lines above it reach over `block`, so they are no cell beside it (a caption)."""
    above = row.blocks[-1]
    line = above.lines[-1]
    if len(row.blocks) > 1 or len(above.lines) < 2 or block.left <= line.right or above.right < block.left:
        return None
    if abs(block.top - line.y) > SAME_LINE * line.size:
        return None
    above.lines.pop()
    return Block([line])


def _blocks(fragments: Sequence[Fragment]) -> Iterator[Block]:
    block: Block | None = None
    for line in _lines(fragments):
        if block is not None and _below(block, line):
            block.lines.append(line)
            continue
        if block is not None:
            yield block
        block = Block([line])
    if block is not None:
        yield block


def _below(block: Block, line: TextLine) -> bool:
    if len(block.lines) == MAX_LINES:
        return False
    gap = block.bottom - line.y
    alike = abs(line.size - block.size) < 0.15 * block.size
    if _FIGURES.search(line.text) and _FIGURES.search(block.lines[-1].text):
        # Rows of figures that the file draws line by line.
        return False
    return alike and 0 < gap <= LINE_GAP * block.size and line.left < block.right and line.right > block.left


def _lines(fragments: Sequence[Fragment]) -> Iterator[TextLine]:
    line: TextLine | None = None
    start = (0.0, 0.0)
    for i, each in enumerate(fragments):
        if not each.text.strip():
            continue
        if not each.upright:
            # Text at an angle belongs to no table, and ends one.
            if line is not None:
                yield line
            line = None
            continue
        # A change of font ends a piece without a move: pypdf gives the next one the same place.
        left = line.right if line is not None and start == (each.x, each.y) else each.x
        start = (each.x, each.y)
        # pypdf gives a blank or a line break where there is a gap, by measures finer than ours.
        between = "".join(one.text for one in fragments[line.last : i]) if line is not None else ""
        blank = " " if each.text[:1].isspace() or between != between.rstrip() else ""
        if line is not None and _goes_on(line, left, each, blank):
            line.pieces.append(f"{blank}{each.text.strip()}")
            line.last = i
            line.right = max(line.right, left + each.end - each.x)
            continue
        if line is not None:
            yield line
        text = " ".join(each.text.split())
        line = TextLine([text], left, left + each.end - each.x, each.y, i, i, each.size, each.font)
    if line is not None:
        yield line


def _goes_on(line: TextLine, left: float, each: Fragment, blank: str) -> bool:
    size = max(line.size, each.size)
    if abs(each.y - line.y) >= SAME_LINE * size or left <= line.left:
        return False
    # Without a blank it is the rest of a word, however wide the font says that its beginning is.
    return not blank or -0.3 * size < left - line.right < CELL_GAP * size
