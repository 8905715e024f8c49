"""Tables in PDF files: rows that name their columns, and what must not become a table."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingest.conftest import Cell, build_pdf, drawn, grid

from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders.pdf import load_pdf
from leadline.ingest.loaders.pdf_fragments import Widths

ERRORS = [
    ("Code", "Meaning", "What to do"),
    ("E01", "Temperature sensor broken", "Call service"),
    ("E07", "Door switch open", "Close the door; check the switch"),
    ("E12", "Overheating above 320 degrees", "Switch off at once"),
]
PLACES = (100, 140, 300)


def placed(
    rows: Sequence[Sequence[str]], places: Sequence[float] = PLACES, top: float = 700, step: float = 18
) -> list[Cell]:
    """The cells of a table in rows from the top down."""
    return [
        (x, top - step * i, cell) for i, row in enumerate(rows) for x, cell in zip(places, row, strict=True) if cell
    ]


def load(*pages: str) -> Extracted:
    """The pages, given as content streams, read as one PDF."""
    return load_pdf(build_pdf(pages, raw=True), Limits())


def texts(extracted: Extracted, kind: str = "row") -> list[str]:
    """The text of each block of a kind."""
    return [extracted.text[b.start : b.end] for b in extracted.blocks if b.kind == kind]


def letters(words: Iterable[str]) -> Counter[str]:
    """How often each letter comes."""
    return Counter(char for word in words for char in word if char.isalnum())


NAMED = [
    "Code: E01; Meaning: Temperature sensor broken; What to do: Call service",
    "Code: E07; Meaning: Door switch open; What to do: Close the door; check the switch",
    "Code: E12; Meaning: Overheating above 320 degrees; What to do: Switch off at once",
]


def test_a_row_is_one_line_that_names_its_columns() -> None:
    """No line is drawn around the cells: that they stand in columns is enough."""
    assert texts(load(drawn(placed(ERRORS)))) == NAMED


def test_cells_of_one_text_object_are_told_apart() -> None:
    """Some programs draw a whole page as one text object and only move between the cells."""
    moves = "".join(
        f"{x - px} {y - py} Td ({text}) Tj "
        for (px, py, _), (x, y, text) in zip([(0, 0, ""), *placed(ERRORS)], placed(ERRORS), strict=False)
    )

    assert texts(load(f"BT /F1 10 Tf {moves} ET")) == NAMED


def test_a_table_drawn_column_by_column_has_its_rows() -> None:
    """Each column is one text object there."""
    columns = [(x, 700, "\n".join(row[i] for row in ERRORS)) for i, x in enumerate(PLACES)]

    assert texts(load(drawn(columns))) == NAMED


def test_text_around_a_table_stays_where_it_was() -> None:
    """Paragraph, rows, paragraph: each with its page and its place in the text."""
    before, after = "The oven shows a code when it stops.", "Ask the service where none of it helps."
    extracted = load(drawn([(100, 740, before), *placed(ERRORS), (100, 600, after)]))

    assert [extracted.text[b.start : b.end] for b in extracted.blocks] == [before, *NAMED, after]
    assert {block.page for block in extracted.blocks} == {1}


@pytest.mark.parametrize("ruled", [True, False])
def test_wrapped_cells_are_put_together(ruled: bool) -> None:
    """The lines of a cell belong to one row, with lines drawn between the rows or without."""
    rows = [
        ("Code", "Meaning", "What to do"),
        ("E01", "Sensor\nbroken", "Call the\nservice and\nwait"),
        ("E02", "No water", "Open the\nvalve"),
    ]
    cells = [
        (x, y, cell) for y, row in zip((700, 676, 632), rows, strict=True) for x, cell in zip(PLACES, row, strict=True)
    ]
    lines = grid((95, 135, 295, 400), (712, 688, 644, 612)) if ruled else ""

    assert texts(load(f"{lines} {drawn(cells)}")) == [
        "Code: E01; Meaning: Sensor broken; What to do: Call the service and wait",
        "Code: E02; Meaning: No water; What to do: Open the valve",
    ]


def test_figures_set_right_stand_in_their_columns() -> None:
    """Columns are told by where the figures end, and empty cells stay empty."""
    rows = [("City", "2023", "2024"), ("Berlin", "1,200,345", "1,300,000"), ("Rome", "", "12"), ("Oslo", "45,000", "")]
    width = dict.fromkeys("0123456789", 5.56) | {",": 2.78}
    cells = [
        (x if not i else x - sum(width[char] for char in cell), 700 - 18 * j, cell)
        for j, row in enumerate(rows)
        for i, (x, cell) in enumerate(zip((100, 250, 350), row, strict=True))
        if cell
    ]

    assert texts(load(drawn(cells))) == [
        "City: Berlin; 2023: 1,200,345; 2024: 1,300,000",
        "City: Rome; 2024: 12",
        "City: Oslo; 2023: 45,000",
    ]


@pytest.mark.parametrize("repeated", [True, False])
def test_a_table_over_two_pages_keeps_its_names(repeated: bool) -> None:
    """The rows of the second page are named too, whether the names are repeated there or not."""
    head = ("Part", "Name", "Shelf")
    parts = [(f"P-{i}", f"Bolt M{i}", f"{i % 7} left") for i in range(40)]
    second = [head, *parts[20:]] if repeated else parts[20:]
    extracted = load(drawn(placed([head, *parts[:20]])), drawn(placed(second)))

    assert texts(extracted) == [f"Part: {part}; Name: {name}; Shelf: {shelf}" for part, name, shelf in parts]
    assert [block.page for block in extracted.blocks] == [1] * 20 + [2] * 20


def test_names_that_come_back_above_nothing_are_left_out() -> None:
    """All that a later page has below the names is a line that stands on each page, and is left out there."""
    head, rows = ("Part", "Name", "Shelf"), [("P-1", "Bolt", "2 left"), ("P-2", "Nut", "5 left")]
    pages = [[head, *(rows if page == 1 else []), ("Stock", "list", f"page {page}")] for page in range(1, 5)]
    extracted = load(*(drawn(placed(page)) for page in pages))

    assert texts(extracted)[:2] == ["Part: P-1; Name: Bolt; Shelf: 2 left", "Part: P-2; Name: Nut; Shelf: 5 left"]
    assert {block.page for block in extracted.blocks} == {1}
    assert any("repetitions" in note for note in extracted.notes)


def test_a_name_above_lone_cells_only_is_kept() -> None:
    """A row with one cell stands without a name, so that of its column comes in a row of its own."""
    rows = [("Part", "Name", "Shelf"), ("", "Bolts", ""), ("P-1", "", "2 left"), ("P-2", "", "5 left")]
    lines = grid((95, 135, 295, 400), [712 - 18 * i for i in range(5)])

    assert texts(load(f"{lines} {drawn(placed(rows))}")) == [
        "Part | Name | Shelf",
        "Bolts",
        "Part: P-1; Shelf: 2 left",
        "Part: P-2; Shelf: 5 left",
    ]


def test_a_form_has_no_row_of_names() -> None:
    """Names and values side by side: the first pair names nothing."""
    form = [("Name:", "Jane Miller"), ("Street:", "Oak Road 12"), ("Town:", "Bristol")]

    assert texts(load(drawn(placed(form, (100, 200))))) == ["Name: Jane Miller", "Street: Oak Road 12", "Town: Bristol"]


def test_a_row_in_bold_names_two_columns() -> None:
    """Two columns are named where their first row is in a font of its own."""
    bold = drawn([(100, 718, "Bread"), (200, 718, "Origin")], font="F2")
    rows = [("Rye", "Finland"), ("Wheat", "France"), ("Spelt", "Bavaria")]

    assert texts(load(f"{bold} {drawn(placed(rows, (100, 200)))}")) == [f"Bread: {a}; Origin: {b}" for a, b in rows]


def test_an_invoice_keeps_its_parts_apart() -> None:
    """The address above the items has columns of its own."""
    address = placed(
        [("Smith Ltd", "Invoice date", "4 May 2024"), ("Oak Road 12", "Customer no.", "8812")], (100, 300, 400)
    )
    items = placed(
        [("Item", "Pieces", "Price"), ("Deck oven", "1", "46,200.00"), ("Stone plates", "4", "310.50")],
        (100, 310, 390),
        640,
    )

    assert texts(load(drawn([*address, *items]))) == [
        "Smith Ltd | Invoice date | 4 May 2024",
        "Oak Road 12 | Customer no. | 8812",
        "Item: Deck oven; Pieces: 1; Price: 46,200.00",
        "Item: Stone plates; Pieces: 4; Price: 310.50",
    ]


WORDS = "the quick brown fox jumps over a lazy dog while its farmer counts sheep and rivers run to sea".split()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.integers(2, 40))
def test_two_columns_of_prose_are_no_table(seed: int, by_line: bool, count: int) -> None:
    """No row comes of them, no letter is lost, and the words come in the file's order, whichever way it draws them."""
    words = random.Random(seed)
    lines = [[" ".join(words.choices(WORDS, k=7)) for _ in range(count)] for _ in range(2)]
    if by_line:
        cells = [(x, 780 - 14 * i, column[i]) for i in range(count) for x, column in zip((60, 320), lines, strict=True)]
    else:
        cells = [(x, 780, "\n".join(column)) for x, column in zip((60, 320), lines, strict=True)]
    extracted = load(drawn(cells))

    assert not texts(extracted)
    assert " ".join(extracted.text.split()) == " ".join(text.replace("\n", " ") for *_, text in cells)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["", "Rye", "12", "4.50", "E07", "no water here", "a: b", "x"]), min_size=3, max_size=3
        ),
        min_size=2,
        max_size=9,
    ),
    st.sampled_from([11, 14, 18, 30, 60]),
    st.booleans(),
)
def test_no_letter_of_a_table_is_lost(rows: list[list[str]], step: int, prose: bool) -> None:
    """Whatever stands in the cells comes once; names of columns come once for each row at most, and once at least."""
    cells = [(60, 800, "A line of prose above."), *placed(rows, top=760, step=step)][not prose :]
    if not any(text for *_, text in cells):
        return
    extracted = load(drawn(cells))
    there, found = letters(text for *_, text in cells), letters([extracted.text])

    assert not there - found
    assert not texts(extracted, "paragraph") or letters(texts(extracted, "paragraph")) <= there
    for block in extracted.blocks:
        assert extracted.text[block.start : block.end].strip() == extracted.text[block.start : block.end]


@pytest.mark.parametrize("marker", ["{}.", "[{}]", "({})"])
def test_a_list_is_no_table(marker: str) -> None:
    """Numbers before the items are no column."""
    items = [(marker.format(i + 1), f"Open valve {i + 1} with the key") for i in range(6)]

    assert not texts(load(drawn(placed(items, (100, 130)))))


def test_words_in_two_fonts_are_one_line() -> None:
    """A change of font within a line makes no cells."""
    line = "BT /F1 10 Tf 60 {} Td (Press the ) Tj /F2 10 Tf (Reset ) Tj /F1 10 Tf (button for five seconds.) Tj ET"

    assert (
        load(" ".join(line.format(700 - 14 * i) for i in range(4))).text.split()
        == "Press the Reset button for five seconds.".split() * 4
    )


def test_a_page_of_cells_is_read_in_one_pass() -> None:
    """Twenty times the cells take about twenty times as long, in one row or in many."""
    for width in (12, 3_000):
        times = []
        for count in (300, 6_000):
            stream = drawn([(60 + 40 * (i % width), 90_000 - 14 * (i // width), "word") for i in range(count)])
            start = time.process_time()
            load(stream)
            times.append(time.process_time() - start)
        assert times[1] < 100 * times[0] + 2


@pytest.mark.parametrize("operands", ["() Tf", "/F1 Tf", "(a) (b) Td", "1 2 Tm", "1 re", "m", "1 l", "(x) cm"])
def test_damaged_content_is_read_or_named(operands: str) -> None:
    """Operators without their numbers lose a page at most, and the notes say which."""
    extracted = load(f"{operands} {drawn(placed(ERRORS))}", drawn([(60, 700, "second page")]))

    assert "second page" in extracted.text
    assert "E07" in extracted.text or any("Page 1" in note for note in extracted.notes)


@pytest.mark.parametrize("font", [None, {}, {"/BaseFont": "/Odd", "/Subtype": "/Type1", "/Widths": "none"}])
def test_a_font_without_widths_is_measured_by_the_mean(font: dict[str, str] | None) -> None:
    """Half a letter height for each letter."""
    assert Widths().of("four", font) == 2.0


def test_a_word_in_pieces_is_one_cell() -> None:
    """Some programs move within a word, to set its letters closer; the pieces overlap by the font's own widths."""
    rows = [[*row[:1], f"{row[1][:3]}@{row[1][3:]}", row[2]] for row in ERRORS]
    pieces = [(x + 12 * i, y, piece) for x, y, text in placed(rows) for i, piece in enumerate(text.split("@"))]
    moves = " ".join(f"1 0 0 1 {x} {y} Tm ({text}) Tj" for x, y, text in pieces)

    assert texts(load(f"BT /F1 10 Tf {moves} ET")) == NAMED
