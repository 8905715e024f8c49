"""What a loader makes of a file: one string, and blocks that refer to it by offsets.

Knows the limits every loader obeys and how to lay out text so that blocks stay in order. Knows no file format, no
tokens and no chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from leadline.drafts import FieldValue
from leadline.errors import FileTooLarge

Kind = Literal["paragraph", "heading", "list_item", "table_header", "row", "code"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a single file may cost. Over any of them the file is refused with FileTooLarge, never cut."""

    max_bytes: int = 200_000_000
    max_pages: int = 5_000
    max_chars: int = 20_000_000
    max_blocks: int = 1_000_000
    """Paragraphs, rows and the like: each takes some hundred bytes of memory beside its text."""
    max_seconds: float = 600.0
    """For reading and cutting. Kept by `ReadingProcess` and `prepare`; a loader alone can't be ended."""
    max_unpacked_bytes: int = 400_000_000
    """All parts of a zip container together (DOCX), as its directory states them."""
    max_unpack_ratio: int = 200
    """Unpacked to packed bytes of one part of a zip container; more than this is a zip bomb."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the text that belongs together: `Extracted.text[start:end]`.

    `headings` is the path of headings above it, outermost first. `page` is 1-based. `prefix` is what a reader
    needs beside the text when the block is seen alone: for a row of a Markdown table, the table's header row.
    """

    start: int
    end: int
    kind: Kind = "paragraph"
    headings: tuple[str, ...] = ()
    page: int | None = None
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file. Blocks are in order and don't overlap; text outside of them is layout, or left out
    on purpose and said so in the notes."""

    text: str
    blocks: tuple[Block, ...]
    metadata: Mapping[str, FieldValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    encoding: str | None = None


class TextBuilder:
    """Appends blocks to a text, keeps the path of headings, and stops at the limit of characters."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self._length = 0
        self._levels: list[tuple[int, str]] = []
        self.blocks: list[Block] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, kind: Kind, text: str, *, page: int | None = None) -> None:
        """Appends `text` as a block, set off by a blank line. Blank text adds nothing."""
        text = text.strip()
        if not text:
            return
        gap = "\n\n" if self._length else ""
        start = self._length + len(gap)
        self._length = start + len(text)
        check_chars(self._length, self._limits)
        self._parts += (gap, text)
        headings = tuple(title for _, title in self._levels)
        self.blocks.append(Block(start, self._length, kind, headings, page))

    def add_heading(self, level: int, title: str, *, page: int | None = None) -> None:
        """Opens a section at `level` (1 = outermost); what follows lies under it. A blank title adds nothing."""
        title = " ".join(title.split())
        if not title:
            return
        self._levels = [pair for pair in self._levels if pair[0] < level]
        self.add("heading", title, page=page)
        self._levels.append((level, title))


def check_chars(length: int, limits: Limits) -> None:
    """Raises FileTooLarge when a text of this length is over the limit."""
    if length > limits.max_chars:
        raise FileTooLarge(
            f"The text is longer than {limits.max_chars:,} characters.",
            hint="Split the file, or raise LEADLINE_MAX_CHARS.",
        )


def too_slow(seconds: float) -> FileTooLarge:
    """The error of a file that took longer than this."""
    return FileTooLarge(
        f"It could not be read within {seconds:g} s.", hint="Split it, or raise LEADLINE_MAX_FILE_SECONDS."
    )
