"""The pieces of text that a PDF page draws, each with its place.

Knows how pypdf reports them: a piece ends where the page's content moves on, and two cells of a table drawn in one text
object come as one piece unless the content is parted there first. Knows nothing of what the pieces form.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pypdf import PageObject
from pypdf.generic import FloatObject

from leadline.ingest.loaders.pdf_content import Matrix, Operation, content_of, stretch
from leadline.ingest.text import clean

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_UNMOVED = ([FloatObject(value) for value in (1, 0, 0, 1, 0, 0)], b"cm")
WORD_GAP = 1.5
"""A move of at least this many letter heights along a line may lead to another cell."""
MEAN_WIDTH = 0.5
"""Width of a letter by its height, where a font doesn't tell."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Text drawn in one go. `size` is the height of its letters and (x, y) the start of its baseline, in points from
    the page's lower left corner; text that doesn't run from left to right has no place (`upright` is false)."""

    text: str
    size: float
    x: float
    y: float
    end: float
    upright: bool
    font: str


class Collector:
    """What pypdf's visitor reports of one page: `visit` is the visitor."""

    def __init__(self, widths: "Widths") -> None:
        self._widths = widths
        self._found: list[tuple[str, Matrix, Matrix, Any, float]] = []

    def visit(self, text: str, transform: Matrix, text_matrix: Matrix, font: Any, size: float) -> None:
        if text:
            self._found.append((text, tuple(transform), tuple(text_matrix), font, float(size)))

    @property
    def text(self) -> str:
        return "".join(text for text, *_ in self._found)

    def sized(self) -> list[tuple[str, float]]:
        """Each piece with the height of its letters, nothing cleaned."""
        return [
            (text, round(abs(size * stretch(transform) * stretch(text_matrix)), 1))
            for text, transform, text_matrix, _, size in self._found
        ]

    def has_neighbours(self) -> bool:
        """Whether a piece begins to the right of the one before it, at its height or above, more than once.

        Cheap, so that pages of prose don't pay for the search for tables.
        """
        places = (
            (*_place(transform, text_matrix), abs(size) * stretch(transform) * stretch(text_matrix))
            for text, transform, text_matrix, _, size in self._found
            if not text.isspace()
        )
        return sum(1 for (x, y, size), (to, at, _) in pairwise(places) if to > x + size and at > y - size / 2) > 1

    def fragments(self, texts: Sequence[tuple[str, float]]) -> list[Fragment]:
        """The pieces with their places; `texts` are the cleaned texts and heights, one for each."""
        pairs = zip(self._found, texts, strict=True)
        return [self._placed(text, height, found) for found, (text, height) in pairs]

    def _placed(self, text: str, height: float, found: tuple[str, Matrix, Matrix, Any, float]) -> Fragment:
        _, cm, tm, font, size = found
        x, y = _place(cm, tm)
        along = tm[0] * cm[0] + tm[1] * cm[2]
        upright = along > 0 and abs(tm[0] * cm[1] + tm[1] * cm[3]) < 0.01 * along
        width = self._widths.of(text.strip(), font) * abs(size) * along
        return Fragment(text, height, x, y, x + width, upright and height > 0, self._widths.name(font))


class Widths:
    """How wide text is in the fonts of one file, by pypdf's reading of them."""

    def __init__(self) -> None:
        self._fonts: dict[int, tuple[Any, Any, str]] = {}

    def of(self, text: str, font: Any) -> float:
        """In letter heights."""
        metrics = self._known(font)[1]
        if metrics is None:
            return MEAN_WIDTH * len(text)
        return float(metrics.get_text_width(text)) / 1000

    def name(self, font: Any) -> str:
        return self._known(font)[2]

    def _known(self, font: Any) -> tuple[Any, Any, str]:
        if id(font) not in self._fonts:
            # The font is kept with its metrics, so that its id isn't given to another one.
            self._fonts[id(font)] = (font, _metrics(font), str(font.get("/BaseFont", "")) if font else "")
        return self._fonts[id(font)]


def _metrics(font: Any) -> Any:
    """pypdf's metrics of a font, or None. The class isn't among its public names, so it may be elsewhere or be gone."""
    try:
        from pypdf.generic._font import Font

        return Font.from_font_resource(font) if font else None
    except Exception:  # noqa: BLE001 - whatever a damaged font raises: its text is measured by the mean
        return None


def part_lines(page: PageObject) -> list[Operation] | None:
    """Parts the pieces of a line that stand apart, in the page's parsed content; nothing that is drawn changes.

    Gives the operations as they were, None where nothing was parted. pypdf ends a piece at a transformation, so one
    that transforms nothing is put where the content moves along a line.
    """
    stream = content_of(page)
    if stream is None:
        return None
    before: list[Operation] = list(stream.operations)
    moves = set(_moves_along(before))
    if not moves:
        return None
    parted = [op for i, each in enumerate(before) for op in ((_UNMOVED, each) if i in moves else (each,))]
    stream.operations = parted
    return before


def _moves_along(operations: Sequence[Operation]) -> Iterator[int]:
    """Index of each operation that moves to the right on the same baseline."""
    size = 1.0
    matrix: tuple[float, ...] = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    for i, (operands, operator) in enumerate(operations):
        if operator == b"Tf" and len(operands) > 1:
            size = abs(float(operands[1]))
        elif operator in {b"Td", b"TD"} and len(operands) > 1:
            if float(operands[1]) == 0 and float(operands[0]) > WORD_GAP * size:
                yield i
        elif operator == b"Tm" and len(operands) == 6:
            new = tuple(float(value) for value in operands)
            if new[:4] == matrix[:4] and new[5] == matrix[5] and new[4] > matrix[4]:
                yield i
            matrix = new


def put_back(page: PageObject, operations: list[Operation]) -> None:
    """Undoes `part_lines`."""
    stream = content_of(page)
    if stream is not None:
        stream.operations = operations


def is_right_to_left(text: str) -> bool:
    """Whether any of it is in a script written from right to left; pypdf must get the lines of such a page whole."""
    return _RIGHT_TO_LEFT.search(text) is not None


def cleaned(text: str) -> tuple[str, tuple[str, ...]]:
    """`clean`, with ligatures spelled out."""
    return clean(text.translate(_LIGATURES))


def _place(cm: Matrix, tm: Matrix) -> tuple[float, float]:
    """Where text begins on the page."""
    return tm[4] * cm[0] + tm[5] * cm[2] + cm[4], tm[4] * cm[1] + tm[5] * cm[3] + cm[5]


def is_of_lines(fragments: Sequence[Fragment], first: int, last: int) -> bool:
    """Whether the fragments are whole lines: a line break, or nothing, stands before the first and after the last."""
    below = "\n" in fragments[last].text or _is_line_end(fragments, last + 1)
    return below and _begins_line(fragments, first)


def _begins_line(fragments: Sequence[Fragment], i: int) -> bool:
    """Whether no word stands between a fragment and the line break, or the beginning, before it."""
    while i:
        i -= 1
        _, line_break, rest = fragments[i].text.rpartition("\n")
        if rest.strip() or line_break:
            return not rest.strip()
    return True


def _is_line_end(fragments: Sequence[Fragment], i: int) -> bool:
    """Whether a line break or nothing comes before the next word."""
    while i < len(fragments) and fragments[i].text.isspace() and "\n" not in fragments[i].text:
        i += 1
    return i == len(fragments) or fragments[i].text.lstrip(" \t").startswith("\n")
