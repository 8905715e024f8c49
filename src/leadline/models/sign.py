"""What makes the sign of a reranker's score mean something: the probe, and the two numbers that a score may not be."""

import math
from collections.abc import Callable, Sequence

from leadline.errors import RerankerRefused

Score = Callable[[str, Sequence[str]], list[float]]

# A question, a passage that answers it, and one that nobody could take for an answer.
PROBES = (
    (
        "How long may the pump run dry?",
        "The pump may run dry for at most thirty seconds; longer dry running destroys its seal.",
        "The violin sonata closes with a slow movement in a minor key.",
    ),
    (
        "What is the capital of France?",
        "Paris is the capital and the largest city of France.",
        "Fold the egg whites into the batter and bake it for forty minutes.",
    ),
)


def check_sign(name: str, score: Score, zero_point: float = 0.0) -> None:
    """Raises RerankerRefused unless answers are above and absurd passages below `zero_point`.

    `score` gives the raw logits, since probabilities look like logits once a zero point is taken off.
    """
    answers, absurd = [], []
    for question, answer, nonsense in PROBES:
        scores = score(question, [answer, nonsense])
        answers.append(scores[0])
        absurd.append(scores[1])
    seen = f"answers {show(answers)}, absurd passages {show(absurd)}, zero point {zero_point:.2f}"
    hint = "Name a cross-encoder with one raw logit as output, or set the reranker to `embedded`."
    if not all(map(math.isfinite, answers + absurd)):
        raise RerankerRefused(f"The reranker {name} gives scores that are not numbers: {seen}.", hint=hint)
    if all(0.0 <= value <= 1.0 for value in answers + absurd):
        raise RerankerRefused(f"The reranker {name} gives probabilities, which have no sign: {seen}.", hint=hint)
    if min(answers) <= zero_point or max(absurd) >= zero_point:
        raise RerankerRefused(f"The sign of the reranker {name} can't be trusted: {seen}.", hint=hint)


def signed(logit: float) -> float:
    """`logit` as a plain float that is never 0.0, which means not scored; NaN for whatever isn't finite."""
    value = float(logit)
    if not math.isfinite(value):
        return math.nan
    return value or math.copysign(math.nextafter(0.0, 1.0), value)


def show(scores: Sequence[float]) -> str:
    """Scores as a person reads them."""
    return " and ".join(f"{score:.2f}" for score in scores)
