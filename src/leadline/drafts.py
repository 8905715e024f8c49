"""What ingest hands on: a source cut into chunks, not yet embedded or stored, and the passages of a web page."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

FieldValue = str | int | float | bool


def embedded_text(prefix: str, text: str) -> str:
    """The text that is embedded, indexed and hashed: what is put before a passage, and the passage."""
    return f"{prefix}\n{text}" if prefix else text


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """One retrievable piece of a source.

    `text` is the exact slice `[start_char:end_char]` of the source's extracted text. `prefix` is what is put
    before it for embedding and keyword search only (headings, a table's header row); it is never shown as the
    passage. `page` is 1-based, None where the format has no pages.
    """

    text: str
    start_char: int
    end_char: int
    prefix: str = ""
    page: int | None = None
    headings: tuple[str, ...] = ()

    @property
    def embedded_text(self) -> str:
        """The text that is embedded, indexed and hashed."""
        return embedded_text(self.prefix, self.text)


@dataclass(frozen=True, slots=True)
class Layout:
    """What the chunks of a source leave out of its extracted text: enough to have the whole text again.

    `gaps` is the text before each chunk and after the last, mostly blanks and headings: with the chunks between them
    they are the extracted text. `blocks` are the pieces it consists of, as the chunker takes them: (start, end, kind,
    headings, page, prefix). `notes` are those of the extraction, without those of the cutting.
    """

    gaps: tuple[str, ...]
    blocks: tuple[tuple[int, int, str, tuple[str, ...], int | None, str], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceDraft:
    """One source: a file, an upload or a text given by a caller.

    `uri` identifies it inside its collection (path relative to the ingested root with `/`, upload name, or URL),
    `file_name` is only a label, `file_hash` is the sha256 of the bytes. `metadata` is what a filter may test and
    what a citation may show; `notes` are the things a person should know of (pages without text, a guessed
    encoding, text cut by nothing but worth saying). With a `layout` the source can be cut anew without its file.
    """

    uri: str
    file_name: str
    file_hash: str
    chunks: tuple[ChunkDraft, ...]
    source_type: str = "file"
    doc_id: str | None = None
    metadata: Mapping[str, FieldValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class WebPassage:
    """One piece of a page of the web, or the search engine's excerpt of it (`excerpt`).

    `text` is the exact slice `[start_char:end_char]` of the page's extracted text; of an excerpt, all there is.
    `retrieved_at` is ISO 8601 in UTC. `file_hash` is the sha256 of the page's bytes, empty for an excerpt.
    """

    url: str
    title: str
    text: str
    retrieved_at: str
    start_char: int
    end_char: int
    headings: tuple[str, ...] = ()
    chunk_index: int = 0
    total_chunks: int = 1
    language: str | None = None
    file_hash: str = ""
    excerpt: bool = False

    @property
    def chunk_id(self) -> str:
        """Of the address and the text: the same text at another address is another passage."""
        return _web_hash(self.url, self.text)

    @property
    def doc_id(self) -> str:
        """Of the address."""
        return _web_hash(self.url)


def _web_hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
