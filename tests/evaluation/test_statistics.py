"""Figures of judged questions against plain counting, and intervals that say how sure they are."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.evaluation.statistics import Floats, aurc, auroc, bootstrap, mean, share

# Few different scores, so that ties are common; minus infinity stands for "nothing was found".
scores = st.sampled_from([-math.inf, -2.5, -1.0, -0.5, 0.5, 1.0, 3.0])
questions = st.lists(st.tuples(scores, st.booleans(), st.integers(0, 3)), min_size=1, max_size=24)
Questions = list[tuple[float, bool, int]]


def columns(rows: Questions) -> tuple[Floats, np.ndarray, Floats]:
    """Scores, flags and one row of weights."""
    values, flags, weights = zip(*rows, strict=True)
    return np.array(values), np.array(flags), np.array([weights], dtype=np.float64)


def repeated(rows: Questions) -> Questions:
    """Each question as often as it weighs."""
    return [row for row in rows for _ in range(row[2])]


@given(questions)
def test_auroc_is_the_share_of_pairs_in_the_right_order(rows: Questions) -> None:
    """The same as counting every pair of a positive and a negative one, a tie as a half, weights as repetitions."""
    values, flags, weights = columns(rows)
    counted = repeated(rows)
    pairs = [(p, n) for (p, is_p, _), (n, is_n, _) in product(counted, counted) if is_p and not is_n]
    found = auroc(values, flags)(weights)[0]
    if not pairs:
        assert math.isnan(found)
        return
    right = sum(Fraction(1) if p > n else Fraction(1, 2) if p == n else Fraction(0) for p, n in pairs)
    assert found == pytest.approx(float(right / len(pairs)), abs=1e-12)


@given(questions)
def test_aurc_is_the_mean_risk_over_all_thresholds(rows: Questions) -> None:
    """The same as answering from each question's score on and averaging the shares of wrong answers."""
    values, flags, weights = columns(rows)
    counted = repeated(rows)
    if not counted:
        return
    risks = []
    for threshold, _, _ in counted:
        answered = [wrong for score, wrong, _ in counted if score >= threshold]
        risks.append(Fraction(sum(answered), len(answered)))
    assert aurc(values, flags)(weights)[0] == pytest.approx(float(sum(risks) / len(risks)), abs=1e-12)


def test_aurc_by_hand() -> None:
    """Right, wrong, right from the top: the mean of 0, 1/2 and 1/3; the order turned round makes it worse."""
    ones = np.ones((1, 3))
    wrong = np.array([False, True, False])
    assert aurc(np.array([3.0, 2.0, 1.0]), wrong)(ones)[0] == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
    assert aurc(np.array([2.0, 3.0, 1.0]), wrong)(ones)[0] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


@given(questions, st.randoms(use_true_random=False))
def test_the_order_of_questions_is_nothing_to_them(rows: Questions, shuffle: object) -> None:
    """Ties don't make a figure depend on which question came first."""
    turned = list(rows)
    shuffle.shuffle(turned)  # type: ignore[attr-defined]
    for statistic in (auroc, aurc):
        first, second = (
            statistic(values, flags)(np.ones_like(weights))[0]
            for values, flags, weights in map(columns, (rows, turned))
        )
        assert first == pytest.approx(second, nan_ok=True, abs=1e-12)


def test_every_row_of_weights_is_a_resample_of_its_own() -> None:
    """Many resamples at once give what each gives alone."""
    rng = np.random.default_rng(5)
    values, flags, weights = rng.normal(size=30), rng.random(30) < 0.4, rng.integers(0, 4, (50, 30)).astype(float)
    for statistic in (auroc(values, flags), aurc(values, flags), mean(values)):
        alone = [statistic(row[None, :])[0] for row in weights]
        assert statistic(weights) == pytest.approx(alone)


def test_a_bootstrap_is_repeatable_and_holds_the_value() -> None:
    """The same seed gives the same interval; another seed a slightly different one; the figure is not resampled."""
    values = np.random.default_rng(1).normal(size=80)
    first = bootstrap(mean(values), [80], seed=4)
    assert bootstrap(mean(values), [80], seed=4) == first
    assert bootstrap(mean(values), [80], seed=5)["low"] != first["low"]
    assert first["value"] == pytest.approx(values.mean())
    assert first["low"] < first["value"] < first["high"]


def test_an_interval_of_means_is_as_wide_as_theory_says() -> None:
    """For a mean the bootstrap comes near 1.96 standard errors either way, and narrows with the root of the number."""
    values = np.random.default_rng(2).normal(size=400)
    for n in (100, 400):
        found = bootstrap(mean(values[:n]), [n], seed=1)
        expected = 1.96 * values[:n].std() / math.sqrt(n)
        assert (found["high"] - found["low"]) / 2 == pytest.approx(expected, rel=0.1)


def test_each_kind_is_resampled_by_itself() -> None:
    """The shares of the two kinds were chosen: where they alone decide a figure, it has no spread."""
    kinds = np.array([1.0] * 30 + [0.0] * 70)
    apart, together = bootstrap(mean(kinds), [30, 70], seed=1), bootstrap(mean(kinds), [100], seed=1)
    assert (apart["low"], apart["high"]) == pytest.approx((0.3, 0.3))
    assert together["low"] < 0.25 < 0.35 < together["high"]


def test_large_sets_are_resampled_in_parts() -> None:
    """More questions than fit into one matrix of weights still give one interval of all resamples."""
    values = np.random.default_rng(3).normal(size=5000)
    found = bootstrap(mean(values), [5000], seed=1)
    assert (found["high"] - found["low"]) / 2 == pytest.approx(1.96 * values.std() / math.sqrt(5000), rel=0.1)


@pytest.mark.parametrize(
    ("true", "of", "low", "high"), [(0, 20, 0.0, 0.1611), (10, 20, 0.2993, 0.7007), (20, 20, 0.8389, 1.0)]
)
def test_a_share_has_wilsons_interval(true: int, of: int, low: float, high: float) -> None:
    """Published values; none of 20 may well be a tenth of all."""
    found = share(np.array([True] * true + [False] * (of - true)))
    assert (found["value"], found["low"], found["high"]) == pytest.approx((true / of, low, high), abs=1e-4)


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_a_share_lies_in_its_interval(flags: list[bool]) -> None:
    """Whatever the count, the value is between the bounds and they between 0 and 1."""
    found = share(np.array(flags))
    assert 0.0 <= found["low"] <= found["value"] <= found["high"] <= 1.0
