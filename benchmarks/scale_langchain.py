"""The other side of `scale.py`: LangChain's EnsembleRetriever over Chroma and BM25, as its documentation puts them
together.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from langchain_chroma import Chroma
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

import scale_corpus
from leadline.config import RunContext

DOCUMENTS_PER_PUT = 100
DEPTH = RunContext().top_k  # hits a retriever, as many as Leadline asks of each leg


class Table(Embeddings):
    """Embeddings that are looked up."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of these texts."""
        return [self.known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of this question."""
        return self.known[text]


class LangChain:
    """The retriever, as `scale.py` asks and changes it. BM25Retriever can't be changed: it is made anew each time."""

    def __init__(self, folder: Path) -> None:
        self._table = Table()
        self._chroma = Chroma("scale", self._table, str(folder))
        self._documents: list[Document] = []
        self._retriever: EnsembleRetriever | None = None

    async def ask(self, question: scale_corpus.Question) -> list[str]:
        """The texts found, best first."""
        assert self._retriever is not None
        self._table.known = {question.text: question.vector}
        return [document.page_content for document in self._retriever.invoke(question.text)]

    async def add(self, documents: Sequence[scale_corpus.Document]) -> None:
        """Puts documents in."""
        self.store(documents)
        self.join(documents)

    async def delete(self, document: scale_corpus.Document) -> None:
        """Takes a document out."""
        gone = {made.id for made in _made(document)}
        self._chroma.delete(ids=[made for made in gone if made is not None])
        self._documents = [kept for kept in self._documents if kept.id not in gone]
        self._join()

    def store(self, documents: Sequence[scale_corpus.Document]) -> None:
        """Gives documents to Chroma."""
        self._table.known = {
            text: vector.tolist() for of in documents for text, vector in zip(of.texts, of.vectors, strict=True)
        }
        made = [each for document in documents for each in _made(document)]
        self._chroma.add_documents(made, ids=[str(each.id) for each in made])

    def join(self, documents: Sequence[scale_corpus.Document]) -> None:
        """Makes a retriever over the documents so far and these."""
        self._documents += [each for document in documents for each in _made(document)]
        self._join()

    def _join(self) -> None:
        words = BM25Retriever.from_documents(self._documents, k=DEPTH)
        vectors = self._chroma.as_retriever(search_kwargs={"k": DEPTH})
        self._retriever = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])


@asynccontextmanager
async def opened(folder: Path, source: Path) -> AsyncIterator[LangChain]:
    """The vectors in `folder`; the words from the documents, since BM25Retriever keeps nothing."""
    side = LangChain(folder)
    side.join(list(scale_corpus.documents(source)))
    yield side


async def build(folder: Path, source: Path) -> None:
    """Puts all documents into a new Chroma folder."""
    documents = list(scale_corpus.documents(source))
    side = LangChain(folder)
    for start in range(0, len(documents), DOCUMENTS_PER_PUT):
        side.store(documents[start : start + DOCUMENTS_PER_PUT])


def _made(document: scale_corpus.Document) -> list[Document]:
    return [
        Document(id=f"{document.name}-{number}", page_content=text, metadata={"source": document.name, "chunk": number})
        for number, text in enumerate(document.texts)
    ]
