"""Text that a PDF page holds but doesn't show: drawn invisibly, in white, or too small to read.

Knows the operators that set how text is painted. Knows nothing of what the text says. What counts as hidden:

- render mode 3 (neither filled nor stroked) on a page that shows other text; a page with nothing else is a scan
  with its OCR layer, which is meant to be searched;
- glyphs lower than `MIN_HEIGHT` points;
- white fill on a page where nothing was painted that it could stand out from.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.generic import ContentStream, NameObject

from leadline.ingest.loaders.pdf_content import Operation, stretch

MIN_HEIGHT = 1.5
WHITE = 0.97
_SHOW = {b"Tj", b"TJ", b"'", b'"'}
_PAINT = {b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*", b"sh", b"Do", b"INLINE IMAGE"}


@dataclass(frozen=True, slots=True)
class _Paint:
    """The part of the graphics state that decides whether text can be seen."""

    mode: int = 0
    font_size: float = 1.0
    text_scale: float = 1.0
    scale: float = 1.0
    white: bool = False

    @property
    def height(self) -> float:
        return abs(self.font_size * self.text_scale * self.scale)


def without_hidden(page: PageObject, reader: PdfReader) -> bool:
    """Takes hidden text out of a page's content (in memory), and says whether there was any."""
    contents = page.get("/Contents")
    if contents is None:
        return False
    stream = ContentStream(contents.get_object(), reader, "bytes")
    operations: list[Operation] = list(stream.operations)
    doubtful = [*_judge(operations)]
    shown = sum(1 for _, reason in doubtful if reason is None)
    hidden = {index for index, reason in doubtful if reason == "hidden" or (reason == "unpainted" and shown)}
    if hidden:
        stream.operations = [op for index, op in enumerate(operations) if index not in hidden]
    # The parsed stream is put back in any case: the page's content is then parsed once.
    page[NameObject("/Contents")] = stream
    return bool(hidden)


def _judge(operations: list[Operation]) -> Iterator[tuple[int, str | None]]:
    """The index of each operation that shows text, and why it can't be seen (None: it can)."""
    paint, saved, painted = _Paint(), list[_Paint](), False
    for index, (operands, operator) in enumerate(operations):
        if operator in _SHOW and _has_ink(operands):
            yield index, _verdict(paint, painted)
        elif operator == b"q":
            saved.append(paint)
        elif operator == b"Q":
            paint = saved.pop() if saved else paint
        elif operator in _PAINT:
            painted = painted or operator in {b"sh", b"Do", b"INLINE IMAGE"} or not paint.white
        else:
            paint = _changed(paint, operator, operands)


def _has_ink(operands: Any) -> bool:
    """Whether there is more to draw than spaces: scanners and layout programs place those invisibly."""
    strings = (part for item in operands for part in (item if isinstance(item, list) else [item]))
    return any(
        bytes(part).strip() if isinstance(part, bytes) else str(part).strip()
        for part in strings
        if isinstance(part, bytes | str)
    )


def _verdict(paint: _Paint, painted: bool) -> str | None:
    if paint.mode == 3:
        return "unpainted"
    if paint.height < MIN_HEIGHT or (paint.white and not painted):
        return "hidden"
    return None


def _changed(paint: _Paint, operator: bytes, operands: Any) -> _Paint:
    match operator:
        case b"Tr":
            return replace(paint, mode=int(operands[0]))
        case b"Tf":
            return replace(paint, font_size=float(operands[1]))
        case b"BT":
            return replace(paint, text_scale=1.0)
        case b"Tm":
            return replace(paint, text_scale=stretch(operands))
        case b"cm":
            return replace(paint, scale=paint.scale * stretch(operands))
        case b"g" | b"rg" | b"sc" | b"scn":
            return replace(paint, white=_is_white(operands))
        case b"k":
            return replace(paint, white=all(float(value) <= 1 - WHITE for value in operands))
    return paint


def _is_white(operands: Any) -> bool:
    """Whether a colour of one or three parts is white. Patterns and four-part colours are taken as visible."""
    numbers = [value for value in operands if isinstance(value, int | float)]
    return len(numbers) == len(operands) in {1, 3} and all(float(value) >= WHITE for value in numbers)
