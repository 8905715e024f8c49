"""A judged collection as sources of the knowledge base, so that it is searched as a user's documents are.

Knows how a document of a collection becomes a source. Doesn't know what is asked.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from leadline.config import Settings, load_settings
from leadline.drafts import SourceDraft
from leadline.errors import DatasetError
from leadline.evaluation.datasets import CorpusDocument, Dataset
from leadline.ingest.chunking import chunk
from leadline.ingest.extracted import Block, Extracted
from leadline.knowledge import KnowledgeBase, Library, open_library
from leadline.models.base import Tokenizer

Progress = Callable[[str, int, int], None]

BATCH = 256


def source_id(collection: str, dataset: str, document: str) -> str:
    """The `doc_id` of a dataset's document in a collection: no other one's, as ids are those of a whole data folder."""
    return f"{dataset}/{document}" if collection == dataset else f"{collection}/{dataset}/{document}"


@asynccontextmanager
async def evaluation_library(settings: Settings | None) -> AsyncIterator[tuple[Library, Settings]]:
    """The library that `settings` name; without, one in a temporary folder that goes when the block ends."""
    with TemporaryDirectory(prefix="leadline-eval-", ignore_cleanup_errors=True) as folder:
        used = settings or load_settings(data_dir=Path(folder))
        async with open_library(used) as library:
            yield library, used


async def take_in(
    collection: KnowledgeBase, dataset: Dataset, tokenizer: Tokenizer, chunk_tokens: int, progress: Progress
) -> None:
    """Puts all documents of a dataset into a collection; what is there already is not embedded again.

    Raises DatasetError if one can't be taken in: figures over an index with holes would be wrong without a sign of it.
    """
    task, total = f"{dataset.name}: documents", len(dataset.documents)
    for start in range(0, total, BATCH):
        batch = dataset.documents[start : start + BATCH]
        ids = [source_id(collection.name, dataset.name, document.id) for document in batch]
        drafts = await asyncio.to_thread(_drafts, batch, ids, tokenizer, chunk_tokens)
        failed = [report for report in await collection.put(drafts) if report.status == "failed"]
        if failed:
            raise DatasetError(f"{failed[0].file_name} could not be taken in: {failed[0].error}")
        progress(task, start + len(batch), total)


def _drafts(
    documents: Sequence[CorpusDocument], ids: Sequence[str], tokenizer: Tokenizer, chunk_tokens: int
) -> list[SourceDraft]:
    return [
        draft_of(document, doc_id, tokenizer, chunk_tokens) for document, doc_id in zip(documents, ids, strict=True)
    ]


def draft_of(document: CorpusDocument, doc_id: str, tokenizer: Tokenizer, chunk_tokens: int) -> SourceDraft:
    """The document as ingest would cut a file of it: its title is a heading over its text."""
    text = f"{document.title}\n\n{document.text}" if document.title else document.text
    begin = len(text) - len(document.text)
    above = (document.title,) if document.title else ()
    blocks = [Block(begin, len(text), headings=above)]
    if document.title:
        blocks.insert(0, Block(0, len(document.title), kind="heading"))
    chunks, notes = chunk(Extracted(text, tuple(blocks)), tokenizer, chunk_tokens=chunk_tokens)
    return SourceDraft(
        uri=document.id,
        file_name=document.id,
        file_hash=hashlib.sha256(text.encode()).hexdigest(),
        chunks=chunks,
        doc_id=doc_id,
        notes=notes,
    )
