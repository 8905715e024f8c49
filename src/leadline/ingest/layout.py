"""Cuts a stored source anew, without its file: its text and blocks come back from its chunks and its layout.

The result is what reading the file again with the same settings would give.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from leadline.drafts import ChunkDraft, Layout, SourceDraft
from leadline.ingest.chunking import chunk
from leadline.ingest.extracted import Block, Extracted
from leadline.models.base import Tokenizer


def layout_of(extracted: Extracted, chunks: Sequence[ChunkDraft]) -> Layout:
    """What the chunks leave out of the text they were cut from."""
    blocks = tuple((b.start, b.end, str(b.kind), b.headings, b.page, b.prefix) for b in extracted.blocks)
    return Layout(tuple(_gaps(extracted.text, chunks)), blocks, extracted.notes)


def recut(draft: SourceDraft, tokenizer: Tokenizer, chunk_tokens: int) -> SourceDraft:
    """The source in chunks of another size, or measured by another tokenizer. One without a layout stays as it is."""
    if draft.layout is None:
        return draft
    pieces = [piece for gap, c in zip(draft.layout.gaps, draft.chunks, strict=False) for piece in (gap, c.text)]
    blocks = tuple(Block(start, end, kind, *rest) for start, end, kind, *rest in draft.layout.blocks)  # type: ignore[arg-type]  # as written by layout_of
    extracted = Extracted("".join([*pieces, draft.layout.gaps[-1]]), blocks)
    language = str(draft.metadata.get("language", "en"))
    chunks, notes = chunk(extracted, tokenizer, chunk_tokens=chunk_tokens, language=language)
    layout = Layout(tuple(_gaps(extracted.text, chunks)), draft.layout.blocks, draft.layout.notes)
    return replace(draft, chunks=chunks, layout=layout, notes=(*draft.layout.notes, *notes))


def _gaps(text: str, chunks: Sequence[ChunkDraft]) -> Iterator[str]:
    end = 0
    for each in chunks:
        yield text[end : each.start_char]
        end = each.end_char
    yield text[end:]
