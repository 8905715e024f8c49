"""A calibration: what the logits of one reranker mean on one collection, and where its zero lies.

Knows what is kept of a calibration and which zero point follows from it. Pure, without numpy: every question asks.
How a calibration is made from judged questions is in `evaluation/calibration.py`.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

# Two-sided 95 %: the upper end alone is passed in 2.5 of 100 samples.
Z = 1.959964
# A share of fewer answers than this is chance, whatever it is.
FEWEST_ANSWERED = 10

Basis = Literal["none", "calibrated", "assured", "measured", "unreached"]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the risk–coverage curve: of the questions whose best passage is above `threshold`, how many are
    answered, and how many of those are wrong."""

    threshold: float
    answered: int
    wrong: int

    @property
    def risk(self) -> float:
        """The share of wrong among answered; NaN where nothing is answered."""
        return self.wrong / self.answered if self.answered else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the risk."""
        return wilson(self.wrong, self.answered)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Zero point and probabilities of a reranker on a collection, and the judged questions they come from.

    A passage is relevant with probability 1 / (1 + exp(-slope · (logit - zero_point))): above the zero point more
    likely than not. `curve` begins with the highest threshold. `generation` is that of the collection when it was made,
    `made` seconds since 1970.
    """

    zero_point: float
    slope: float
    at_zero: Point
    curve: tuple[Point, ...]
    answerable: int
    unanswerable: int
    passages: int
    relevant: int
    dataset: str
    made: float
    generation: int

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return self.answerable + self.unanswerable

    def probability(self, logit: float) -> float:
        """That a passage with this logit is relevant."""
        distance = self.slope * (logit - self.zero_point)
        if distance < 0:  # exp of a large positive number would overflow
            return math.exp(distance) / (1 + math.exp(distance))
        return 1 / (1 + math.exp(-distance))

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        curve = [[point.threshold, point.answered, point.wrong] for point in self.curve]
        return {**asdict(self), "curve": curve}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Calibration":
        """What `to_json` gave."""
        curve = tuple(Point(*point) for point in kept["curve"])
        return cls(**{**kept, "at_zero": Point(**kept["at_zero"]), "curve": curve})


@dataclass(frozen=True, slots=True)
class Zero:
    """The zero point in force: what is taken off every logit, what was measured there, and how it came about.

    `basis`: `none` there is no calibration; `calibrated` its own zero point; `assured` and `measured` the one that
    keeps to a largest share of wrong answers, by the upper end of the share's interval or as it was measured;
    `unreached` its own, since no threshold keeps to that share. `warning` says what was asked for and isn't had.
    """

    value: float
    basis: Basis
    point: Point | None = None
    warning: str = ""

    @property
    def strict(self) -> bool:
        """Whether a share of wrong answers is kept to, which holds only for answers from passages above the zero."""
        return self.basis in ("assured", "measured")


def zero_of(calibration: Calibration | None, max_wrong: float | None) -> Zero:
    """The zero point that follows from a calibration, if there is one, and the setting `max_wrong`, if it is set.

    With `max_wrong` it is the lowest threshold at which the upper end of the 95 % Wilson interval of the share of wrong
    among answered is at most that. Of questions too few for any threshold to pass in that way, even without one wrong
    answer, the share counts as it was measured.
    """
    if calibration is None:
        return Zero(0.0, "none", warning=_UNCALIBRATED.format(_percent(max_wrong)) if max_wrong is not None else "")
    own = Zero(calibration.zero_point, "calibrated", calibration.at_zero)
    if max_wrong is None:
        return own
    can_be_assured = wilson(0, calibration.questions)[1] <= max_wrong
    for point in reversed(calibration.curve):  # the lowest threshold first
        if point.answered < FEWEST_ANSWERED:
            break
        if (point.interval[1] if can_be_assured else point.risk) <= max_wrong:
            return Zero(point.threshold, "assured" if can_be_assured else "measured", point)
    return Zero(own.value, "unreached", own.point, _UNREACHED.format(_percent(max_wrong)))


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson, 1927), which holds for small numbers too; 0 to 1 without tries."""
    if not tries:
        return 0.0, 1.0
    share, square = hits / tries, Z * Z / tries
    centre = share + square / 2
    spread = math.sqrt(square * (share * (1 - share) + square / 4))
    low, high = (centre - spread) / (1 + square), (centre + spread) / (1 + square)
    return max(0.0, min(share, low)), min(1.0, max(share, high))  # rounding may put an end on the wrong side


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.3g}%"


_UNCALIBRATED = (
    "At most {} of the answers may be wrong (max_wrong), but the collection has no calibration for this reranker, so "
    "nothing is known of that: `leadline calibrate DIR` makes one."
)
_UNREACHED = (
    "At most {} of the answers may be wrong (max_wrong), and no threshold reaches that on the calibration's questions: "
    "the calibrated zero point stays."
)
