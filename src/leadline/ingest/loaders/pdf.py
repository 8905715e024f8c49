"""PDF, one page at a time: text and page numbers, and which pages have no words.

Knows how pypdf gives a page's text. What of it nobody can see is the business of `pdf_hidden`, how its lines become
paragraphs again that of `pdf_layout`. Runs no OCR: a scanned page is named in the notes.
"""

import io
import logging
import re
from collections.abc import Iterator

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import DependencyError, PyPdfError

from leadline.drafts import FieldValue
from leadline.errors import EmptyFile, FileTooLarge, UnreadableFile
from leadline.ingest.extracted import Extracted, Limits, TextBuilder, check_chars
from leadline.ingest.loaders import pdf_fragments as fragments
from leadline.ingest.loaders.pdf_hidden import without_hidden
from leadline.ingest.loaders.pdf_layout import (
    Line,
    heading_sizes,
    lines_of,
    pieces_of,
    title_among,
    without_running_heads,
)
from leadline.ingest.loaders.pdf_rows import with_names
from leadline.ingest.loaders.pdf_rules import Rules, rules_of
from leadline.ingest.loaders.pdf_table import Table, find_tables
from leadline.ingest.text import clean

# pypdf reports each oddity of a file through logging; what matters is in the notes.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)

_SAVE_AGAIN = "Open it in a viewer and save it again."
_NO_TITLE = {"", "(anonymous)", "untitled", "(untitled)"}
# What pypdf raises on a damaged file besides its own errors: it indexes and converts whatever stands there.
DAMAGE = (
    PyPdfError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    RecursionError,
    OverflowError,
    OSError,
)


def load_pdf(data: bytes, limits: Limits) -> Extracted:
    """Headings, paragraphs and list items with 1-based page numbers.

    Raises UnreadableFile for a damaged or locked file, EmptyFile where no page has words (the message names the pages),
    FileTooLarge over a limit. A page that can't be read is named in the notes; the others go in.
    """
    reader = _open(data)
    total = _page_count(reader, limits)
    report, pages = _Report(), list[list[Line]]()
    length, widths = 0, fragments.Widths()
    for number in range(1, total + 1):
        pages.append(_page_lines(reader, number, widths, report))
        length += sum(len(line.text) for line in pages[-1])
        check_chars(length, limits)
    builder = _build(pages, limits, report)
    report.empty = sorted(set(range(1, total + 1)) - {block.page for block in builder.blocks} - set(report.broken))
    if not builder.blocks:
        raise EmptyFile(f"{report.pages_without_text(total)}.", hint=report.remedy)
    metadata: dict[str, FieldValue] = {"total_pages": total}
    if title := _title(reader):
        metadata["title"] = title
    return Extracted(builder.text, tuple(builder.blocks), metadata, tuple(report.notes(total)))


def _build(pages: list[list[Line]], limits: Limits, report: "_Report") -> TextBuilder:
    builder = TextBuilder(limits)
    pages, report.running = without_running_heads(pages)
    levels = heading_sizes(pages)
    pieces = [(number, each) for number, lines in enumerate(with_names(pages), 1) for each in pieces_of(lines, levels)]
    title = title_among([piece for _, piece in pieces])
    for number, piece in pieces:
        if piece.level:
            builder.add_heading(0 if piece is title else piece.level, piece.text, page=number)
        else:
            builder.add(piece.kind, piece.text, page=number)
    return builder


class _Report:
    """What is worth telling about the pages of one file."""

    def __init__(self) -> None:
        self.empty: list[int] = []
        self.broken: list[int] = []
        self.garbled: list[int] = []
        self.hidden: list[int] = []
        self.removed: set[str] = set()
        self.running = 0

    def pages_without_text(self, total: int) -> str:
        if self.broken and not self.empty:
            return f"Of {total} pages none could be read"
        if self.garbled and set(self.empty) <= set(self.garbled):
            return f"{_pages(self.garbled)} has a text layer of unreadable signs (no map from its fonts to letters)"
        return f"{_pages(self.empty)} has no text (scanned image?)"

    @property
    def remedy(self) -> str:
        """What to do with a file without text."""
        return "A scanned file needs OCR first." if self.empty else _SAVE_AGAIN

    def notes(self, total: int) -> Iterator[str]:
        scanned = [page for page in self.empty if page not in self.garbled]
        if scanned:
            yield f"{_pages(scanned)} of {total} has no text (scanned image?)."
        if self.broken:
            yield f"{_pages(self.broken)} of {total} is damaged and could not be read."
        if self.garbled:
            yield f"{_pages(self.garbled)} of {total} has a text layer of unreadable signs; it was left out."
        if self.hidden:
            yield f"{_pages(self.hidden)} of {total} has text that a reader can't see; it was left out."
        if self.running:
            yield f"{self.running} repetitions of running heads and page numbers were left out."
        yield from sorted(self.removed)


def _pages(numbers: list[int]) -> str:
    """`Page 2`, `Each of pages 2, 4-7`: reads on with `has` or `is`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    listed = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return f"Page {listed}" if len(numbers) == 1 else f"Each of pages {listed}"


def _open(data: bytes) -> PdfReader:
    try:
        reader = PdfReader(io.BytesIO(data))
        locked = reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED
    except DependencyError as error:
        raise UnreadableFile("The PDF is encrypted.", hint="Save a copy without encryption.") from error
    except DAMAGE as error:
        raise UnreadableFile(f"The PDF is damaged ({error}).", hint=_SAVE_AGAIN) from error
    if locked:
        raise UnreadableFile("The PDF is locked by a password.", hint="Save a copy without the password.")
    return reader


def _page_count(reader: PdfReader, limits: Limits) -> int:
    try:
        total = len(reader.pages)
    except DAMAGE as error:
        raise UnreadableFile(f"The PDF has no readable list of pages ({error}).", hint=_SAVE_AGAIN) from error
    if total > limits.max_pages:
        raise FileTooLarge(
            f"The PDF has {total:,} pages, more than {limits.max_pages:,}.",
            hint="Split the file, or raise LEADLINE_MAX_PAGES.",
        )
    if total == 0:
        raise EmptyFile("The PDF has no pages.")
    return total


def _page_lines(reader: PdfReader, number: int, widths: fragments.Widths, report: _Report) -> list[Line]:
    """The visible lines of a page, or none where it is damaged or rubbish; `report` says so."""
    try:
        page: PageObject = reader.pages[number - 1]
        hidden = without_hidden(page, reader)
        found = _extracted(page, widths)
    except DAMAGE:
        report.broken.append(number)
        return []
    if hidden:
        report.hidden.append(number)
    if is_garbled(found.text):
        report.garbled.append(number)
        return []
    visible = [(fragments.cleaned(text), size) for text, size in found.sized()]
    report.removed.update(note for (_, notes), _ in visible for note in notes)
    return _with_tables(page, found, [(text, size) for (text, _), size in visible])


def _extracted(page: PageObject, widths: fragments.Widths) -> fragments.Collector:
    whole = fragments.part_lines(page)
    found = fragments.Collector(widths)
    page.extract_text(visitor_text=found.visit)
    if whole is not None and fragments.is_right_to_left(found.text):
        fragments.put_back(page, whole)
        found = fragments.Collector(widths)
        page.extract_text(visitor_text=found.visit)
    return found


def _with_tables(page: PageObject, found: fragments.Collector, texts: list[tuple[str, float]]) -> list[Line]:
    """The lines of a page, with each row of a table as one."""
    lines = list[Line]()
    done = 0
    for table in _tables(page, found, texts):
        lines += [*lines_of(texts[done : table.first]), *table.rows]
        done = table.last + 1
    return lines + lines_of(texts[done:])


def _tables(page: PageObject, found: fragments.Collector, texts: list[tuple[str, float]]) -> list[Table]:
    """None where the page is so damaged that its pieces have no places."""
    try:
        if not found.has_neighbours() or fragments.is_right_to_left(found.text):
            return []
        placed = found.fragments(texts)
    except DAMAGE:
        return []
    return find_tables(placed, lambda: _rules(page))


def _rules(page: PageObject) -> Rules:
    try:
        return rules_of(page)
    except DAMAGE:
        return Rules((), ())


def is_garbled(text: str) -> bool:
    """Whether a text layer is rubbish: control signs between its letters, or words that change case and script inside.

    That is what comes out of fonts that carry no map from glyphs to letters.
    """
    words = [word for word in text.split() if len(word) > 1]
    if not words:
        return False
    controls = sum(
        1 for char in text if (char < " " and char not in "\t\n\r\f\v") or "\x7f" <= char < "\xa0" or char == "\ufffd"
    )
    return controls > 0.05 * len(text) or _odd_share(words) > 0.5


def _odd_share(words: list[str]) -> float:
    """Share of words with a control sign or a symbol between two letters."""
    odd = re.compile(r"[^\W\d_][\x00-\x1f\x7f-\x9f\ufffd~^\\|{}<>=+§¦¨¬¯]+[^\W\d_]")
    return sum(1 for word in words if odd.search(word)) / len(words)


def _title(reader: PdfReader) -> str:
    try:
        title = reader.metadata.title if reader.metadata else None
    except DAMAGE:
        return ""
    title = " ".join(clean(title or "")[0].split())
    return "" if title.casefold() in _NO_TITLE else title
