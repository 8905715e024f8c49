"""Measures whole answers on judged questions: found, cited, abstained from, or wrong.

Knows what makes an answer right and how a question is put to the graph. A run that fails in whatever way is a failure
in every share, never one question less.
"""

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from leadline.evaluation.statistics import Estimate, bootstrap, mean, share
from leadline.records import Flag, Result

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
# figures of which less is better
COSTS = frozenset({"failed", "wrong", "abstained_wrongly", "warned_wrongly", "seconds"})
# flags that tell a reader to check the answer
_DOUBTS: frozenset[Flag] = frozenset({"weak_evidence", "unverified", "unranked"})
_MARKS = re.compile(r"\[\d+(?:\s*[,-]\s*\d+)*\]")


@dataclass(frozen=True, slots=True)
class Asked:
    """A judged question. `gold` are the answers that are right, empty where only sources are judged."""

    query: str
    text: str
    answerable: bool
    gold: tuple[str, ...]
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question. `doubted`: its answer came with a flag that says so.

    `failed`: the run broke, or its answer can't be scored.
    """

    answerable: bool
    answered: bool = False
    abstained: bool = False
    doubted: bool = False
    failed: bool = False
    right: bool = False
    exact: bool = False
    f1: float = 0.0
    cited_rightly: bool = False
    seconds: float = 0.0


class Answers(TypedDict):
    """The figures of one way of asking. Shares are of all questions of their kind; None where there are none.

    `right`: a gold answer stands in the answer, or, without gold answers, it cites only relevant sources. `exact` and
    `f1` compare the whole text with the best gold answer, so that sentences score low. `cited_rightly`: with at least
    one citation, each of a relevant source. `warned`: abstained, or answered with a doubt. `wrong`: answered, and not
    right, over all questions. `accuracy`: right or rightly abstained, over all.
    """

    questions: int
    answerable: int
    unanswerable: int
    failed: int
    right: Estimate | None
    exact: Estimate | None
    f1: Estimate | None
    cited_rightly: Estimate | None
    abstained_wrongly: Estimate | None
    abstained_rightly: Estimate | None
    warned_wrongly: Estimate | None
    warned_rightly: Estimate | None
    wrong: Estimate
    accuracy: Estimate
    seconds: float


def outcome(asked: Asked, result: Result | Mapping[str, Any], seconds: float) -> Outcome:
    """The outcome of one run."""
    status = result["status"]
    if status == "abstained":
        return Outcome(asked.answerable, abstained=True, seconds=seconds)
    if status != "answered" or not result["answer"].strip():
        return Outcome(asked.answerable, failed=True, seconds=seconds)
    f1 = best_f1(result["answer"], asked.gold)
    if not math.isfinite(f1):
        return Outcome(asked.answerable, failed=True, seconds=seconds)
    cited = {str(citation["doc_id"]) for citation in result["citations"]}
    cited_rightly = bool(cited) and cited <= asked.relevant
    return Outcome(
        asked.answerable,
        answered=True,
        doubted=not _DOUBTS.isdisjoint(result["flags"]),
        right=asked.answerable and (holds(result["answer"], asked.gold) if asked.gold else cited_rightly),
        exact=any(normalised(result["answer"]) == normalised(gold) for gold in asked.gold),
        f1=f1,
        cited_rightly=cited_rightly,
        seconds=seconds,
    )


def figures(outcomes: Sequence[Outcome], *, seed: int) -> Answers:
    """The figures of at least one question."""
    answerable = [one for one in outcomes if one.answerable]
    others = [one for one in outcomes if not one.answerable]
    f1 = np.array([one.f1 for one in answerable])
    return Answers(
        questions=len(outcomes),
        answerable=len(answerable),
        unanswerable=len(others),
        failed=sum(one.failed for one in outcomes),
        right=_share([one.right for one in answerable]),
        exact=_share([one.exact for one in answerable]),
        f1=bootstrap(mean(f1), [len(f1)], seed=seed) if answerable else None,
        cited_rightly=_share([one.cited_rightly for one in answerable]),
        abstained_wrongly=_share([one.abstained for one in answerable]),
        abstained_rightly=_share([one.abstained for one in others]),
        warned_wrongly=_share([one.abstained or one.doubted for one in answerable]),
        warned_rightly=_share([one.abstained or one.doubted for one in others]),
        wrong=share(np.array([one.answered and not one.right for one in outcomes])),
        accuracy=share(np.array([_good(one) for one in outcomes])),
        seconds=sum(one.seconds for one in outcomes) / len(outcomes),
    )


def gained(outcomes: Sequence[Outcome], others: Sequence[Outcome], *, seed: int) -> Estimate:
    """How much more accurate `outcomes` are than `others` of the same questions: a paired bootstrap."""
    differences = np.array([float(_good(a)) - float(_good(b)) for a, b in zip(outcomes, others, strict=True)])
    return bootstrap(mean(differences), [len(differences)], seed=seed)


def below(found: Mapping[str, Any], least: Mapping[str, float]) -> dict[str, float | None]:
    """The figures that miss their least value, and what they are. One that can't be told misses it too.

    Of COSTS the value is the most there may be.
    """
    missed: dict[str, float | None] = {}
    for name, bound in least.items():
        value = found[name]["value"] if isinstance(found.get(name), Mapping) else found.get(name)
        good = value is not None and (value <= bound if name in COSTS else value >= bound)
        if not good:
            missed[name] = value
    return missed


def _good(one: Outcome) -> bool:
    return one.right if one.answerable else one.abstained


def _share(flags: Sequence[bool]) -> Estimate | None:
    return share(np.array(flags)) if flags else None


def normalised(text: str) -> str:
    """As SQuAD's evaluation compares answers: no case, punctuation, articles nor marks of citation."""
    text = _MARKS.sub(" ", unicodedata.normalize("NFKC", text)).lower()
    text = "".join(" " if char in string.punctuation else char for char in text)
    return " ".join(_ARTICLES.sub(" ", text).split())


def holds(answer: str, gold: Sequence[str]) -> bool:
    """Whether one of the gold answers stands in the answer, as whole words."""
    said = f" {normalised(answer)} "
    return any(wanted and f" {wanted} " in said for wanted in map(normalised, gold))


def best_f1(answer: str, gold: Sequence[str]) -> float:
    """Overlap of words with the nearest gold answer (harmonic mean of precision and recall); 0.0 without one."""
    return max((_f1(normalised(answer).split(), normalised(one).split()) for one in gold), default=0.0)


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    shared = sum((Counter(said) & Counter(wanted)).values())
    return 2 * shared / (len(said) + len(wanted)) if shared else 0.0
