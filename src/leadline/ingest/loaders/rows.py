"""How a table's rows become text: each row a line that can be understood alone.

Knows headers and cells. Knows no file format.
"""

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"[-+]?[\d\s.,]*\d[\d\s.,]*\s*%?")
_YEAR = re.compile(r"(?:19|20)\d\d")


def tidy(cell: str) -> str:
    """A cell on one line."""
    return " ".join(cell.split())


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names columns: names are there, they differ, and they aren't numbers (years may be)."""
    names = [cell for cell in cells if cell]
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    if not names or len(numbers) == len(names) or len(set(names)) < len(names):
        return False
    return all(_YEAR.fullmatch(number) for number in numbers)


def row_text(header: Sequence[str], cells: Sequence[str], separator: str) -> str:
    """`Name: value; Name: value`, empty cells left out.

    Without a header, or with more cells than names (so that no one can tell which cell belongs to which name), the
    cells as they are, joined by `separator`.
    """
    if not header or len(cells) > len(header):
        return separator.join(cells)
    pairs = ((name, cell) for name, cell in zip(header, cells, strict=False) if cell)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)
