"""The parsed content of a PDF page: its operations in order, each with what it is given.

Knows no operator.
"""

from collections.abc import Sequence
from typing import Any

from pypdf import PageObject
from pypdf.generic import ContentStream

Operation = tuple[Any, bytes]
"""Operands and operator."""
Matrix = Sequence[float]
"""A transformation, by its six numbers."""


def content_of(page: PageObject) -> ContentStream | None:
    """The page's content where it was parsed already, which `without_hidden` does. None for a page without any."""
    stream = page.get("/Contents")
    return stream if isinstance(stream, ContentStream) else None


def stretch(matrix: Matrix) -> float:
    """How much a transformation stretches heights: the length of its second row."""
    return abs(complex(float(matrix[2]), float(matrix[3])))
