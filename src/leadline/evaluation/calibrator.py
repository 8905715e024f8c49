"""Makes the calibration of a collection from a folder of judged questions.

Knows which documents a folder is about and what of a question's search is kept. Doesn't know how zero point and curve
come of that: `calibration` does.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leadline.calibration import Calibration
from leadline.config import Settings
from leadline.errors import DatasetError
from leadline.evaluation.calibration import FEWEST, Asked, Passage, fit
from leadline.evaluation.datasets import Dataset, load_dataset, load_questions
from leadline.evaluation.index import Progress, take_in
from leadline.evaluation.scoring import sources_of
from leadline.evaluation.search import Search
from leadline.knowledge import KnowledgeBase, open_library
from leadline.models import open_reranker
from leadline.ranking import is_scored
from leadline.records import Document

SHOWN = 3  # documents that aren't there


@dataclass(frozen=True, slots=True)
class Made:
    """A calibration that was made and kept; `described` as `Calibrations.describe` has it then."""

    collection: str
    reranker: str
    calibration: Calibration
    described: dict[str, Any]


async def calibrate(
    folder: Path,
    *,
    settings: Settings,
    collection: str | None = None,
    sample: int | None = None,
    seed: int = 13,
    progress: Progress = lambda _task, _done, _total: None,
) -> Made:
    """Asks the questions of the folder and keeps what comes of it with the collection.

    Without `collection`, a folder with a corpus of its own is taken into a collection named after it, and one without
    is about the collection of the settings. `sample` asks that many of the questions, as many of them answerable in
    proportion as in the folder. The search is the first pass of a run. Raises DatasetError where nothing can be made of
    the questions; an earlier calibration stays then. Cost: up to `top_k` passages a leg and question are scored.
    """
    dataset, name, is_own = await asyncio.to_thread(_read, folder, collection, settings.run.collection)
    if len(dataset.queries) < FEWEST:
        raise DatasetError(
            f"{folder}: {len(dataset.queries)} questions are judged to have an answer; a calibration takes at least "
            f"{FEWEST}, and better a few hundred.",
            hint="A folder without answerable questions tells nothing of what an answer scores.",
        )
    async with open_library(settings) as library:
        base = await library.collection(name, create=is_own)
        if is_own:
            await take_in(base, dataset, library.embedder, settings.chunk_tokens, progress)
        relevant = await _relevant_sources(base, dataset)
        asked_of = dataset if sample is None else sampled(dataset, sample, seed=seed)
        reranker = await asyncio.to_thread(open_reranker, settings.reranker_model, library.embedder)
        search = Search(base.retrievers(), reranker, k=settings.run.top_k)
        asked = await _ask(search, asked_of, relevant, settings.run.rerank_top_k, progress)
        made = await asyncio.to_thread(fit, asked, dataset=dataset.name, generation=await base.generation())
        await library.calibrations.keep(name, reranker.name, made)
        return Made(name, reranker.name, made, await library.calibrations.describe(name, reranker.name))


async def clear(settings: Settings, collection: str) -> list[str]:
    """Removes every calibration of the collection; the names of their rerankers. Raises CollectionUnknown."""
    async with open_library(settings) as library:
        await library.sources(collection)  # raises where there is no such collection
        return await library.calibrations.clear(collection)


def own_collection(folder: Path) -> str | None:
    """The collection that a folder with a corpus of its own goes into."""
    return folder.resolve().name if (folder / "corpus.jsonl").is_file() else None


def sampled(dataset: Dataset, n: int, *, seed: int) -> Dataset:
    """The dataset with `n` of its questions, drawn by `seed`: the risk is that of a mixture, which stays the same."""
    answerable, unanswerable = len(dataset.queries), len(dataset.unanswerable)
    drawn = round(n * answerable / (answerable + unanswerable))
    rest = dataset.sampled(n - drawn, seed=seed).unanswerable
    return replace(dataset, queries=dataset.sampled(drawn, seed=seed).queries, unanswerable=rest)


def _read(folder: Path, collection: str | None, default: str) -> tuple[Dataset, str, bool]:
    """The questions, their collection, and whether their documents are still to be taken into it."""
    own = own_collection(folder) if collection is None else None
    if own is not None:
        return load_dataset(folder), own, True
    return load_questions(folder), collection or default, False


async def _relevant_sources(base: KnowledgeBase, dataset: Dataset) -> Mapping[str, set[str]]:
    """Query → the ids of its relevant sources, which the judgements may call by id, path or file name."""
    named: dict[str, set[str]] = {}
    for source in await base.list_sources():
        for name in (source.doc_id, source.uri, source.file_name):
            named.setdefault(name, set()).add(source.doc_id)
    judged = {document for query in dataset.queries for document in dataset.qrels[query]}
    if missing := sorted(judged - named.keys()):
        more = ", …" if len(missing) > SHOWN else ""
        raise DatasetError(
            f"{len(missing)} judged documents are not in the collection {base.name}: "
            f"{', '.join(missing[:SHOWN])}{more}.",
            hint="qrels.tsv calls them by file name, path or id, as `leadline ls --json` shows them.",
        )
    return {query: set().union(*(named[name] for name in dataset.qrels[query])) for query in dataset.queries}


async def _ask(
    search: Search, dataset: Dataset, relevant: Mapping[str, set[str]], top: int, progress: Progress
) -> list[Asked]:
    texts = {**dataset.queries, **dataset.unanswerable}
    asked = []
    for done, (query, text) in enumerate(texts.items(), 1):
        context = (await search.find(text)).reranked[:top]
        passages = tuple(_passage(document, relevant.get(query, set())) for document in context if _is_logit(document))
        asked.append(Asked(query, query in dataset.queries, passages))
        progress(f"{dataset.name}: questions", done, len(texts))
    return asked


def _is_logit(document: Document) -> bool:
    return is_scored(document["rerank_score"])


def _passage(document: Document, relevant: set[str]) -> Passage:
    return Passage(document["rerank_score"], not relevant.isdisjoint(sources_of(document)))
