"""Word documents (DOCX): headings, paragraphs and tables in the order of the document, then its footnotes.

Knows WordprocessingML as python-docx parses it, walked directly so that nothing is lost: inserted changes, content
controls, text boxes and hyperlinks count, deleted changes don't. Runs marked hidden are left out and noted.
"""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from docx import Document
from docx.document import Document as WordDocument
from docx.opc.exceptions import OpcError
from docx.oxml import parse_xml
from docx.oxml.ns import qn

from leadline.drafts import FieldValue
from leadline.errors import FileTooLarge, UnreadableFile
from leadline.ingest.extracted import Extracted, Limits, TextBuilder
from leadline.ingest.loaders.rows import is_header, row_text, tidy
from leadline.ingest.text import clean

_NOTES = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.endnotes+xml",
)
_SKIPPED = {
    qn("w:del"),
    qn("w:moveFrom"),
    qn("w:txbxContent"),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
_WRAPPERS = {qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:customXml")}
_BREAKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
DAMAGE = (OpcError, zipfile.BadZipFile, KeyError, ValueError, SyntaxError, AttributeError, OSError, EOFError)

Element = Any
"""An lxml element; python-docx gives its own subclasses, without types."""


def load_docx(data: bytes, limits: Limits) -> Extracted:
    """Raises UnreadableFile for a damaged or locked file, FileTooLarge for one that unpacks beyond the limits."""
    check_zip(data, limits)
    try:
        document = Document(io.BytesIO(data))
        walk = _Walk(document, TextBuilder(limits))
        walk.blocks(document.element.body)
        walk.footnotes()
        title = tidy(clean(document.core_properties.title or "")[0])
    except DAMAGE as error:
        raise UnreadableFile(f"The Word file is damaged ({error}).", hint="Open it and save it again.") from error
    first = next((b for b in walk.builder.blocks if b.kind == "heading"), None)
    if not title and first is not None:
        title = walk.builder.text[first.start : first.end]
    metadata: dict[str, FieldValue] = {"title": title} if title else {}
    return Extracted(walk.builder.text, tuple(walk.builder.blocks), metadata, tuple(walk.notes()))


def check_zip(data: bytes, limits: Limits) -> None:
    """Raises before anything is unpacked: FileTooLarge for a zip bomb, UnreadableFile for a broken container."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UnreadableFile(
            "The file is no whole zip container.", hint="It may have been cut off; get it again."
        ) from error
    if sum(part.file_size for part in parts) > limits.max_unpacked_bytes:
        raise FileTooLarge(
            f"The file unpacks to more than {limits.max_unpacked_bytes:,} bytes.",
            hint="Split it, or save it without its pictures.",
        )
    for part in parts:
        if part.file_size > 1_000_000 and part.file_size > limits.max_unpack_ratio * max(part.compress_size, 1):
            raise FileTooLarge(
                f"A part of the file unpacks to more than {limits.max_unpack_ratio} times its size.",
                hint="Open it in a word processor and save it again.",
            )


class _Walk:
    """One pass over the body."""

    def __init__(self, document: WordDocument, builder: TextBuilder) -> None:
        self.builder = builder
        self._document = document
        self._styles = {style.get(qn("w:styleId")): style for style in document.styles.element.iter(qn("w:style"))}
        self._hidden_runs = 0
        self._cleaned: set[str] = set()

    def notes(self) -> Iterator[str]:
        if self._hidden_runs:
            yield f"Hidden text left out ({self._hidden_runs} runs): Word doesn't show it."
        yield from sorted(self._cleaned)

    def blocks(self, parent: Element) -> None:
        for child in parent:
            if child.tag == qn("w:p"):
                self._paragraph(child)
            elif child.tag == qn("w:tbl"):
                self._table(child)
            elif child.tag in _WRAPPERS:
                self.blocks(child)

    def footnotes(self) -> None:
        for part in self._document.part.package.iter_parts():
            if part.content_type in _NOTES:
                for paragraph in parse_xml(part.blob).iter(qn("w:p")):
                    self.builder.add("paragraph", self._text(paragraph))

    def _paragraph(self, paragraph: Element) -> None:
        text = self._text(paragraph)
        level = self._level(paragraph)
        if level is not None:
            self.builder.add_heading(level, text)
        else:
            listed = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}") is not None
            self.builder.add("list_item" if listed else "paragraph", text)
        for box in paragraph.iter(qn("w:txbxContent")):
            if not any(ancestor.tag in _SKIPPED for ancestor in box.iterancestors()):
                self.blocks(box)

    def _table(self, table: Element) -> None:
        rows = [
            [self._cell(cell) for cell in row.iter(qn("w:tc")) if _row_of(cell) is row]
            for row in table
            if row.tag == qn("w:tr")
        ]
        named = len(rows) > 1 and len(rows[0]) > 1 and is_header(rows[0])
        for row in rows[1:] if named else rows:
            self.builder.add(
                "row", row_text(rows[0] if named else [], [*filter(None, row)] if not named else row, " | ")
            )

    def _cell(self, cell: Element) -> str:
        return tidy(" ".join(self._text(paragraph) for paragraph in cell.iter(qn("w:p"))))

    def _text(self, paragraph: Element) -> str:
        text, notes = clean("".join(self._pieces(paragraph, hidden=self._vanishes(paragraph, "w:pPr/w:pStyle"))))
        self._cleaned.update(notes)
        return text

    def _pieces(self, element: Element, *, hidden: bool) -> Iterator[str]:
        for child in element:
            if child.tag in _SKIPPED:
                continue
            if child.tag == qn("w:r") and (hidden or self._vanishes(child, "w:rPr/w:rStyle")):
                self._hidden_runs += 1
            elif child.tag == qn("w:t"):
                yield child.text or ""
            elif child.tag in _BREAKS and element.tag == qn("w:r"):
                yield _BREAKS[child.tag]
            else:
                yield from self._pieces(child, hidden=hidden)

    def _vanishes(self, element: Element, style_path: str) -> bool:
        own = element.find(f"{qn('w:rPr')}/{qn('w:vanish')}")
        if own is not None:
            return own.get(qn("w:val")) not in {"0", "false", "off"}
        return any(
            style.find(f"{qn('w:rPr')}/{qn('w:vanish')}") is not None for style in self._chain(element, style_path)
        )

    def _level(self, paragraph: Element) -> int | None:
        """0 for the title, 1 to 9 for headings, None for text: by the paragraph, its style, or that style's base."""
        own = paragraph.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        if own is not None and (level := int(own.get(qn("w:val")))) < 9:
            return level + 1
        for style in self._chain(paragraph, "w:pPr/w:pStyle"):
            name = style.find(qn("w:name"))
            if name is not None and str(name.get(qn("w:val"))).casefold() == "title":
                return 0
            outline = style.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
            if outline is not None and (level := int(outline.get(qn("w:val")))) < 9:
                return level + 1
        return None

    def _chain(self, element: Element, style_path: str) -> Iterator[Element]:
        """The style an element names, and those it is based on."""
        named = element.find("/".join(map(qn, style_path.split("/"))))
        seen: set[str] = set()
        while named is not None and (name := named.get(qn("w:val"))) in self._styles and name not in seen:
            seen.add(name)
            yield self._styles[name]
            named = self._styles[name].find(qn("w:basedOn"))


def _row_of(cell: Element) -> Element:
    """The row a cell belongs to, past content controls."""
    return next(ancestor for ancestor in cell.iterancestors() if ancestor.tag == qn("w:tr"))
