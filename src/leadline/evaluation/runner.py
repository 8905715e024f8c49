"""Measures retrieval on judged collections, by the product's own ingest, legs, fusion and reranker.

Knows which ranking each leg gives. Doesn't know how figures come about (`scoring`) nor how they are shown.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

from leadline.config import Settings
from leadline.errors import DatasetError
from leadline.evaluation.datasets import Dataset, Qrels, load_datasets
from leadline.evaluation.index import Progress, evaluation_library, source_id, take_in
from leadline.evaluation.scoring import Figures, Run, compare, score_queries, source_ranking
from leadline.evaluation.search import Search
from leadline.knowledge import KnowledgeBase, Library
from leadline.models import open_reranker

Report = dict[str, dict[str, Figures]]

JOINT = "joint"
# A source has several chunks, and the best of each is what counts: more chunks than sources are asked for.
CHUNKS_PER_SOURCE = 3
COMPARED = (("reranked", "fused"), ("blended", "fused"), ("blended", "reranked"))


async def evaluate_retrieval(  # noqa: PLR0913 - keyword-only options
    folders: Sequence[Path],
    *,
    settings: Settings | None = None,
    joint: bool = False,
    depth: int = 100,
    rerank_depth: int = 30,
    sample: int | None = None,
    seed: int = 13,
    progress: Progress = lambda _task, _done, _total: None,
) -> Report:
    """Dataset → leg → figures, for the legs of the collection, `fused`, `reranked` and `blended`, and the differences
    between the last three (`reranked-fused`, …), with an interval.

    With `settings` the indexes stay in their data folder (a collection named after each dataset) and a later run
    embeds nothing again; without, they are built in a temporary folder. `reranked` scores the first `rerank_depth`
    fused chunks and leaves the others behind them in fused order; `blended` fuses the legs anew with that order as
    one more leg. With `joint` the documents of all datasets are in one index and each question is asked against all
    of them; the figures over all questions come last, as the dataset `joint`. `sample` asks that many of each set's
    queries; all its documents are searched. Raises DatasetError before anything is built. Cost: embeds every
    document once.
    """
    datasets = load_datasets(folders)
    for dataset in datasets:
        dataset.require_judged()
    if joint and any(dataset.name == JOINT for dataset in datasets):
        raise DatasetError(f"A dataset is named {JOINT}, as the figures over all of them are.", hint="Rename it.")
    groups = [datasets] if joint else [[dataset] for dataset in datasets]
    rows: dict[str, dict[str, list[Figures]]] = {}
    async with evaluation_library(settings) as (library, at):
        reranker = await asyncio.to_thread(open_reranker, at.reranker_model, library.embedder)
        for group in groups:
            collection = await collection_of(library, group, at.chunk_tokens, progress)
            search = Search(collection.retrievers(), reranker, k=depth * CHUNKS_PER_SOURCE, head=rerank_depth)
            for dataset in group:
                asked = dataset if sample is None else dataset.sampled(sample, seed=seed)
                runs = await _rank(asked, search, depth, progress)
                rows[dataset.name] = score_queries(runs, _qrels(collection.name, asked), depth)
    if joint:
        rows[JOINT] = {leg: [row for legs in rows.values() for row in legs[leg]] for leg in rows[datasets[0].name]}
    return {name: await asyncio.to_thread(compare, legs, COMPARED, seed=seed) for name, legs in rows.items()}


async def collection_of(
    library: Library, datasets: Sequence[Dataset], chunk_tokens: int, progress: Progress
) -> KnowledgeBase:
    """One collection with the documents of all the datasets, taken in where they aren't yet."""
    collection = await library.collection(_name(datasets), create=True)
    for dataset in datasets:
        await take_in(collection, dataset, library.embedder, chunk_tokens, progress)
    return collection


def _name(datasets: Sequence[Dataset]) -> str:
    """Another one for each choice of datasets: what is kept of one choice must not be found in another."""
    if len(datasets) == 1:
        return datasets[0].name
    names = "/".join(sorted(dataset.name for dataset in datasets))
    return f"{JOINT}-{hashlib.sha256(names.encode()).hexdigest()[:12]}"


def _qrels(collection: str, dataset: Dataset) -> Qrels:
    """The judgements of the dataset's queries, by the ids of sources in the collection."""
    return {
        query: {
            source_id(collection, dataset.name, document): grade for document, grade in dataset.qrels[query].items()
        }
        for query in dataset.queries
    }


async def _rank(dataset: Dataset, search: Search, depth: int, progress: Progress) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for done, (query, text) in enumerate(dataset.queries.items(), 1):
        for leg, documents in (await search.find(text)).rankings().items():
            runs.setdefault(leg, {})[query] = source_ranking(documents, depth)
        progress(f"{dataset.name}: questions", done, len(dataset.queries))
    return runs
