"""From judged questions to a calibration: zero point, probabilities and the risk–coverage curve. Pure functions.

The map from logit to probability is Platt's (1999): a logistic curve of two numbers, with his smoothed targets, fitted
by Newton's method (Lin, Lin and Weng, 2007). Isotonic regression needs about a thousand judged passages before it is
better (Niculescu-Mizil and Caruana, 2005), has steps on which all logits are one, and says nothing beyond those seen;
the logistic curve rises strictly and is one half at exactly one logit, which is the zero point.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.calibration import Calibration, Point
from leadline.errors import DatasetError

# Ten cases a parameter is the usual least for a logistic fit (Peduzzi and others, 1996), and it has two.
FEWEST = 20
# Points of the curve that are kept: a run reads them.
KEPT_POINTS = 1000
# How far below the lowest logit the threshold lies that lets everything through.
BELOW = 0.01
STEPS = 100

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a question's context: its raw logit, and whether its source is judged relevant."""

    logit: float
    relevant: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A judged question and the passages that were found for it, best first."""

    query: str
    answerable: bool
    context: tuple[Passage, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether an answer would be: there is none in the documents, or the best passage isn't of a judged source."""
        return not (self.answerable and self.context and self.context[0].relevant)


def fit(asked: Sequence[Asked], *, dataset: str, generation: int) -> Calibration:
    """The calibration that the questions give. Raises DatasetError, with what is missing, where they can't give one."""
    passages = [passage for question in asked for passage in question.context]
    _check_enough(asked)
    logits = np.array([passage.logit for passage in passages], dtype=np.float64)
    relevant = np.array([passage.relevant for passage in passages], dtype=bool)
    slope, zero_point = platt(logits, relevant)
    if not slope > 0:
        raise DatasetError(
            "The reranker's logits don't rise with relevance on these questions, so no zero point can be trusted.",
            hint="Check that the judgements belong to these documents, or use another reranker.",
        )
    at_zero = point_at(asked, zero_point)
    if not at_zero.answered:
        raise DatasetError(
            f"No passage of these questions is more likely relevant than not (that would take a logit above "
            f"{zero_point:.2f}; the best is {logits.max():.2f}): nothing would ever be answered. Nothing was stored.",
            hint="Check that the judgements belong to these documents, or use another reranker.",
        )
    answerable = sum(question.answerable for question in asked)
    return Calibration(
        zero_point=zero_point,
        slope=slope,
        at_zero=at_zero,
        curve=thinned(risk_coverage(asked)),
        answerable=answerable,
        unanswerable=len(asked) - answerable,
        passages=len(passages),
        relevant=int(relevant.sum()),
        dataset=dataset,
        made=time.time(),
        generation=generation,
    )


def doubts(calibration: Calibration) -> list[str]:
    """What the questions were too few of for the figures to speak of it, in words."""
    if calibration.unanswerable >= FEWEST:
        return []
    return [
        f"{calibration.unanswerable} of the questions are unanswerable, and it takes at least {FEWEST}: the risk tells "
        "how often a wrong passage comes first, not how often a question is answered that the documents don't answer."
    ]


def platt(logits: Floats, relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and zero point of the logistic curve that fits best; the slope is 0 where the logits are all one.

    The targets are not 1 and 0 but what a rule of succession makes of the counts, so that the curve stays finite where
    a threshold parts them cleanly.
    """
    centre, spread = float(logits.mean()), float(logits.std())
    if spread == 0.0:
        return 0.0, centre
    positive = int(relevant.sum())
    high, low = (positive + 1) / (positive + 2), 1 / (len(logits) - positive + 2)
    slope, offset = _logistic((logits - centre) / spread, np.where(relevant, high, low))
    return slope / spread, centre - spread * offset / slope if slope else centre


def _logistic(x: Floats, targets: Floats) -> tuple[float, float]:
    """Slope and offset of least cross-entropy, by Newton's method with halved steps: the loss is convex."""
    design = np.column_stack([x, np.ones_like(x)])
    found = np.zeros(2)
    loss = _cross_entropy(design @ found, targets)
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-np.clip(design @ found, -500, 500)))
        gradient = design.T @ (likely - targets)
        curvature = design.T @ (design * (likely * (1 - likely))[:, None]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        while (after := _cross_entropy(design @ (found - step), targets)) > loss and np.abs(step).max() > 1e-12:
            step = step / 2
        if after > loss or np.abs(step).max() < 1e-10:
            break
        found, loss = found - step, after
    return float(found[0]), float(found[1])


def _cross_entropy(scores: Floats, targets: Floats) -> float:
    return float(np.sum(np.logaddexp(0.0, scores) - targets * scores))


def risk_coverage(asked: Iterable[Asked]) -> tuple[Point, ...]:
    """A point for each set of questions that some threshold answers, the highest threshold first.

    The thresholds lie half-way between two logits: what is as good as the last one answered is on its side. Questions
    for which nothing was found are never answered.
    """
    found = sorted((question.context[0].logit, question.is_wrong) for question in asked if question.context)[::-1]
    points: list[Point] = []
    wrong = 0
    for place, (logit, is_wrong) in enumerate(found, 1):
        wrong += is_wrong
        after = found[place][0] if place < len(found) else logit - 2 * BELOW
        if after < logit:
            points.append(Point((logit + after) / 2, place, wrong))
    return tuple(points)


def point_at(asked: Iterable[Asked], threshold: float) -> Point:
    """What is answered above the threshold, and how much of that is wrong."""
    answered = [question for question in asked if question.context and question.context[0].logit > threshold]
    return Point(threshold, len(answered), sum(question.is_wrong for question in answered))


def thinned(curve: Sequence[Point], keep: int = KEPT_POINTS) -> tuple[Point, ...]:
    """At most `keep` points, evenly from the whole curve, the first and the last among them."""
    if len(curve) <= keep:
        return tuple(curve)
    return tuple(curve[round(place * (len(curve) - 1) / (keep - 1))] for place in range(keep))


def _check_enough(asked: Sequence[Asked]) -> None:
    for relevant, what in ((True, "hold a passage of a judged source"), (False, "hold a passage of another source")):
        found = sum(any(passage.relevant is relevant for passage in question.context) for question in asked)
        if found < FEWEST:
            raise DatasetError(
                f"{len(asked)} questions were asked, and the best passages of {found} of them {what}; a calibration "
                f"takes at least {FEWEST}.",
                hint="Judge more questions, answerable ones and others.",
            )
