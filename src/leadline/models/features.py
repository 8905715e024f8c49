"""What can be measured about a question and a passage without reading them: likeness and shared terms.

Pure functions over text, vectors and a fixed table of term weights. The evidence scorer weighs these numbers; the
script that fits its weights takes them from here too, so that both see the same.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.analysis import Analyzer
from leadline.models.base import Vectors

NAMES = ("cosine", "maxsim", "coverage", "saturation")
# BM25's damping of repeated terms and of long passages; the mean length is that of the fitted passages, in terms.
K1, B, MEAN_LENGTH = 1.2, 0.75, 120.0

analyzer = Analyzer("english")


@dataclass(frozen=True, slots=True)
class TermWeights:
    """Inverse document frequencies of a fixed collection, for terms of the analyser and for tokens of the embedder.

    Fixed, so that the score of a pair never moves because other documents came or went.
    """

    terms: dict[str, float]
    unknown: float
    token_ids: NDArray[np.float32]

    def of(self, terms: Iterable[str]) -> dict[str, float]:
        """The weight of each term; a term that the collection doesn't have weighs as much as its rarest."""
        return {term: self.terms.get(term, self.unknown) for term in terms}


def asked_terms(question: str, weights: TermWeights) -> dict[str, float]:
    """The terms of a question with their weights: read once, then held against many passages."""
    return weights.of(dict.fromkeys(analyzer.query_terms(question)))


def measure(
    asked: dict[str, float], passage: str, *, cosine: float, similarities: Vectors, token_weights: Vectors
) -> NDArray[np.float64]:
    """The numbers of `NAMES` for one passage, each between -1 and 1 or little above.

    `similarities` holds the cosine of each question token (row) with each passage token (column), `token_weights`
    one weight a row. The passage is at most one window of the embedder long.
    """
    counts = Counter(analyzer.terms(passage))
    return np.array(
        [
            cosine,
            maxsim(similarities, token_weights),
            share(asked, dict.fromkeys(counts, 1.0)),
            share(asked, saturated(counts)),
        ]
    )


def maxsim(similarities: Vectors, token_weights: Vectors) -> float:
    """Late interaction (Khattab & Zaharia 2020): how near each question token comes to some passage token.

    The mean over the question's tokens by weight; 0 where either side has no token.
    """
    total = float(token_weights.sum())
    if not similarities.size or total <= 0.0:
        return 0.0
    return float(similarities.max(axis=1) @ token_weights) / total


def saturated(counts: Counter[str]) -> dict[str, float]:
    """How much of each term there is, by BM25's damping."""
    length = 1.0 - B + B * counts.total() / MEAN_LENGTH
    return {term: count * (K1 + 1.0) / (count + K1 * length) for term, count in counts.items()}


def share(weights: dict[str, float], present: dict[str, float]) -> float:
    """The weighted share of the question's terms that are there; 0 for a question without terms."""
    total = sum(weights.values())
    return sum(weight * present.get(term, 0.0) for term, weight in weights.items()) / total if total else 0.0
