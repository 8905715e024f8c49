"""The text of a web page: as much of it as a page may bring, taken out of it in a process of its own."""

from dataclasses import replace
from typing import Final

from leadline.errors import IngestError, PageUnavailable
from leadline.ingest.apart import ReadingProcess
from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders.html import load_html
from leadline.ingest.loaders.plain import load_plain

MAX_CHARS: Final = 200_000
"""Of the text of one page: what lies behind is not read."""
MAX_BLOCKS: Final = 4_000
MAX_HEADING_CHARS: Final = 300
_LIMITS: Final = Limits(max_chars=10_000_000)


def text_apart(body: bytes, kind: str, charset: str | None, *, timeout_s: float) -> Extracted:
    """`page_text`, in another process that is ended after `timeout_s`. Blocks. Raises PageUnavailable."""
    stated = charset if charset and charset.isascii() and charset.isprintable() and len(charset) < 40 else ""
    try:
        with ReadingProcess() as process:
            return process.read("page", body, timeout_s, kind=kind, charset=stated or None)
    except IngestError as error:
        raise PageUnavailable(error.message) from error


def page_text(body: bytes, kind: str, charset: str | None) -> Extracted:
    """The beginning of a page's text, in whole blocks, headings of a reasonable length. `kind` is html or plain.

    A charset that a server makes up may give halves of characters, which no store takes: each becomes a `?`. Raises
    the errors of the loaders.
    """
    load = load_html if kind == "html" else load_plain
    extracted = load(body, _LIMITS, charset)
    kept = (block for block in extracted.blocks[:MAX_BLOCKS] if block.end <= MAX_CHARS)
    blocks = tuple(replace(block, headings=tuple(_short(name) for name in block.headings)) for block in kept)
    title = _short(str(extracted.metadata.get("title", "")))
    return Extracted(_whole(extracted.text[:MAX_CHARS]), blocks, {"title": title} if title else {})


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _short(name: str) -> str:
    name = _whole(name)
    return name if len(name) <= MAX_HEADING_CHARS else name[:MAX_HEADING_CHARS].rsplit(" ", 1)[0] + " …"
