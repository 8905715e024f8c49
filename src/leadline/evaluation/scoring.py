"""From rankings of chunks to figures a leg. Pure functions; knows no store and no model."""

from collections.abc import Mapping, Sequence

from leadline.evaluation.datasets import Qrels
from leadline.evaluation.metrics import ndcg, recall, reciprocal_rank
from leadline.records import Document

Run = dict[str, list[str]]
Figures = dict[str, float]


def source_ranking(documents: Sequence[Document], depth: int) -> list[str]:
    """The sources of ranked chunks, each at the place of its best chunk, cut at `depth`."""
    return list(dict.fromkeys(source for document in documents for source in sources_of(document)))[:depth]


def sources_of(document: Document) -> list[str]:
    """The source of a chunk and, after it, those that fusion found to hold the same text: what was judged of one of
    them is as true of the others.
    """
    metadata = document["metadata"]
    return [str(place["doc_id"]) for place in (metadata, *metadata.get("also_in", ()))]


def score_runs(runs: Mapping[str, Run], qrels: Qrels, depth: int) -> dict[str, Figures]:
    """Leg → mean figures over the queries of `qrels`.

    A query that a leg has no ranking for counts as 0, never as missing: means over what happened to work look better
    the more breaks. `queries` says over how many the mean goes.
    """
    return {
        leg: _mean([_figures(run.get(query, []), qrels[query], depth) for query in qrels]) for leg, run in runs.items()
    }


def _figures(ranked: list[str], grades: Mapping[str, int], depth: int) -> Figures:
    cuts = {10, depth}
    return {
        "nDCG@10": ndcg(ranked, grades, 10),
        **{f"R@{k}": recall(ranked, grades, k) for k in sorted(cuts)},
        "MRR": reciprocal_rank(ranked, grades),
    }


def _mean(rows: list[Figures]) -> Figures:
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} | {"queries": len(rows)}
