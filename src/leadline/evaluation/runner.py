"""Measures retrieval on judged collections, by the product's own ingest, legs, fusion and reranker.

Knows which ranking each leg gives. Doesn't know how figures come about (`scoring`) nor how they are shown.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from leadline.config import Settings
from leadline.errors import DatasetError
from leadline.evaluation.datasets import Dataset, load_dataset
from leadline.evaluation.index import Progress, evaluation_library, take_in
from leadline.evaluation.scoring import Figures, Run, score_runs, source_ranking
from leadline.evaluation.search import Search
from leadline.models import open_reranker

Report = dict[str, dict[str, Figures]]

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
    for dataset in datasets:
        dataset.require_judged()
    report: Report = {}
    async with evaluation_library(settings) as (library, at):
        reranker = await asyncio.to_thread(open_reranker, at.reranker_model, library.embedder)
        for dataset in datasets:
            asked = dataset if sample is None else dataset.sampled(sample, seed=seed)
            collection = await library.collection(dataset.name, create=True)
            await take_in(collection, dataset, library.embedder, at.chunk_tokens, progress)
            legs = await library.retrievers(dataset.name)
            search = Search(legs, reranker, k=depth * CHUNKS_PER_SOURCE, head=rerank_depth)
            runs = await _rank(asked, search, depth, progress)
            report[dataset.name] = score_runs(runs, {query: asked.qrels[query] for query in asked.queries}, depth)
    return report


async def _rank(dataset: Dataset, search: Search, depth: int, progress: Progress) -> dict[str, Run]:
    runs: dict[str, Run] = {leg: {} for leg in (*search.legs, "fused", "reranked")}
    for done, (query, text) in enumerate(dataset.queries.items(), 1):
        found = await search.find(text)
        reranked = [*found.reranked, *found.fused[len(found.reranked) :]]
        for leg, documents in {**found.legs, "fused": found.fused, "reranked": reranked}.items():
            runs[leg][query] = [source.removeprefix(f"{dataset.name}/") for source in source_ranking(documents, depth)]
        progress(f"{dataset.name}: questions", done, len(dataset.queries))
    return runs
