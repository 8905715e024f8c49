"""The straight lines that a PDF page draws: what parts the rows and columns of its tables.

Knows paths and boxes of a page's parsed content. Knows no text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pypdf import PageObject

from leadline.ingest.loaders.pdf_content import Matrix, Operation, content_of

THIN, MIN_RULE = 2.0, 8.0
"""A box flatter than this is one line; a line shorter than this parts nothing. In points."""

MAX_RULES = 10_000


@dataclass(frozen=True, slots=True)
class Rules:
    """Lines drawn on a page: horizontal ones as (y, left, right), vertical ones as (x, bottom, top)."""

    across: tuple[tuple[float, float, float], ...]
    down: tuple[tuple[float, float, float], ...]


def rules_of(page: PageObject) -> Rules:
    """The lines and edges of boxes of a page's own content, in points; none where so many of them make a picture."""
    stream = content_of(page)
    across, down = list[tuple[float, float, float]](), list[tuple[float, float, float]]()
    for left, bottom, right, top in _strokes(stream.operations) if stream is not None else ():
        if right - left >= MIN_RULE:
            across += [(y, left, right) for y in ((bottom, top) if top - bottom > THIN else (bottom,))]
        if top - bottom >= MIN_RULE:
            down += [(x, bottom, top) for x in ((left, right) if right - left > THIN else (left,))]
    if len(across) + len(down) > MAX_RULES:
        return Rules((), ())
    return Rules(tuple(sorted(across)), tuple(sorted(down)))


def _strokes(operations: Sequence[Operation]) -> Iterator[tuple[float, float, float, float]]:
    """Left, bottom, right and top of each rectangle and straight line."""
    matrix: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    saved, point = list[Matrix](), (0.0, 0.0)
    for operands, operator in operations:
        if operator == b"q":
            saved.append(matrix)
        elif operator == b"Q" and saved:
            matrix = saved.pop()
        elif operator == b"cm" and len(operands) == 6:
            matrix = _times([float(value) for value in operands], matrix)
        elif operator == b"m":
            point = (float(operands[0]), float(operands[1]))
        elif operator == b"l":
            following = (float(operands[0]), float(operands[1]))
            yield _box(matrix, point, following)
            point = following
        elif operator == b"re":
            x, y, width, height = (float(value) for value in operands[:4])
            yield _box(matrix, (x, y), (x + width, y + height))


def _box(matrix: Matrix, one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float, float, float]:
    points = [
        (x * matrix[0] + y * matrix[2] + matrix[4], x * matrix[1] + y * matrix[3] + matrix[5]) for x, y in (one, other)
    ]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def _times(m: Matrix, n: Matrix) -> Matrix:
    return (
        m[0] * n[0] + m[1] * n[2],
        m[0] * n[1] + m[1] * n[3],
        m[2] * n[0] + m[3] * n[2],
        m[2] * n[1] + m[3] * n[3],
        m[4] * n[0] + m[5] * n[2] + n[4],
        m[4] * n[1] + m[5] * n[3] + n[5],
    )
