"""What a calibration says of a logit, and which zero point follows from it and from the largest share of wrong."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.calibration import FEWEST_ANSWERED, Calibration, Point, Zero, wilson, zero_of


def calibration(*curve: tuple[float, int, int], zero_point: float = 0.5, slope: float = 2.0) -> Calibration:
    """One with this curve, (threshold, answered, wrong), over as many questions as its last point answers."""
    points = tuple(Point(*point) for point in curve)
    total = points[-1].answered
    return Calibration(zero_point, slope, points[-1], points, total, 0, 5 * total, total, "set", 1.5, 7)


def falling(total: int, wrong_in: int) -> Calibration:
    """Of `total` questions, the threshold falling by one each, every `wrong_in`-th is wrong in the lower half."""
    lower = total // 2
    return calibration(*((float(-n), n, max(0, n - lower) // wrong_in) for n in range(1, total + 1)))


@given(st.integers(0, 400), st.integers(0, 400))
def test_an_interval_holds_its_share(hits: int, more: int) -> None:
    """Whatever the numbers, the interval is within 0 and 1 and around the share; without any it says nothing."""
    low, high = wilson(hits, hits + more)
    assert 0 <= low <= high <= 1
    if hits + more:
        assert low <= hits / (hits + more) <= high
    else:
        assert (low, high) == (0, 1)


def test_an_interval_is_the_known_one() -> None:
    """Known values of Wilson's interval: 81 of 263 (Newcombe, 1998) and none of 20."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_probability_rises_with_the_logit(one: float, other: float, slope: float) -> None:
    """Never falls, stays within 0 and 1, is one half at the zero point and above it more than that."""
    made = calibration((0.0, 20, 1), zero_point=0.25, slope=slope)
    low, high = sorted((one, other))
    assert 0 <= made.probability(low) <= made.probability(high) <= 1
    assert made.probability(0.25) == 0.5
    assert (made.probability(one) > 0.5) == (one > 0.25) or math.isclose(one, 0.25, abs_tol=1e-9)


def test_what_is_kept_comes_back() -> None:
    """JSON and back is the same calibration."""
    made = falling(40, 3)
    assert Calibration.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_without_a_calibration_nothing_is_shifted() -> None:
    """The model's own zero, without a word; with `max_wrong` set it is said that nothing is known."""
    assert zero_of(None, None) == Zero(0.0, "none")
    asked = zero_of(None, 0.1)
    assert (asked.value, asked.basis) == (0.0, "none")
    assert "10%" in asked.warning
    assert "leadline calibrate" in asked.warning


def test_without_a_largest_share_the_even_chance_counts() -> None:
    """The calibration's own zero point, with what was measured there."""
    made = falling(40, 3)
    assert zero_of(made, None) == Zero(0.5, "calibrated", made.at_zero)


@pytest.mark.parametrize("max_wrong", [0.05, 0.1, 0.2, 0.3])
def test_the_lowest_threshold_that_is_sure_enough_is_taken(max_wrong: float) -> None:
    """The upper end of the interval there is at most the share, and at every lower threshold it is more."""
    made = falling(1000, 2)
    zero = zero_of(made, max_wrong)
    assert (zero.basis, zero.warning) == ("assured", "")
    assert zero.point is not None
    assert zero.point.interval[1] <= max_wrong
    assert all(point.interval[1] > max_wrong for point in made.curve if point.threshold < zero.value)


def test_a_share_that_questions_are_too_few_for_counts_as_measured() -> None:
    """Of 40 questions even none wrong can't assure 5 %: the measured share decides, and the basis says so."""
    made = falling(40, 2)
    zero = zero_of(made, 0.05)
    assert zero.basis == "measured"
    assert zero.point is not None
    assert zero.point.risk <= 0.05 < zero.point.interval[1]
    assert all(point.risk > 0.05 for point in made.curve if point.threshold < zero.value)


def test_a_few_lucky_answers_are_no_threshold() -> None:
    """Where only the first answers are free of wrong ones, no threshold keeps to the share: the even chance stays, and
    it is said."""
    lucky = [(float(-n), n, 0) for n in range(1, FEWEST_ANSWERED)]
    made = calibration(*lucky, *((float(-n), n, n // 2) for n in range(FEWEST_ANSWERED, 41)))
    zero = zero_of(made, 0.05)
    assert (zero.value, zero.basis, zero.point) == (0.5, "unreached", made.at_zero)
    assert "no threshold" in zero.warning


def test_a_share_that_many_questions_never_keep_to_is_said() -> None:
    """With questions enough to be sure, a share that is met only as measured isn't reached."""
    made = calibration(*((float(-n), n, n // 12) for n in range(1, 101)))
    assert zero_of(made, 0.09).basis == "unreached"
