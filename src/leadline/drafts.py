"""What ingest hands to the knowledge base: a source cut into chunks, not yet embedded or stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FieldValue = str | int | float | bool


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
        return f"{self.prefix}\n{self.text}" if self.prefix else self.text


@dataclass(frozen=True, slots=True)
class SourceDraft:
    """One source: a file, an upload or a text given by a caller.

    `uri` identifies it inside its collection (path relative to the ingested root with `/`, upload name, or URL),
    `file_name` is only a label, `file_hash` is the sha256 of the bytes. `metadata` is what a filter may test and
    what a citation may show; `notes` are the things a person should know of (pages without text, a guessed
    encoding, text cut by nothing but worth saying).
    """

    uri: str
    file_name: str
    file_hash: str
    chunks: tuple[ChunkDraft, ...]
    source_type: str = "file"
    doc_id: str | None = None
    metadata: Mapping[str, FieldValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
