"""From rankings of chunks to figures a leg. Pure functions; knows no store and no model."""

from collections.abc import Mapping, Sequence

import numpy as np

from leadline.evaluation.datasets import Qrels
from leadline.evaluation.metrics import ndcg, recall, reciprocal_rank
from leadline.evaluation.statistics import bootstrap, mean
from leadline.records import Document

Run = dict[str, list[str]]
Figures = dict[str, float]

MAIN = "nDCG@10"


def source_ranking(documents: Sequence[Document], depth: int) -> list[str]:
    """The sources of ranked chunks, each at the place of its best chunk, cut at `depth`."""
    return list(dict.fromkeys(source for document in documents for source in sources_of(document)))[:depth]


def sources_of(document: Document) -> list[str]:
    """The source of a chunk and, after it, those that fusion found to hold the same text: what was judged of one of
    them is as true of the others.
    """
    metadata = document["metadata"]
    return [str(place["doc_id"]) for place in (metadata, *metadata.get("also_in", ()))]


def score_queries(runs: Mapping[str, Run], qrels: Qrels, depth: int) -> dict[str, list[Figures]]:
    """Leg → the figures of each query of `qrels`, in its order.

    A query that a leg has no ranking for counts as 0, never as missing: means over what happened to work look better
    the more breaks.
    """
    return {leg: [_figures(run.get(query, []), qrels[query], depth) for query in qrels] for leg, run in runs.items()}


def compare(
    rows: Mapping[str, Sequence[Figures]], pairs: Sequence[tuple[str, str]], *, seed: int
) -> dict[str, Figures]:
    """Leg → means of what `score_queries` gave, `queries` says over how many; then, under `leg-other`, how much better
    `leg` is on average.

    The difference in nDCG@10 has a 95 % interval, in `nDCG@10 low` and `nDCG@10 high`: a bootstrap over the queries,
    paired, since both legs were asked the same ones.
    """
    means = {leg: _mean(figures) for leg, figures in rows.items()}
    return means | {f"{leg}-{other}": _difference(rows[leg], rows[other], seed) for leg, other in pairs}


def _difference(rows: Sequence[Figures], others: Sequence[Figures], seed: int) -> Figures:
    differences = [{name: row[name] - other[name] for name in row} for row, other in zip(rows, others, strict=True)]
    values = np.array([row[MAIN] for row in differences])
    interval = bootstrap(mean(values), [len(values)], seed=seed)
    bounds = {MAIN: interval["value"], f"{MAIN} low": interval["low"], f"{MAIN} high": interval["high"]}
    return bounds | _mean(differences)


def _figures(ranked: list[str], grades: Mapping[str, int], depth: int) -> Figures:
    cuts = {10, depth}
    return {
        MAIN: ndcg(ranked, grades, 10),
        **{f"R@{k}": recall(ranked, grades, k) for k in sorted(cuts)},
        "MRR": reciprocal_rank(ranked, grades),
    }


def _mean(rows: Sequence[Figures]) -> Figures:
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} | {"queries": len(rows)}
