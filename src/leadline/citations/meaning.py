"""Whether a place says the same as a sentence in other words: what rules over words can't tell.

Knows two likenesses and their weights; whoever measures them comes from outside. Says nothing of figures, names, dates,
negations, opposites and quotations: those have rules that no likeness excuses.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from leadline.citations.rules import missing_terms, said_terms, terms_of
from leadline.errors import ModelError

# Logistic, fitted on the sentences of half of the articles that fail for their words alone; see docs/citations.md.
WHOLE, WORDS, INTERCEPT = 5.0, 9.2, -7.4
# Where a place has none of the words that say something, only names and figures, likeness must carry all of it.
NOTHING_SAID = 1.0
_WORD = re.compile(r"[^\W_][\w'’-]*")


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near a sentence comes to a place: `whole` by its tokens' weights, and each token by itself.

    `tokens` are (start, end, likeness) of the sentence's tokens; likenesses are cosines, 1 is the same.
    """

    whole: float
    tokens: tuple[tuple[int, int, float], ...]


MeasureLikeness = Callable[[str, Sequence[str]], list[Likeness]]


class Meaning(Protocol):
    """How well each place says what the sentence says: above 0 where it does."""

    def __call__(self, sentence: str, places: Sequence[str]) -> list[float]: ...


class MeaningByLikeness:
    """Meaning by the likeness of the whole and of the very words that the place lacks.

    Where no likeness can be measured nothing is excused: the rules stand alone.
    """

    def __init__(self, measure: MeasureLikeness) -> None:
        self._measure = measure

    def __call__(self, sentence: str, places: Sequence[str]) -> list[float]:
        try:
            likenesses = self._measure(sentence, places)
        except ModelError:
            return [-1.0] * len(places)
        said = said_terms(sentence)
        return [
            _logit(sentence, said, missing_terms(said, place), found)
            for found, place in zip(likenesses, places, strict=True)
        ]


def _logit(sentence: str, said: Sequence[str], missing: Sequence[str], found: Likeness) -> float:
    logit = WHOLE * found.whole + WORDS * _of_missing(sentence, missing, found) + INTERCEPT
    return logit - NOTHING_SAID if len(missing) == len(said) else logit


def _of_missing(sentence: str, missing: Sequence[str], found: Likeness) -> float:
    """The mean likeness of the words that the place lacks, 1 where it lacks none."""
    lacking = frozenset(missing)
    words = [m.span() for m in _WORD.finditer(sentence) if not lacking.isdisjoint(terms_of(m.group()))]
    likenesses = [_mean([value for a, b, value in found.tokens if a < end and b > start]) for start, end in words]
    return _mean(likenesses) if likenesses else 1.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
