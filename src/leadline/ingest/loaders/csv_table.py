"""CSV and its kin, by a real parser: quoted delimiters, doubled quotes and line breaks inside cells.

Knows the delimiters `,` `;` tab and `|`. Each row becomes a line `Name: value; Name: value`, so that it means the same
wherever it is cut out; `rows` in the metadata counts the records below the header, as the file has them.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator

from leadline.drafts import FieldValue
from leadline.errors import UnreadableFile
from leadline.ingest.extracted import Extracted, Limits, TextBuilder, check_chars
from leadline.ingest.loaders.rows import is_header, row_text, tidy
from leadline.ingest.text import decode

DELIMITERS = ",;\t|"
SAMPLE_ROWS = 50


def load_csv(data: bytes, limits: Limits) -> Extracted:
    """One block a row. Raises UnreadableFile where the rows can't be told apart."""
    decoded = decode(data)
    check_chars(len(decoded.text), limits)
    notes = list(decoded.notes)
    # The limit is the csv module's own and counts for the process; a cell of 1 MB is legal.
    csv.field_size_limit(max(csv.field_size_limit(), limits.max_chars))
    delimiter = sniff_delimiter(decoded.text)
    quoted = decoded.text.count('"') % 2 == 0
    if not quoted:
        notes.append("A quotation mark is never closed; quotation marks were read as plain characters.")
    try:
        records = [row for row in _records(decoded.text, delimiter, quoted=quoted) if any(row)]
    except csv.Error as error:
        raise UnreadableFile(f"The rows can't be told apart: {error}.", hint="Check the quotation marks.") from error
    text = _build(records, delimiter, limits, notes)
    header = bool(records) and is_header(records[0])
    metadata: dict[str, FieldValue] = {"rows": len(records) - header, "columns": max(map(len, records), default=0)}
    return Extracted(text.text, tuple(text.blocks), metadata, tuple(notes), decoded.encoding)


def _records(text: str, delimiter: str, *, quoted: bool) -> Iterator[list[str]]:
    source = io.StringIO(text, newline="")
    reader = (
        csv.reader(source, delimiter=delimiter)
        if quoted
        else csv.reader(source, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    )
    return ([tidy(cell) for cell in row] for row in reader)


def _build(records: list[list[str]], delimiter: str, limits: Limits, notes: list[str]) -> TextBuilder:
    builder = TextBuilder(limits)
    header = records[0] if records and is_header(records[0]) else []
    body = records[1:] if header else records
    if header and not body:
        builder.add("row", delimiter.join(header))
        notes.append("The file has a header and no rows.")
    ragged = sum(1 for row in body if header and len(row) > len(header))
    if ragged:
        notes.append(f"{ragged} rows have more cells than the header has names; they are kept as they stand.")
    for row in body:
        builder.add("row", row_text(header, row, delimiter))
    return builder


def sniff_delimiter(text: str) -> str:
    """The delimiter under which the first rows have the same number of cells, and several; a comma if none has."""

    def evenness(delimiter: str) -> tuple[float, int]:
        rows: list[list[str]] = []
        try:
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
                if row:
                    rows.append(row)
                if len(rows) == SAMPLE_ROWS:
                    break
        except csv.Error:
            return 0.0, 0
        widths = Counter(map(len, rows))
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        return (count / len(rows), width) if width > 1 else (0.0, 0)

    return max(DELIMITERS, key=evenness)
