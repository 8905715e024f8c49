"""From judged questions to zero point, probabilities and the risk–coverage curve."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from leadline.calibration import Point
from leadline.errors import DatasetError
from leadline.evaluation.calibration import (
    FEWEST,
    Asked,
    Passage,
    doubts,
    fit,
    platt,
    point_at,
    risk_coverage,
    thinned,
)

LOGITS = st.integers(-4000, 4000).map(lambda n: n / 400)
JUDGED = st.lists(st.tuples(LOGITS, st.booleans()), min_size=2, max_size=60)


def question(*context: tuple[float, bool], answerable: bool = True) -> Asked:
    """A question whose best passages have these logits and judgements."""
    return Asked("q", answerable, tuple(Passage(logit, relevant) for logit, relevant in context))


def drawn(count: int, *, unanswerable: int = 0, apart: float = 2.0, seed: int = 3) -> list[Asked]:
    """Questions whose judged passage scores around `apart` / 2, the others as far below zero."""
    rng = np.random.default_rng(seed)
    asked = []
    for number in range(count + unanswerable):
        can = number < count
        relevant = [can, False, False]
        logits = [float(rng.normal(apart / 2 if hit else -apart / 2)) for hit in relevant]
        context = sorted(zip(logits, relevant, strict=True), reverse=True)
        asked.append(question(*context, answerable=can))
    return asked


def targets(relevant: Sequence[bool]) -> np.ndarray:
    """Platt's."""
    positive, total = sum(relevant), len(relevant)
    return np.where(relevant, (positive + 1) / (positive + 2), 1 / (total - positive + 2))


@given(JUDGED)
def test_the_logistic_curve_is_the_best_one(judged: list[tuple[float, bool]]) -> None:
    """Cross-entropy is convex, so the fit is the best exactly where both of its derivatives are zero."""
    logits = np.array([logit for logit, _ in judged])
    relevant = np.array([hit for _, hit in judged])
    assume(logits.std() > 0.01)
    slope, zero_point = platt(logits, relevant)
    assume(abs(slope) > 1e-9)
    likely = 1 / (1 + np.exp(-slope * (logits - zero_point)))
    error = likely - targets(list(relevant))
    assert abs(error.sum()) < 1e-6
    assert abs((error * (logits - logits.mean())).sum()) < 1e-5


def test_the_logistic_curve_is_that_of_another_library() -> None:
    """The same slope and zero point as scikit-learn's logistic regression without a penalty on the same targets."""
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(5)
    relevant = rng.random(300) < 0.3
    logits = rng.normal(np.where(relevant, 1.5, -0.5), 2.0)
    wanted = targets(list(relevant))
    model = linear.LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000)
    twice = np.concatenate([logits, logits])[:, None]
    labels = np.repeat([1, 0], len(logits))
    model.fit(twice, labels, sample_weight=np.concatenate([wanted, 1 - wanted]))
    slope, zero_point = platt(logits, relevant)
    assert slope == pytest.approx(float(model.coef_[0, 0]), rel=1e-3)
    assert zero_point == pytest.approx(float(-model.intercept_[0] / model.coef_[0, 0]), rel=1e-3)


@given(JUDGED, st.integers(-20, 20), st.integers(1, 16))
@settings(max_examples=60)
def test_another_scale_moves_the_zero_point_with_it(judged: list[tuple[float, bool]], shift: int, scale: int) -> None:
    """Logits shifted and stretched have the zero point shifted and stretched: the sign of each stays."""
    logits = np.array([logit for logit, _ in judged])
    relevant = np.array([hit for _, hit in judged])
    assume(logits.std() > 0.01)
    slope, zero_point = platt(logits, relevant)
    assume(abs(slope) > 1e-3)
    stretched_slope, stretched = platt(logits * scale + shift, relevant)
    assert stretched == pytest.approx(zero_point * scale + shift, rel=1e-4, abs=1e-4)
    assert stretched_slope * scale == pytest.approx(slope, rel=1e-4)


def test_what_a_threshold_parts_cleanly_stays_finite() -> None:
    """Perfect scores give a steep curve between the two kinds, not an endless one."""
    slope, zero_point = platt(np.array([-3.0, -2.0, 2.0, 3.0]), np.array([False, False, True, True]))
    assert 0 < slope < 10
    assert -2 < zero_point < 2
    assert platt(np.ones(5), np.array([True, False, True, False, True])) == (0.0, 1.0)


@given(st.lists(st.tuples(LOGITS, st.booleans(), st.booleans()), max_size=50))
def test_the_curve_is_what_its_thresholds_answer(rows: list[tuple[float, bool, bool]]) -> None:
    """Each point's counts are those of its threshold counted by hand; each set that can be answered is there once."""
    asked = [question((logit, relevant), answerable=can) for logit, relevant, can in rows] + [question()]
    curve = risk_coverage(asked)
    assert len(curve) == len({logit for logit, _, _ in rows})
    assert [point.threshold for point in curve] == sorted((p.threshold for p in curve), reverse=True)
    for point in curve:
        answered = [(relevant, can) for logit, relevant, can in rows if logit > point.threshold]
        assert point.answered == len(answered) > 0
        assert point.wrong == sum(not (relevant and can) for relevant, can in answered)
        assert point_at(asked, point.threshold) == point
    if rows:
        assert curve[-1].answered == len(rows)


def test_only_the_best_passage_is_the_answer() -> None:
    """A judged passage behind a better one that isn't counts as wrong; so does any answer to an unanswerable one."""
    assert not question((2.0, True), (1.0, False)).is_wrong
    assert question((2.0, False), (1.0, True)).is_wrong
    assert question((2.0, True), answerable=False).is_wrong
    assert question().is_wrong


@given(st.integers(1, 300), st.integers(2, 50))
def test_a_long_curve_is_thinned_evenly(count: int, keep: int) -> None:
    """At most so many points, in their order, the ends among them; a short one stays whole."""
    curve = [Point(-float(n), n, 0) for n in range(1, count + 1)]
    kept = thinned(curve, keep)
    assert len(kept) == len(set(kept)) == min(count, keep)
    assert list(kept) == sorted(kept, key=lambda point: point.answered)
    assert (kept[0], kept[-1]) == (curve[0], curve[-1])


def test_a_calibration_says_what_it_is_made_of() -> None:
    """Counts, the zero point between the two kinds of passages, what is answered there, and no doubt."""
    asked = drawn(200, unanswerable=100)
    made = fit(asked, dataset="set", generation=9)
    assert (made.answerable, made.unanswerable, made.passages, made.relevant) == (200, 100, 900, 200)
    assert (made.dataset, made.generation) == ("set", 9)
    assert -0.5 < made.zero_point < 1.5
    assert made.at_zero == point_at(asked, made.zero_point)
    assert made.at_zero.risk < made.curve[-1].risk
    assert doubts(made) == []


def test_probabilities_are_those_of_new_questions() -> None:
    """Passages of other questions whose probability is about a tenth, a half, nine tenths are relevant that often."""
    made = fit(drawn(400, unanswerable=200, seed=1), dataset="set", generation=0)
    new = [p for q in drawn(4000, unanswerable=2000, seed=2) for p in q.context]
    for wanted in (0.1, 0.5, 0.9):
        near = [passage.relevant for passage in new if abs(made.probability(passage.logit) - wanted) < 0.05]
        assert len(near) > 100
        assert abs(sum(near) / len(near) - wanted) < 0.08


def test_questions_without_unanswerable_ones_leave_a_doubt() -> None:
    """A calibration can be made, and it is said what its risk doesn't tell."""
    made = fit(drawn(60), dataset="set", generation=0)
    assert made.unanswerable == 0
    (doubt,) = doubts(made)
    assert doubt.startswith("0 of the questions are unanswerable")
    assert doubts(fit(drawn(60, unanswerable=3), dataset="set", generation=0))[0].startswith("3 of the questions")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (drawn(FEWEST - 1, unanswerable=60), f"at least {FEWEST}"),
        ([question((1.0, True))] * 60, "of another source"),
        (drawn(60, unanswerable=60, apart=-2.0), "don't rise with relevance"),
        ([question((1.0, False), (0.0, n % 2 == 0)) for n in range(60)], "don't rise with relevance"),
        (
            [question((n % 10 / 10, n % 10 == 9 and n % 3 == 0), *[(-1.0, False)] * 9) for n in range(900)],
            "nothing would ever be answered",
        ),
    ],
    ids=["few", "one kind", "upside down", "best is never right", "never likely"],
)
def test_questions_that_give_no_calibration_are_refused(asked: list[Asked], why: str) -> None:
    """Too few of a kind, logits that don't follow relevance, no passage that is likely: said, not worked around."""
    with pytest.raises(DatasetError, match=why):
        fit(asked, dataset="set", generation=0)
