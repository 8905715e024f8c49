"""Statistics of judged questions and how sure they are. Pure functions over arrays.

A statistic takes weights, one row a resample and one column a question, and gives one value a row: a question that was
drawn twice weighs two. So a bootstrap is a few operations on matrices, and the figure itself the case of equal weights.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]

DRAWS = 2000
Z95 = 1.959964
CELLS = 2_000_000  # of a matrix of weights: 16 MB


class Estimate(TypedDict):
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


def bootstrap(statistic: Statistic, strata: Sequence[int], *, seed: int) -> Estimate:
    """The statistic of all questions, with the percentile interval of DRAWS resamples (Efron, 1979).

    `strata` are the sizes of the groups that are drawn from each by itself, in the order of the columns: how many
    answerable questions there are was chosen, not found.
    """
    total = sum(strata)
    rng = np.random.default_rng(seed)
    rows = max(1, CELLS // total)
    drawn = [statistic(_weights(strata, min(rows, DRAWS - at), rng)) for at in range(0, DRAWS, rows)]
    low, high = np.percentile(np.concatenate(drawn), [2.5, 97.5])
    return Estimate(value=float(statistic(np.ones((1, total)))[0]), low=float(low), high=float(high))


def share(flags: Bools) -> Estimate:
    """The share of true ones, with Wilson's interval (1927): by a bootstrap none of 20 would be none for certain."""
    n, p = len(flags), float(flags.mean())
    spread = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n))
    middle, scale = p + Z95**2 / (2 * n), 1 + Z95**2 / n
    # Rounding may put a bound on the wrong side of the value or of 0 and 1.
    return Estimate(
        value=p, low=max(0.0, min(p, (middle - spread) / scale)), high=min(1.0, max(p, (middle + spread) / scale))
    )


def mean(values: Floats) -> Statistic:
    """The mean."""

    def statistic(weights: Floats) -> Floats:
        means: Floats = weights @ values / weights.sum(axis=1)
        return means

    return statistic


def auroc(scores: Floats, positive: Bools) -> Statistic:
    """How likely a positive one scores above a negative one, a tie counting half: the area under the ROC curve.

    By ranks (Mann and Whitney, 1947). Minus infinity is a score. Not a number where one kind is missing.
    """
    order, starts = _groups(scores)
    flags = positive[order]

    def statistic(weights: Floats) -> Floats:
        sorted_weights = weights[:, order]
        above = np.add.reduceat(sorted_weights * flags, starts, axis=1)
        below = np.add.reduceat(sorted_weights * ~flags, starts, axis=1)
        beaten = np.cumsum(below, axis=1) - below / 2
        pairs = above.sum(axis=1) * below.sum(axis=1)
        area: Floats = np.divide((above * beaten).sum(axis=1), pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
        return area

    return statistic


def aurc(scores: Floats, wrong: Bools) -> Statistic:
    """The area under the risk-coverage curve (Geifman and El-Yaniv, 2017): the mean risk over all coverages.

    Each question's score is the threshold once, and the risk is the share of wrong ones among those that reach it.
    0 is best. What is wrong at every threshold, such as an unanswerable question, keeps it above 0.
    """
    order, starts = _groups(-scores)
    flags = wrong[order]

    def statistic(weights: Floats) -> Floats:
        sorted_weights = weights[:, order]
        group = np.add.reduceat(sorted_weights, starts, axis=1)
        answered = np.cumsum(group, axis=1)
        failed = np.cumsum(np.add.reduceat(sorted_weights * flags, starts, axis=1), axis=1)
        risk = np.divide(failed, answered, out=np.zeros_like(failed), where=answered > 0)
        area: Floats = (group * risk).sum(axis=1) / answered[:, -1]
        return area

    return statistic


def _groups(keys: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order of ascending keys, and where in it each group of equal keys starts."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _weights(strata: Sequence[int], rows: int, rng: np.random.Generator) -> Floats:
    drawn = [rng.multinomial(n, np.full(n, 1 / n), size=rows) for n in strata if n]
    return np.concatenate(drawn, axis=1).astype(np.float64)
