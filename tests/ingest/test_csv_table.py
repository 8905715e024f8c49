"""Tables in CSV and its kin."""

import pytest

from leadline.ingest.extracted import Limits
from leadline.ingest.loaders.csv_table import load_csv, sniff_delimiter


def lines(data: bytes) -> list[str]:
    """The text of each row."""
    extracted = load_csv(data, Limits())
    return [extracted.text[block.start : block.end] for block in extracted.blocks]


def test_quotes_delimiters_and_line_breaks_inside_cells_shift_nothing() -> None:
    """Two records of two cells stay two records of two cells."""
    data = b'id;note\n1;"said ""no""; then left"\n2;"two\nlines"\n'
    extracted = load_csv(data, Limits())

    assert extracted.metadata == {"rows": 2, "columns": 2}
    assert lines(data) == ['id: 1; note: said "no"; then left', "id: 2; note: two lines"]


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    """The first column is called id."""
    assert lines(b"\xef\xbb\xbfid,name\n7,Anvil\n") == ["id: 7; name: Anvil"]


def test_a_header_alone_counts_no_rows() -> None:
    """The names of the columns can be found, and a note says that there are no rows."""
    extracted = load_csv(b"part,torque\n", Limits())

    assert extracted.metadata["rows"] == 0
    assert extracted.text == "part,torque"
    assert any("no rows" in note for note in extracted.notes)


def test_a_cell_of_a_megabyte_is_read_whole() -> None:
    """The csv module's own limit of 128 kB doesn't hold here."""
    extracted = load_csv(b"id,note\n1," + b"word " * 200_000 + b"\n2,end\n", Limits())

    assert extracted.metadata["rows"] == 2
    assert extracted.text.endswith("id: 2; note: end")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    """Each of the four is told from the others, commas inside other fields or not."""
    text = "\n".join(delimiter.join((f"a{i}", "x, y" if delimiter != "," else "x", str(i))) for i in range(9))

    assert sniff_delimiter(text) == delimiter


def test_rows_longer_than_the_header_stay_as_they_are() -> None:
    """No cell is put under a name that may not be its own."""
    assert lines(b"part,nm\nP1,40\nP2,41,x\n") == ["part: P1; nm: 40", "P2,41,x"]


def test_numbers_are_no_header() -> None:
    """A first row of numbers is a row."""
    extracted = load_csv(b"1,2,3\n4,5,6\n", Limits())

    assert extracted.metadata["rows"] == 2


def test_an_unclosed_quotation_mark_swallows_no_rows() -> None:
    """A stray mark is taken as a character, and said so."""
    extracted = load_csv(b'size,name\n5" pipe,A\n6 pipe,B\n7 pipe,C\n', Limits())

    assert extracted.metadata["rows"] == 3
    assert any("quotation" in note for note in extracted.notes)
