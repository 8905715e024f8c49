"""What the tests of ingest share: the shipped tokenizer and files made on the spot."""

import io
from collections.abc import Callable, Iterable, Sequence

import pytest
from docx import Document
from docx.document import Document as WordDocument

from leadline.models.minilm import MiniLM

PdfMaker = Callable[..., bytes]


@pytest.fixture(scope="session")
def tokenizer() -> MiniLM:
    """The embedder's tokenizer, as shipped."""
    return MiniLM()


@pytest.fixture(scope="session")
def make_pdf() -> PdfMaker:
    """Builds a PDF from one content stream a page; a page given as plain words shows them in 12 points."""
    return build_pdf


@pytest.fixture
def make_docx() -> Callable[[Callable[[WordDocument], None]], bytes]:
    """Builds a Word file: the function given fills an empty document."""

    def build(fill: Callable[[WordDocument], None]) -> bytes:
        document = Document()
        fill(document)
        file = io.BytesIO()
        document.save(file)
        return file.getvalue()

    return build


def build_pdf(pages: Sequence[str], *, raw: bool = False) -> bytes:
    """The smallest PDF a reader accepts. With `raw` the pages are content streams, else lines of words."""
    streams = [page if raw else shown(page) for page in pages]
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{4 + 2 * i} 0 R' for i in range(len(pages)))}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for i, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * i} 0 R"
            " /Resources << /Font << /F1 3 0 R /F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold"
            " /Encoding /WinAnsiEncoding >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + end.encode("latin-1")


Cell = tuple[float, float, str]


def drawn(cells: Iterable[Cell], *, font: str = "F1", size: float = 10) -> str:
    """A content stream that shows each text at its place (x, y), lines within it 12 points apart."""
    return " ".join(
        f"BT /{font} {size} Tf 12 TL {x} {y} Td {' T* '.join(f'({line}) Tj' for line in text.splitlines())} ET"
        for x, y, text in cells
    )


def grid(xs: Sequence[float], ys: Sequence[float]) -> str:
    """A content stream that draws lines down at each x and across at each y."""
    down = (f"{x} {ys[0]} m {x} {ys[-1]} l S" for x in xs)
    across = (f"{xs[0]} {y} m {xs[-1]} {y} l S" for y in ys)
    return " ".join([*down, *across])


def shown(text: str) -> str:
    """A content stream that shows lines of text, one below the other."""
    lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
    return f"BT /F1 12 Tf 14 TL 72 770 Td {lines} ET" if text else ""
