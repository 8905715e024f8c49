"""Finds the tables of a PDF page: rows of pieces of text that stand side by side, in columns that line up.

Knows places and sizes. A table is taken from pieces that follow each other in the page's order, so that nothing changes
place; columns of prose, lists and contents that stand side by side by chance are left as they were. Drawn lines are
asked for only where there are rows at all.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

from leadline.ingest.loaders.pdf_cells import Block, Row, rows_of
from leadline.ingest.loaders.pdf_fragments import Fragment, is_of_lines
from leadline.ingest.loaders.pdf_layout import Cells, Line
from leadline.ingest.loaders.pdf_rules import Rules

MAX_ROW_GAP, USUAL_ROW_GAP, UNUSUAL = 4.0, 2.5, 1.8
"""Rows further apart than the first, in letter heights, belong to different tables; those further apart than the second
too, where the gap is larger than the one before by the last factor."""
ALIGNED = 0.6
"""Share of a column's cells, and the difference of their edges in letter heights, that make it a column."""
WRAP_GAP = 1.45
MAX_CELL_LINES = 12
MAX_HEAD_ROWS = 3
MAX_COLUMNS = 60
PROSE_WORDS = 6
"""Columns with more words than this to a cell, all of them, are prose, unless lines are drawn around the cells."""
_MARKER = re.compile(r"[-*•‣▪–—·◦o]|[\[(]?\w{1,3}[.)\]]{1,2}|\[\w[^\]]{0,12}\]|\d{1,3}")
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Table:
    """The fragments `first` to `last` (inclusive) of a page, as rows."""

    first: int
    last: int
    rows: tuple[Line, ...]


def find_tables(fragments: Sequence[Fragment], rules: Callable[[], Rules]) -> list[Table]:
    """The tables in order. `rules` is called at most once, and only where pieces stand side by side."""
    tables, drawn = list[Table](), list[Rules]()
    draft: _Draft | None = None
    for row in [*rows_of(fragments), None]:
        if draft is not None and row is not None and draft.takes(row):
            continue
        if draft is not None and draft.many > 1:
            drawn = drawn or [rules()]
            found = draft.finished(drawn[0], len(tables) + 1)
            tables += [found] if found is not None and _is_whole(found, fragments) else []
        draft = _Draft(row) if row is not None and 1 < len(row.blocks) <= MAX_COLUMNS else None
    return tables


class _Draft:
    """A table in the making."""

    def __init__(self, first: Row) -> None:
        self.rows = [first]
        self.columns: list[Interval] = [(block.left, block.right) for block in first.blocks]

    @property
    def many(self) -> int:
        """Rows with several cells."""
        return sum(1 for row in self.rows if len(row.blocks) > 1)

    def takes(self, row: Row) -> bool:
        """Whether the row stands in the columns below what is there; it is part of the table then."""
        last, size = self.rows[-1], self.rows[-1].size
        gap = last.bottom - row.top
        before = self.rows[-2].bottom - last.top if len(self.rows) > 1 else gap
        near = 0 < gap <= min(MAX_ROW_GAP * size, max(USUAL_ROW_GAP * size, UNUSUAL * before))
        if (
            not near
            or len(self.columns) > MAX_COLUMNS
            or any(len(block.lines) > MAX_CELL_LINES for block in row.blocks)
        ):
            return False
        if (columns := self._widened(row)) is None:
            return False
        self.rows.append(row)
        self.columns = columns
        return True

    def _widened(self, row: Row) -> list[Interval] | None:
        """The columns with room for the row's cells, None where they don't fit."""
        if len(row.blocks) > MAX_COLUMNS or len(self.columns) > MAX_COLUMNS:
            return None
        columns = list(self.columns)
        taken, added = set[int](), list[Interval]()
        for block in row.blocks:
            over = [i for i, column in enumerate(columns) if _overlap(column, (block.left, block.right))]
            if len(over) > 1:
                return None
            if not over:
                added.append((block.left, block.right))
            elif over[0] in taken:
                return None
            else:
                taken.add(over[0])
                left, right = columns[over[0]]
                columns[over[0]] = (min(left, block.left), max(right, block.right))
        if (len(row.blocks) == 1 and added) or len(added) > max(len(taken), 0) or _collide(columns):
            return None
        columns = sorted([*columns, *added])
        return None if _collide(columns) else columns

    def finished(self, rules: Rules, number: int) -> Table | None:
        """The table, or None where it is none."""
        rows, columns = self.rows, self.columns
        grid = _Grid(columns, rows, rules)
        end = len(rows)
        while len((last := rows[end - 1]).blocks) == 1 and not _continues(
            rows[end - 2], last, _placed(last, columns), grid
        ):
            end -= 1
        rows = rows[:end]
        cells = [*_merged_rows(rows, [_placed(row, columns) for row in rows], grid)]
        cells, columns = _without_shifted_header(cells, columns)
        if not _is_table(cells, columns, grid.drawn):
            return None
        known = {word.casefold() for row in rows for block in row.blocks for word in block.words}
        kept = tuple(columns)
        headed = grid.head_rows > 0 or (grid.drawn and len(columns) not in {2, 4})
        lines = [_line(row, Cells((), (), kept, number, headed), known) for row in cells]
        return Table(min(row.first for row in rows), max(row.last for row in rows), tuple(lines))


Placed = list[list[Block]]
"""The blocks of a row, by column."""


def _placed(row: Row, columns: Sequence[Interval]) -> Placed:
    placed: Placed = [[] for _ in columns]
    for block in row.blocks:
        best = max(range(len(columns)), key=lambda i: _shared(columns[i], (block.left, block.right)))
        placed[best].append(block)
    return placed


class _Grid:
    """The lines drawn within a table."""

    def __init__(self, columns: Sequence[Interval], rows: Sequence[Row], rules: Rules) -> None:
        self._left, self._right = columns[0][0], columns[-1][1]
        self._top, self._bottom = rows[0].top, rows[-1].bottom
        self._rules = rules
        self._rows = rows

    @cached_property
    def across(self) -> list[float]:
        """Heights of the horizontal lines that cross most of the table."""
        width = self._right - self._left
        covered: dict[float, float] = {}
        first, end = (bisect_left(self._rules.across, (y,)) for y in (self._bottom, self._top))
        for y, left, right in self._rules.across[first:end]:
            if y > self._bottom:
                covered[round(y)] = covered.get(round(y), 0) + min(right, self._right) - max(left, self._left)
        return sorted(y for y, length in covered.items() if length > 0.6 * width)

    @cached_property
    def drawn(self) -> bool:
        """Whether there are lines both between columns and between rows."""
        between = any(
            self._left < x < self._right and min(top, self._top) > max(bottom, self._bottom)
            for x, bottom, top in self._rules.down
        )
        return between and bool(self.across)

    @cached_property
    def is_dense(self) -> bool:
        """Whether there is a line between any two rows that have all cells."""
        most = max(len(row.blocks) for row in self._rows)
        return self.drawn and sum(1 for row in self._rows if len(row.blocks) == most) <= len(self.across) + 1

    @cached_property
    def head_rows(self) -> int:
        """How many rows a line sets off at the top; 0 where lines run below others too, or below none."""
        parted = [self.parts(one.bottom, other.top) for one, other in pairwise(self._rows)]
        first = parted.index(True) if True in parted else len(parted)
        below = parted[first + 1 :]
        return first + 1 if first < MAX_HEAD_ROWS and below and 2 * sum(below) <= len(below) else 0

    def parts(self, upper: float, lower: float) -> bool:
        """Whether a horizontal line runs between two baselines."""
        i = bisect_left(self.across, lower)
        return i < len(self.across) and self.across[i] < upper


def _continues(above: Row, row: Row, placed: Placed, grid: _Grid) -> bool:
    """Whether a row is the rest of the cells above it rather than a row of its own."""
    if grid.parts(above.bottom, row.top):
        return False
    filled = sum(1 for blocks in placed if blocks)
    if grid.is_dense and min(filled, len(above.blocks)) < len(placed):
        return True
    return not placed[0] and 2 * filled <= len(placed) and above.bottom - row.top <= WRAP_GAP * row.size


def _merged_rows(rows: Sequence[Row], cells: Sequence[Placed], grid: _Grid) -> Iterator[Placed]:
    """The rows of the table, the lines of wrapped cells put together (in the first row of those)."""
    current = cells[0]
    for i in range(1, len(rows)):
        if i < grid.head_rows or _continues(rows[i - 1], rows[i], cells[i], grid):
            for upper, lower in zip(current, cells[i], strict=True):
                upper.extend(lower)
        else:
            yield current
            current = cells[i]
    yield current


def _without_shifted_header(cells: list[Placed], columns: list[Interval]) -> tuple[list[Placed], list[Interval]]:
    """A narrow name at one edge of a column whose cells stand at the other made two columns; they become one."""
    i = 0
    while i + 1 < len(columns):
        left, right = ([bool(row[j]) for row in cells] for j in (i, i + 1))
        heads = left[0] != right[0] and not any(one and other for one, other in zip(left, right, strict=True))
        if heads and (not any(left[1:]) or not any(right[1:])):
            cells = [[*row[:i], row[i] + row[i + 1], *row[i + 2 :]] for row in cells]
            columns = [*columns[:i], (columns[i][0], columns[i + 1][1]), *columns[i + 2 :]]
        else:
            i += 1
    return cells, columns


def _is_table(cells: Sequence[Placed], columns: Sequence[Interval], drawn: bool) -> bool:
    full = [row for row in cells if sum(1 for blocks in row if blocks) > 1]
    if len(full) < 2 or len(columns) < 2:
        return False
    if drawn:
        return True
    by_column = [[row[i] for row in full if row[i]] for i in range(len(columns))]
    aligned = sum(1 for column in by_column if _is_aligned(column))
    texts = [[" ".join(block.text for block in cell) for cell in column] for column in by_column]
    if len(columns) == 2 and (len(full) < 3 or aligned < 2 or all(_MARKER.fullmatch(text) for text in texts[0])):
        return False
    return 3 * aligned >= 2 * len(columns) and not _is_prose(texts)


def _is_aligned(column: Sequence[Sequence[Block]]) -> bool:
    """Whether most of the cells begin at one place; figures and single words may also end at one or have one middle."""
    size = ALIGNED * column[0][0].size
    edges = [[cell[0].left for cell in column]]
    if median(len(block.text.split()) for cell in column for block in cell) <= 2:
        edges.append([max(block.right for block in cell) for cell in column])
        edges.append([(cell[0].left + cell[0].right) / 2 for cell in column])
    return any(_near(places, median(places), size) >= ALIGNED * len(column) for places in edges)


def _near(places: Sequence[float], middle: float, size: float) -> int:
    return sum(1 for x in places if abs(x - middle) <= size)


def _is_prose(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the cells of two columns or more read on from row to row, or all are as long as lines of prose."""
    running = long = 0
    for texts in columns:
        words = median(len(text.split()) for text in texts)
        begun = sum(1 for text in texts[1:] if text[:1].islower())
        running += words > 2 and 2 * begun > len(texts) - 1 > 0
        long += words > PROSE_WORDS
    return running > 1 or long == len(columns)


def _line(row: Placed, empty: Cells, known: set[str]) -> Line:
    texts = tuple(" ".join(block.joined(known) for block in cell) for cell in row)
    fonts = tuple(cell[0].font if cell else "" for cell in row)
    size = next(block.size for cell in row for block in cell)
    return Line(" | ".join(filter(None, texts)), size, replace(empty, texts=texts, fonts=fonts))


def _is_whole(table: Table, fragments: Sequence[Fragment]) -> bool:
    """Whether the rows hold each character of the fragments once, but for hyphens at line ends, and no line is cut."""
    if not is_of_lines(fragments, table.first, table.last):
        return False
    there = Counter("".join(each.text for each in fragments[table.first : table.last + 1]))
    here = Counter("".join(text for row in table.rows if row.cells for text in row.cells.texts))
    return all(there[char] == here[char] for char in there | here if not char.isspace() and char != "-")


def _overlap(one: Interval, other: Interval) -> bool:
    return _shared(one, other) > 0


def _shared(one: Interval, other: Interval) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])


def _collide(columns: Sequence[Interval]) -> bool:
    return any(one[1] > other[0] for one, other in pairwise(columns))
