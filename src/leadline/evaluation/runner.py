"""Measures retrieval on judged collections, by the product's own ingest, legs, fusion and reranker.

Knows how a collection becomes sources of the knowledge base and which ranking each leg gives. Doesn't know how figures
come about (`scoring`) nor how they are shown.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from leadline.config import Settings, load_settings
from leadline.drafts import SourceDraft
from leadline.errors import DatasetError
from leadline.evaluation.datasets import CorpusDocument, Dataset, load_dataset
from leadline.evaluation.scoring import Figures, Run, score_runs, source_ranking
from leadline.ingest.chunking import chunk
from leadline.ingest.extracted import Block, Extracted
from leadline.knowledge import KnowledgeBase, Library, open_library
from leadline.models import open_reranker
from leadline.models.base import Reranker, Tokenizer
from leadline.nodes.reranker import passage_text
from leadline.ranking import apply_scores, fuse
from leadline.records import Document
from leadline.stores.base import Retriever

Progress = Callable[[str, int, int], None]
Report = dict[str, dict[str, Figures]]

BATCH = 256
# A source has several chunks, and the best of each is what counts: more chunks than sources are asked for.
CHUNKS_PER_SOURCE = 3


async def evaluate_retrieval(  # noqa: PLR0913 - keyword-only options
    folders: Sequence[Path],
    *,
    settings: Settings | None = None,
    depth: int = 100,
    rerank_depth: int = 30,
    sample: int | None = None,
    seed: int = 13,
    progress: Progress = lambda _task, _done, _total: None,
) -> Report:
    """Dataset → leg → figures, for the legs of the collection, `fused` and `reranked`.

    With `settings` the indexes stay in their data folder (a collection named after each dataset) and a later run
    embeds nothing again; without, they are built in a temporary folder. `reranked` scores the first `rerank_depth`
    fused chunks and leaves the others behind them in fused order. `sample` asks that many of each set's queries; all
    its documents are searched. Raises DatasetError before anything is built. Cost: embeds every document once.
    """
    datasets = [load_dataset(folder) for folder in folders]
    if len({dataset.name for dataset in datasets}) < len(datasets):
        raise DatasetError("Two datasets have the same name.", hint="Rename one of the folders.")
    report: Report = {}
    async with _library(settings) as (library, at):
        reranker = await asyncio.to_thread(open_reranker, at.reranker_model, library.embedder)
        for dataset in datasets:
            asked = dataset if sample is None else dataset.sampled(sample, seed=seed)
            collection = await library.collection(dataset.name, create=True)
            await _ingest(collection, dataset, library.embedder, at.chunk_tokens, progress)
            legs = await library.retrievers(dataset.name)
            runs = await _rank(asked, _Search(legs, reranker, depth, rerank_depth), progress)
            report[dataset.name] = score_runs(runs, {query: asked.qrels[query] for query in asked.queries}, depth)
    return report


@asynccontextmanager
async def _library(settings: Settings | None) -> AsyncIterator[tuple[Library, Settings]]:
    with TemporaryDirectory(prefix="leadline-eval-", ignore_cleanup_errors=True) as folder:
        used = settings or load_settings(data_dir=Path(folder))
        async with open_library(used) as library:
            yield library, used


async def _ingest(
    collection: KnowledgeBase, dataset: Dataset, tokenizer: Tokenizer, chunk_tokens: int, progress: Progress
) -> None:
    task, total = f"{dataset.name}: documents", len(dataset.documents)
    for start in range(0, total, BATCH):
        batch = dataset.documents[start : start + BATCH]
        drafts = await asyncio.to_thread(_drafts, batch, dataset.name, tokenizer, chunk_tokens)
        failed = [report for report in await collection.put(drafts) if report.status == "failed"]
        if failed:  # figures over an index with holes would be wrong without a sign of it
            raise DatasetError(f"{failed[0].file_name} could not be taken in: {failed[0].error}")
        progress(task, start + len(batch), total)


def _drafts(
    documents: Sequence[CorpusDocument], dataset: str, tokenizer: Tokenizer, chunk_tokens: int
) -> list[SourceDraft]:
    return [draft_of(document, dataset, tokenizer, chunk_tokens) for document in documents]


def draft_of(document: CorpusDocument, dataset: str, tokenizer: Tokenizer, chunk_tokens: int) -> SourceDraft:
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
        doc_id=f"{dataset}/{document.id}",
        notes=notes,
    )


class _Search:
    """Every ranking of one query."""

    def __init__(self, legs: Mapping[str, Retriever], reranker: Reranker, depth: int, rerank_depth: int) -> None:
        self.legs = legs
        self._reranker = reranker
        self._depth = depth
        self._rerank_depth = rerank_depth

    async def rankings(self, query: str) -> dict[str, list[str]]:
        """Leg → sources, best first. What a leg raises is raised: a leg that failed has no figure."""
        k = self._depth * CHUNKS_PER_SOURCE
        found = dict(
            zip(self.legs, await asyncio.gather(*(leg.search(query, k=k) for leg in self.legs.values())), strict=True)
        )
        fused = fuse(found)
        ranked = {**found, "fused": fused, "reranked": await self._reranked(query, fused)}
        return {leg: source_ranking(documents, self._depth) for leg, documents in ranked.items()}

    async def _reranked(self, query: str, fused: list[Document]) -> list[Document]:
        head = fused[: self._rerank_depth]
        if not head:
            return []
        scores = await asyncio.to_thread(self._reranker.score, query, [passage_text(document) for document in head])
        return [*apply_scores(head, scores), *fused[self._rerank_depth :]]


async def _rank(dataset: Dataset, search: _Search, progress: Progress) -> dict[str, Run]:
    runs: dict[str, Run] = {leg: {} for leg in (*search.legs, "fused", "reranked")}
    for done, (query, text) in enumerate(dataset.queries.items(), 1):
        for leg, sources in (await search.rankings(text)).items():
            runs[leg][query] = [source.removeprefix(f"{dataset.name}/") for source in sources]
        progress(f"{dataset.name}: questions", done, len(dataset.queries))
    return runs
