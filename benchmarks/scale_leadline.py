"""Leadline's side of `scale.py`: a data folder with default settings, asked by the graph's own nodes."""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
from langgraph.runtime import Runtime

import scale_corpus
from leadline import KnowledgeBase, Library, load_settings, open_library
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.nodes.aggregator import aggregator
from leadline.nodes.hybrid import hybrid
from leadline.state import RAGState

DOCUMENTS_PER_PUT = 100


class Table:
    """An embedder that looks vectors up."""

    name = "made-up"
    dimension = scale_corpus.WIDTH
    max_tokens = 256

    def __init__(self) -> None:
        self.known: dict[str, scale_corpus.Vectors] = {}

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """The places of the words."""
        return [word.span() for word in re.finditer(r"\S+", text)]

    def embed_passages(self, texts: Sequence[str]) -> scale_corpus.Vectors:
        """The vectors of these texts."""
        return np.stack([self.known[text] for text in texts])

    def embed_query(self, text: str) -> scale_corpus.Vectors:
        """The vector of this question."""
        return self.known[text]


class Leadline:
    """An open collection, as `scale.py` asks and changes it."""

    def __init__(self, library: Library, base: KnowledgeBase, table: Table) -> None:
        self._library = library
        self._base = base
        self._table = table
        self._runtime = Runtime(context=library.settings.run)

    async def ask(self, question: scale_corpus.Question) -> list[str]:
        """The texts found, best first."""
        self._table.known = {question.text: np.asarray(question.vector, dtype=np.float32)}
        state: RAGState = {"query": question.text}
        state.update(await hybrid(state, self._runtime, retrievers=self._library.retrievers))
        assert not state["degraded"], state["degraded"]
        fused = await aggregator(state, self._runtime)
        return [document["content"] for document in fused["documents"]]

    async def add(self, documents: Sequence[scale_corpus.Document]) -> None:
        """Puts documents in, in one call."""
        self._table.known = {
            text: vector for of in documents for text, vector in zip(of.texts, of.vectors, strict=True)
        }
        reports = await self._base.put([_draft(document) for document in documents])
        assert all(report.status == "added" for report in reports), reports

    async def delete(self, document: scale_corpus.Document) -> None:
        """Takes a document out."""
        report = await self._base.delete(document.name)
        assert not report.owed, report


@asynccontextmanager
async def opened(folder: Path, source: Path) -> AsyncIterator[Leadline]:  # noqa: ARG001 - needs nothing but its folder
    """The collection in `folder`, made if there is none."""
    async with open_library(load_settings(data_dir=folder)) as library:
        table = library.embedder = Table()
        yield Leadline(library, await library.collection(), table)


async def build(folder: Path, source: Path) -> None:
    """Puts all documents into a new data folder."""
    documents = list(scale_corpus.documents(source))
    async with opened(folder, source) as side:
        for start in range(0, len(documents), DOCUMENTS_PER_PUT):
            await side.add(documents[start : start + DOCUMENTS_PER_PUT])


def _draft(document: scale_corpus.Document) -> SourceDraft:
    chunks, start = [], 0
    for text in document.texts:
        chunks.append(ChunkDraft(text, start, start + len(text)))
        start += len(text) + 1
    digest = hashlib.sha256("\n".join(document.texts).encode()).hexdigest()
    return SourceDraft(document.name, document.name, digest, tuple(chunks), doc_id=document.name)
