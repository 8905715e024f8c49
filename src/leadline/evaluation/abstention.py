"""Measures whether the sign of the best logit says that the documents can answer a question.

Knows which figures say so and how they come from judged questions. Doesn't know how they are shown.
"""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from leadline.config import Settings
from leadline.evaluation.datasets import load_datasets
from leadline.evaluation.index import Progress, evaluation_library, take_in
from leadline.evaluation.questions import Judged, judge
from leadline.evaluation.statistics import Bools, Estimate, Floats, aurc, auroc, bootstrap, share
from leadline.models import open_reranker

# The shares of questions whose thresholds are shown.
COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class Point(TypedDict):
    """What answering from a threshold on would do: the share answered, and the share of wrong ones among those.

    `risk` is None where nothing is answered.
    """

    threshold: float
    answered: int
    coverage: float
    risk: float | None


class Abstention(TypedDict):
    """The figures of one dataset; those that need a kind of question that it hasn't are None.

    A context is all-negative where no passage of it is above zero, or none was found: nothing is answered from it.
    """

    reranker: str
    answerable: int
    unanswerable: int
    auroc: Estimate | None
    accuracy_at_zero: Estimate | None
    answerable_all_negative: Estimate | None
    unanswerable_all_negative: Estimate | None
    aurc: Estimate
    risk_coverage: list[Point]


async def evaluate_abstention(
    folders: Sequence[Path],
    *,
    settings: Settings | None = None,
    sample: int | None = None,
    seed: int = 13,
    progress: Progress = lambda _task, _done, _total: None,
) -> dict[str, Abstention]:
    """Dataset → figures. Each question is searched as the first pass of a run would, over all documents of its set.

    With `settings` the indexes stay in their data folder; without, they are built in a temporary one. `sample` asks
    that many answerable and that many unanswerable questions of each set; `seed` draws them, and the resamples of the
    intervals. Raises DatasetError before anything is built.
    """
    datasets = load_datasets(folders)
    figures: dict[str, Abstention] = {}
    async with evaluation_library(settings) as (library, at):
        reranker = await asyncio.to_thread(open_reranker, at.reranker_model, library.embedder)
        for dataset in datasets:
            asked = dataset if sample is None else dataset.sampled(sample, seed=seed)
            collection = await library.collection(dataset.name, create=True)
            await take_in(collection, dataset, library.embedder, at.chunk_tokens, progress)
            judged = await judge(collection, reranker, asked, top_k=at.run.top_k, progress=progress)
            figures[dataset.name] = await asyncio.to_thread(
                abstention_figures, judged, reranker=reranker.name, seed=seed
            )
    return figures


def abstention_figures(judged: Sequence[Judged], *, reranker: str, seed: int) -> Abstention:
    """The figures of at least one question. Cost: DRAWS resamples of all of them."""
    ordered = sorted(judged, key=lambda one: not one.answerable)  # the bootstrap draws from either kind by itself
    logits = np.array([-math.inf if one.logit is None else one.logit for one in ordered])
    answerable = np.array([one.answerable for one in ordered])
    wrong = np.array([not one.right for one in ordered])
    strata = (int(answerable.sum()), int((~answerable).sum()))
    both = all(strata)
    return Abstention(
        reranker=reranker,
        answerable=strata[0],
        unanswerable=strata[1],
        auroc=bootstrap(auroc(logits, answerable), strata, seed=seed) if both else None,
        accuracy_at_zero=share((logits > 0) == answerable) if both else None,
        answerable_all_negative=share(logits[answerable] <= 0) if strata[0] else None,
        unanswerable_all_negative=share(logits[~answerable] <= 0) if strata[1] else None,
        aurc=bootstrap(aurc(logits, wrong), strata, seed=seed),
        risk_coverage=_risk_coverage(logits, wrong),
    )


def _risk_coverage(logits: Floats, wrong: Bools) -> list[Point]:
    """The points at zero and at the COVERAGES, highest threshold first; without a logit nothing is ever answered."""
    found = np.sort(logits[np.isfinite(logits)])[::-1]
    wanted = [math.ceil(coverage * len(logits)) for coverage in COVERAGES]
    thresholds = {0.0, *(float(found[min(n, len(found)) - 1]) for n in wanted if len(found))}
    return [_point(threshold, logits >= threshold, wrong) for threshold in sorted(thresholds, reverse=True)]


def _point(threshold: float, answered: Bools, wrong: Bools) -> Point:
    n = int(answered.sum())
    return Point(
        threshold=threshold,
        answered=n,
        coverage=n / len(answered),
        risk=float(wrong[answered].mean()) if n else None,
    )
