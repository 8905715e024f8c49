"""How good a ranking is, given which documents are relevant. Pure functions over ids.

`ranked` is best first; an id that comes again counts at its first place only. `grades` maps document id to a grade;
above 0 is relevant. Every value is between 0 and 1. A query without a relevant document is an error: there is
nothing to measure.
"""

import math
from collections.abc import Mapping, Sequence


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Normalised discounted cumulative gain at `k`, as trec_eval computes it: gain = grade, discount = log2(place + 1).

    The ideal ranking is cut at `k` too. (Järvelin and Kekäläinen, 2002; with an exponential gain figures differ.)
    """
    ideal = _dcg(sorted(_relevant(grades).values(), reverse=True)[:k])
    return _dcg([max(0, grades.get(document, 0)) for document in _first(ranked, k)]) / ideal


def recall(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """The share of the relevant documents among the first `k`."""
    relevant = _relevant(grades)
    return sum(document in relevant for document in _first(ranked, k)) / len(relevant)


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, int]) -> float:
    """1 / the place (1-based) of the first relevant document, 0 where there is none. Its mean is MRR."""
    relevant = _relevant(grades)
    places = (place for place, document in enumerate(dict.fromkeys(ranked), 1) if document in relevant)
    return 1 / next(places, math.inf)


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def _first(ranked: Sequence[str], k: int) -> list[str]:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    return list(dict.fromkeys(ranked))[:k]


def _relevant(grades: Mapping[str, int]) -> dict[str, int]:
    relevant = {document: grade for document, grade in grades.items() if grade > 0}
    if not relevant:
        raise ValueError("no document is relevant: nothing can be measured")
    return relevant
