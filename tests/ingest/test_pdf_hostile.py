"""Pages made to be slow to read: the work grows with the pieces of a page, not with their square."""

import gc
import time
from collections.abc import Callable

import pytest

from leadline.ingest.loaders.pdf_fragments import Fragment, is_of_lines
from leadline.ingest.loaders.pdf_rules import Rules
from leadline.ingest.loaders.pdf_table import find_tables

TOP = 1e7


def cell(text: str, x: float, y: float) -> Fragment:
    """A piece of text with a line of its own."""
    return Fragment(f"{text}\n", 10.0, x, y, x + 20, True, "/F")


def row(y: float, *texts: str) -> list[Fragment]:
    """Cells side by side."""
    return [cell(text, 60 + 140 * i, y) for i, text in enumerate(texts)]


def one_line(count: int) -> list[Fragment]:
    """Words next to each other without end."""
    return [Fragment("word ", 10.0, 25.0 * i, TOP, 25.0 * i + 24, True, "/F") for i in range(count)]


def one_column_below(count: int) -> list[Fragment]:
    """A table, and lines below its first column."""
    table = [each for i in range(3) for each in row(TOP - 18 * i, "ab", "cd")]
    return table + [cell("ef", 60, TOP - 54 - 18 * i) for i in range(count)]


def many_tables(count: int) -> list[Fragment]:
    """Small tables, one below the other."""
    return [each for i in range(count) for j in range(3) for each in row(TOP - 300 * i - 18 * j, "ab", "cd", "ef")]


def one_row(count: int) -> list[Fragment]:
    """A table with a cell that goes on and on, between whole rows."""
    whole = ("ab", "cd", "ef", "gh")
    wrapped = [cell("ij", 340 - 140 * (i % 2), TOP - 28 - 14 * i) for i in range(count)]
    below = TOP - 28 - 14 * count
    return [*row(TOP, *whole), *row(TOP - 14, *whole), *wrapped, *row(below, *whole), *row(below - 14, *whole)]


def seconds(work: Callable[[], object], tries: int = 1) -> float:
    """What the work takes, of some tries the best."""
    taken = []
    gc.disable()
    try:
        for _ in range(tries):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(taken)


@pytest.mark.parametrize(("make", "count"), [(one_line, 10_000), (one_column_below, 5_000), (one_row, 5_000)])
def test_sixteen_times_the_pieces_take_sixteen_times_as_long(make: Callable[[int], list[Fragment]], count: int) -> None:
    """Whatever they form; by the square it were 256 times."""
    few, many, rules = make(count), make(16 * count), Rules((), ())
    once = seconds(lambda: find_tables(few, lambda: rules), 3)
    assert seconds(lambda: find_tables(many, lambda: rules)) < 32 * once


def test_where_a_line_begins_is_seen_from_the_pieces_before() -> None:
    """However many there are, since each table of a page asks."""
    few, many = many_tables(10), many_tables(10_000)
    once = seconds(lambda: [is_of_lines(few, 81, 89) for _ in range(100)], 3)
    assert seconds(lambda: [is_of_lines(many, 89_991, 89_999) for _ in range(100)], 3) < 10 * once


def test_each_table_asks_for_the_lines_within_it_only() -> None:
    """A page full of lines costs each of its tables little."""
    tables, none = many_tables(300), Rules((), ())
    lines = Rules(tuple((TOP + 100 + i, 0.0, 600.0) for i in range(10_000)), ())
    assert len(find_tables(tables, lambda: lines)) == 300
    assert seconds(lambda: find_tables(tables, lambda: lines), 2) < 2 * seconds(
        lambda: find_tables(tables, lambda: none), 2
    )
