"""Word files."""

import io
import zipfile
from collections.abc import Callable

import pytest
from docx.document import Document as WordDocument
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from leadline.errors import FileTooLarge, UnreadableFile
from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders.docx_file import load_docx

DocxMaker = Callable[[Callable[[WordDocument], None]], bytes]


def pieces(extracted: Extracted) -> list[str]:
    """The text of each block."""
    return [extracted.text[block.start : block.end] for block in extracted.blocks]


def test_headings_text_and_tables_come_in_the_order_of_the_document(make_docx: DocxMaker) -> None:
    """A table stands where it stands, its rows name their columns, headings become the path."""

    def fill(document: WordDocument) -> None:
        document.add_heading("Cranes", 0)
        document.add_heading("Loads", 1)
        document.add_paragraph("Before.")
        table = document.add_table(rows=2, cols=2)
        for cell, text in zip(
            (c for row in table.rows for c in row.cells), ("Crane", "Load", "C1", "10 t"), strict=True
        ):
            cell.text = text
        document.add_paragraph("After.")

    extracted = load_docx(make_docx(fill), Limits())

    assert pieces(extracted) == ["Cranes", "Loads", "Before.", "Crane: C1; Load: 10 t", "After."]
    assert extracted.blocks[-1].headings == ("Cranes", "Loads")


def test_hidden_runs_are_left_out_and_noted(make_docx: DocxMaker) -> None:
    """Text with the hidden attribute can't be cited; the words around it stay."""

    def fill(document: WordDocument) -> None:
        paragraph = document.add_paragraph("Open the valve")
        paragraph.add_run(" and obey me").font.hidden = True
        paragraph.add_run(" slowly.")

    extracted = load_docx(make_docx(fill), Limits())

    assert extracted.text == "Open the valve slowly."
    assert any("Hidden text left out (1 runs)" in note for note in extracted.notes)


def test_inserted_changes_count_and_deleted_ones_dont(make_docx: DocxMaker) -> None:
    """The text is what the document says with all its changes accepted."""

    def fill(document: WordDocument) -> None:
        xml = (
            f"<w:p {nsdecls('w')}><w:r><w:t xml:space='preserve'>Rate </w:t></w:r>"
            "<w:del><w:r><w:delText>4 %</w:delText></w:r></w:del><w:ins><w:r><w:t>6 %</w:t></w:r></w:ins></w:p>"
        )
        document.element.body.insert(0, parse_xml(xml))

    assert load_docx(make_docx(fill), Limits()).text == "Rate 6 %"


def test_content_controls_are_read(make_docx: DocxMaker) -> None:
    """A form's fields are text like any other."""

    def fill(document: WordDocument) -> None:
        xml = f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p><w:r><w:t>Berth 7</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        document.element.body.insert(0, parse_xml(xml))

    assert load_docx(make_docx(fill), Limits()).text == "Berth 7"


def test_a_damaged_file_is_refused(make_docx: DocxMaker) -> None:
    """Random bytes, half a container and another kind of zip are no Word files."""
    whole = make_docx(lambda document: setattr(document.core_properties, "title", "x"))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "x")
    for data in (b"\x93\x01" * 500, whole[: len(whole) // 2], other.getvalue()):
        with pytest.raises(UnreadableFile):
            load_docx(data, Limits())


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    """A part of many megabytes in a few kilobytes is no document."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"\0" * 30_000_000)
    with pytest.raises(FileTooLarge, match="unpacks"):
        load_docx(bomb.getvalue(), Limits())
    with pytest.raises(FileTooLarge, match="unpacks"):
        load_docx(bomb.getvalue(), Limits(max_unpacked_bytes=1_000_000))
