"""Candidates at a real terminal: a table where there is room, lines where there isn't, nothing broken at any width."""

import json
from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from tests.cli.terminals import at_terminal

SHOW = """
import json, sys
from leadline.cli.candidates import show_rows
columns, *rows = json.loads(sys.argv[1])
show_rows(columns, rows, lead=2)
"""
COLUMNS = ["file", "passage", "vector", "logit", "fate"]


def shown(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a terminal of this width."""
    return at_terminal(SHOW, json.dumps([COLUMNS, *rows]), width=width)[1].splitlines()


@pytest.mark.parametrize("width", [200, 80, 60, 50, 24])
def test_a_terminal_of_any_width_can_show_it(width: int) -> None:
    """No line is longer than the terminal; a name is cut in its middle, and without room its ranks stand below."""
    lines = shown([["a-very-long-name-of-a-file-from-somewhere.pdf", "12 p3", "1", "+1.25", "shown, not cited"]], width)
    assert lines
    assert all(cell_len(line) <= width for line in lines), lines
    joined = " ".join(" ".join(lines).split())
    assert "+1.25" in joined
    assert ".pdf" in joined
    assert joined.endswith("shown, not cited" if width >= 60 else "logit +1.25")
    if width >= 60:
        assert len(lines) == 2
        assert lines[0].split() == COLUMNS


def test_wide_characters_keep_their_columns() -> None:
    """A Chinese name takes two columns a character: the ranks still stand under one another."""
    rows = [
        ["港口规章制度与安全操作手册二零二六.pdf", "1", "7", "-2.00", "cited"],
        ["b.md", "1", "7", "-2.00", "cited"],
    ]
    lines = shown(rows, 56)
    assert len(lines) == 3, lines
    assert len({cell_len(line[: line.index("cited")]) for line in lines[1:]}) == 1
