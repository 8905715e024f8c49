"""The retrieval metrics, against figures computed by hand and against properties that always hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.evaluation.metrics import ndcg, recall, reciprocal_rank

ids = st.sampled_from([f"d{n}" for n in range(12)])
rankings = st.lists(ids, max_size=12, unique=True)
judgements = st.dictionaries(ids, st.integers(0, 3)).filter(lambda grades: any(grades.values()))
depths = st.integers(1, 15)


def test_ndcg_by_hand() -> None:
    """Grades 3 and 1 found at places 1 and 3 of an ideal 3, 1: (3 + 1/2) / (3 + 1/log2 3)."""
    expected = (3 / math.log2(2) + 1 / math.log2(4)) / (3 / math.log2(2) + 1 / math.log2(3))
    assert ndcg(["a", "x", "b"], {"a": 3, "b": 1}, 10) == pytest.approx(expected)
    assert expected == pytest.approx(0.963940, abs=1e-6)


def test_ndcg_gain_is_linear() -> None:
    """A grade of 2 counts twice a grade of 1, not three times as with an exponential gain."""
    assert ndcg(["low", "high"], {"low": 1, "high": 2}, 2) == pytest.approx(
        (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    )


def test_ndcg_cuts_the_ideal_ranking_too() -> None:
    """With more relevant documents than places, filling every place is perfect."""
    assert ndcg(["a"], {"a": 1, "b": 1, "c": 1}, 1) == 1.0


def test_recall_by_hand() -> None:
    """Two of three relevant documents stand among the first three."""
    grades = {"a": 1, "b": 1, "c": 1}
    assert recall(["a", "x", "b", "c"], grades, 3) == pytest.approx(2 / 3)
    assert recall([], grades, 3) == 0.0


def test_reciprocal_rank_by_hand() -> None:
    """The first relevant document stands at place 4; with none the value is 0."""
    assert reciprocal_rank(["x", "y", "z", "a"], {"a": 1}) == 0.25
    assert reciprocal_rank(["x"], {"a": 1}) == 0.0


def test_a_repeated_id_counts_once() -> None:
    """Chunks of one document listed twice neither score twice nor push others out of the cut."""
    assert recall(["a", "a", "b"], {"a": 1, "b": 1}, 2) == 1.0
    assert ndcg(["a", "a"], {"a": 1, "b": 1}, 2) < 1.0


def test_nothing_relevant_is_an_error() -> None:
    """A query without a relevant document can't be measured, so it can't be averaged in silently."""
    with pytest.raises(ValueError, match="no document is relevant"):
        ndcg(["a"], {"a": 0}, 10)


@given(rankings, judgements, depths)
def test_all_values_are_between_0_and_1(ranked: list[str], grades: dict[str, int], k: int) -> None:
    """Whatever the ranking, every metric is a share."""
    for value in (ndcg(ranked, grades, k), recall(ranked, grades, k), reciprocal_rank(ranked, grades)):
        assert 0.0 <= value <= 1.0 + 1e-12


@given(judgements, depths)
def test_the_ideal_ranking_is_perfect(grades: dict[str, int], k: int) -> None:
    """Documents ordered by grade give nDCG 1 and MRR 1."""
    ideal = sorted(grades, key=lambda document: -grades[document])
    assert ndcg(ideal, grades, k) == pytest.approx(1.0)
    assert reciprocal_rank(ideal, grades) == 1.0


@given(rankings, judgements, depths)
def test_recall_never_falls_with_depth(ranked: list[str], grades: dict[str, int], k: int) -> None:
    """Looking further down a ranking can't lose a relevant document."""
    assert recall(ranked, grades, k) <= recall(ranked, grades, k + 1)


@given(rankings, judgements, depths, st.data())
def test_moving_a_relevant_document_up_never_hurts(
    ranked: list[str], grades: dict[str, int], k: int, data: st.DataObject
) -> None:
    """Swapping a document with a better one behind it never lowers nDCG."""
    if len(ranked) < 2:
        return
    first = data.draw(st.integers(0, len(ranked) - 2))
    second = data.draw(st.integers(first + 1, len(ranked) - 1))
    if grades.get(ranked[second], 0) <= grades.get(ranked[first], 0):
        return
    swapped = list(ranked)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    assert ndcg(swapped, grades, k) >= ndcg(ranked, grades, k) - 1e-12
