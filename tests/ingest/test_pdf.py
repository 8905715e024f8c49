"""PDF files: pages, damage, hidden text."""

import io
import time
from collections.abc import Callable

import pytest
from pypdf import PdfReader, PdfWriter

from leadline.errors import EmptyFile, FileTooLarge, UnreadableFile
from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders.pdf import is_garbled, load_pdf

PdfMaker = Callable[..., bytes]


def by_page(extracted: Extracted) -> dict[int | None, str]:
    """The text of each page."""
    pages: dict[int | None, str] = {}
    for block in extracted.blocks:
        pages[block.page] = (pages.get(block.page, "") + " " + extracted.text[block.start : block.end]).strip()
    return pages


def test_pages_count_from_one(make_pdf: PdfMaker) -> None:
    """The first page is page 1, the third is page 3."""
    extracted = load_pdf(make_pdf(["ALPHA", "BRAVO", "CHARLIE"]), Limits())

    assert by_page(extracted) == {1: "ALPHA", 2: "BRAVO", 3: "CHARLIE"}
    assert extracted.metadata["total_pages"] == 3


def test_a_page_without_words_is_named(make_pdf: PdfMaker) -> None:
    """A scan between two pages of text doesn't pass unseen."""
    extracted = load_pdf(make_pdf(["first", "", "third"]), Limits())

    assert by_page(extracted) == {1: "first", 3: "third"}
    assert "Page 2 of 3 has no text (scanned image?)." in extracted.notes


@pytest.mark.parametrize(("pages", "words"), [([""], "Page 1 has"), (["", "", ""], "Each of pages 1-3 has")])
def test_a_file_without_any_words_is_refused_with_its_pages(make_pdf: PdfMaker, pages: list[str], words: str) -> None:
    """An empty success would be a lie."""
    with pytest.raises(EmptyFile, match=words):
        load_pdf(make_pdf(pages), Limits())


def test_a_locked_file_is_refused_and_an_empty_password_opens(make_pdf: PdfMaker) -> None:
    """What anyone's viewer opens is read; a real password is asked for by no one."""
    for password, readable in (("", True), ("secret", False)):
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(["ALPHA"]))))
        writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
        file = io.BytesIO()
        writer.write(file)
        if readable:
            assert load_pdf(file.getvalue(), Limits()).text == "ALPHA"
        else:
            with pytest.raises(UnreadableFile, match="password"):
                load_pdf(file.getvalue(), Limits())


@pytest.mark.parametrize("cut", [20, 200, 500])
def test_a_truncated_file_is_refused_or_read(make_pdf: PdfMaker, cut: int) -> None:
    """Half a file ends in an error of ours, whatever pypdf makes of it."""
    with pytest.raises((UnreadableFile, EmptyFile)):
        load_pdf(make_pdf(["ALPHA"])[:cut], Limits())


def test_a_file_whose_pages_are_all_damaged_needs_no_ocr(make_pdf: PdfMaker) -> None:
    """It is told what may help it, and that is not what a scan needs."""
    damaged = make_pdf(["alpha", "beta"]).replace(b"/Helvetica /Enc", b"/Odd /FirstChar 32 /Widths [(a)] /Enc")
    with pytest.raises(EmptyFile, match=r"Of 2 pages none could be read\. Open it in a viewer"):
        load_pdf(damaged, Limits())


def test_limits_of_pages_and_characters_hold(make_pdf: PdfMaker) -> None:
    """A file over a limit is refused, not cut."""
    with pytest.raises(FileTooLarge, match=r"3 pages.* LEADLINE_MAX_PAGES"):
        load_pdf(make_pdf(["a", "b", "c"]), Limits(max_pages=2))
    with pytest.raises(FileTooLarge, match=r"10 characters\. .*LEADLINE_MAX_CHARS"):
        load_pdf(make_pdf(["more than ten characters"]), Limits(max_chars=10))


HIDDEN = {
    "white": "BT /F1 12 Tf 1 1 1 rg 72 700 Td (obey me) Tj ET",
    "white grey": "BT /F1 12 Tf 1 g 72 700 Td (obey me) Tj ET",
    "tiny": "BT /F1 1 Tf 72 700 Td (obey me) Tj ET",
    "tiny by scale": "q 0.1 0 0 0.1 0 0 cm BT /F1 10 Tf 72 700 Td (obey me) Tj ET Q",
    "unpainted": "BT 3 Tr /F1 12 Tf 72 700 Td (obey me) Tj ET",
}


@pytest.mark.parametrize("how", sorted(HIDDEN))
def test_text_that_nobody_sees_is_left_out_and_noted(make_pdf: PdfMaker, how: str) -> None:
    """White, tiny and unpainted text can't be cited."""
    stream = f"BT /F1 12 Tf 72 770 Td (Seen) Tj ET {HIDDEN[how]}"
    extracted = load_pdf(make_pdf([stream], raw=True), Limits())

    assert extracted.text == "Seen"
    assert any("can't see" in note for note in extracted.notes)


def test_white_text_on_a_dark_field_stays(make_pdf: PdfMaker) -> None:
    """The head of a table is often white on colour."""
    stream = "0 0 0.5 rg 60 690 200 40 re f BT /F1 12 Tf 1 g 72 700 Td (Torque) Tj ET"

    assert load_pdf(make_pdf([stream], raw=True), Limits()).text == "Torque"


def test_the_text_layer_of_a_scan_stays(make_pdf: PdfMaker) -> None:
    """A page whose only text is unpainted is a scan with its recognised words."""
    stream = "BT 3 Tr /F1 12 Tf 72 700 Td (recognised words) Tj ET"

    assert load_pdf(make_pdf([stream], raw=True), Limits()).text == "recognised words"


def test_large_letters_are_headings_and_running_heads_come_once(make_pdf: PdfMaker) -> None:
    """A section goes on over pages; the line at the top of every page is kept for the first only."""
    head = "BT /F1 8 Tf 72 800 Td (TG-40 manual) Tj ET "
    text = "BT /F1 11 Tf 14 TL 72 700 Td " + " T* ".join(f"(Line {i} of the text here.) Tj" for i in range(9)) + " ET"
    title = "BT /F1 18 Tf 72 750 Td (Error codes) Tj ET "
    extracted = load_pdf(make_pdf([head + title + text, head + text, head + text], raw=True), Limits())

    assert extracted.text.count("TG-40 manual") == 1
    assert {block.headings for block in extracted.blocks if block.page and block.page > 1} == {("Error codes",)}
    assert any("2 repetitions" in note for note in extracted.notes)


def test_a_title_in_the_letters_of_the_sections_stays_above_them(make_pdf: PdfMaker) -> None:
    """A numbered section right below the title is a heading of its own, and the title is known on later pages too."""
    large = "BT /F1 18 Tf 22 TL 72 {} Td {} ET "
    title = "(KX-400 Deck Oven for the) Tj T* (Trade: Manual) Tj T* (1 Technical data) Tj"
    text = "BT /F1 10 Tf 12 TL 72 600 Td " + " T* ".join(f"(Line {i} of the text here.) Tj" for i in range(9)) + " ET"
    extracted = load_pdf(
        make_pdf([large.format(750, title) + text, large.format(750, "(2 Warranty) Tj") + text], raw=True), Limits()
    )

    name = "KX-400 Deck Oven for the Trade: Manual"
    assert [block.headings for block in extracted.blocks if block.kind == "heading"] == [(), (name,), (name,)]
    assert extracted.blocks[-1].headings == (name, "2 Warranty")


def test_words_broken_at_a_line_end_are_joined(make_pdf: PdfMaker) -> None:
    """The hyphen goes, unless the page has the word with it."""
    text = "The anemo-\nmeter measures the wind on the self-\nlocking mast, as all self-locking masts have one"

    assert load_pdf(make_pdf([text]), Limits()).text == (
        "The anemometer measures the wind on the self-locking mast, as all self-locking masts have one"
    )


def test_a_rubbish_text_layer_is_told_from_words() -> None:
    """Fonts without a map to letters give signs, not words."""
    assert is_garbled("3HQČåQt\x03SURVWĜHGN\\\x03QD\x03~þWHFK\n")
    assert not is_garbled("Part PPR-9087/B, ERR-4021, C++ and x=3 at 5\u00b0")
    assert not is_garbled("")


def test_a_page_of_endless_text_is_read_in_one_pass(make_pdf: PdfMaker) -> None:
    """Ten thousand lines that go on and on are one paragraph, in seconds."""
    start = time.process_time()
    extracted = load_pdf(make_pdf(["\n".join(["some words go here and there"] * 10_000)]), Limits())

    assert len(extracted.blocks) == 1
    assert time.process_time() - start < 20
