"""What makes an answer right, and the figures, by hand."""

import math
from typing import Any

import pytest

from leadline.evaluation import answers
from leadline.evaluation.answers import Asked, Outcome, below, best_f1, figures, holds, normalised, outcome

ASKED = Asked("q", "When?", True, ("early spring", "March"), frozenset({"roses"}))


def result(answer: str, *cited: str, status: str = "answered", flags: tuple[str, ...] = ()) -> Any:
    """A result with these sources cited."""
    return {"status": status, "answer": answer, "citations": [{"doc_id": doc} for doc in cited], "flags": [*flags]}


def test_answers_are_compared_as_squad_does() -> None:
    """No case, punctuation, articles or marks of citation; words count whole."""
    assert normalised("The Early  spring, [1] then. [2, 3]") == "early spring then"
    assert holds("In early spring [1].", ["Early Spring"])
    assert not holds("In early springtime.", ["early spring"])
    assert not holds("Anything.", [])
    assert best_f1("early spring", ["March", "early spring"]) == 1.0
    assert best_f1("in early spring", ["early spring"]) == pytest.approx(0.8)
    assert best_f1("never", ["early spring"]) == best_f1("x", []) == 0.0


def test_an_answer_is_right_by_its_text_and_cited_rightly_by_its_sources() -> None:
    """One source that isn't relevant is enough for a wrong citation, and no citation is none."""
    good = outcome(ASKED, result("Early spring [1].", "roses"), 1.0)
    assert (good.right, good.cited_rightly, good.exact) == (True, True, True)
    assert not outcome(ASKED, result("Early spring.", "roses", "bread"), 1.0).cited_rightly
    assert not outcome(ASKED, result("Early spring."), 1.0).cited_rightly
    assert not outcome(ASKED, result("In May [1].", "roses"), 1.0).right


def test_without_gold_answers_the_sources_decide() -> None:
    """Many sets judge sources only."""
    asked = Asked("q", "When?", True, (), frozenset({"roses"}))
    assert outcome(asked, result("In May.", "roses"), 1.0).right
    assert not outcome(asked, result("In May.", "bread"), 1.0).right


def test_an_unanswerable_question_is_never_answered_right() -> None:
    """Whatever is said."""
    asked = Asked("q", "When?", False, (), frozenset())
    assert not outcome(asked, result("Early spring.", "roses"), 1.0).right
    assert outcome(asked, result("No.", status="abstained"), 1.0).abstained


@pytest.mark.parametrize(("flag", "doubted"), [("weak_evidence", True), ("unverified", True), ("shortened", False)])
def test_an_answer_with_a_doubt_is_told_from_a_plain_one(flag: str, doubted: bool) -> None:
    """A sentence that was left out says nothing against the others."""
    assert outcome(ASKED, result("Early spring.", flags=(flag,)), 1.0).doubted is doubted


@pytest.mark.parametrize("status", ["error", "interrupted", "answered"])
def test_what_broke_or_said_nothing_is_a_failure(status: str) -> None:
    """Not an abstention, and not one question less."""
    assert outcome(ASKED, result(" ", status=status), 1.0).failed


def test_a_score_that_is_no_number_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would make the mean of all the others disappear."""
    monkeypatch.setattr(answers, "best_f1", lambda *_: math.nan)
    assert outcome(ASKED, result("Early spring.", "roses"), 1.0) == Outcome(True, failed=True, seconds=1.0)


def test_figures_by_hand() -> None:
    """Shares are of all questions of their kind, those that failed too."""
    found: Any = figures(
        [
            Outcome(True, answered=True, right=True, cited_rightly=True, exact=True, f1=1.0, seconds=2.0),
            Outcome(True, answered=True, doubted=True, f1=0.5),
            Outcome(True, abstained=True),
            Outcome(True, failed=True),
            Outcome(False, abstained=True),
            Outcome(False, answered=True),
        ],
        seed=1,
    )
    values = {name: part["value"] for name, part in found.items() if isinstance(part, dict)}
    assert values == {
        "right": 1 / 4,
        "exact": 1 / 4,
        "f1": pytest.approx(1.5 / 4),
        "cited_rightly": 1 / 4,
        "abstained_wrongly": 1 / 4,
        "abstained_rightly": 1 / 2,
        "warned_wrongly": 2 / 4,
        "warned_rightly": 1 / 2,
        "wrong": 2 / 6,
        "accuracy": 2 / 6,
    }
    assert (found["questions"], found["failed"]) == (6, 1)
    assert all(part["low"] <= part["value"] <= part["high"] for part in found.values() if isinstance(part, dict))


def test_a_set_of_one_kind_has_no_figures_of_the_other() -> None:
    """None, never 0 and never 1; a least value for such a figure is missed."""
    found = figures([Outcome(True, answered=True, right=True)], seed=1)
    assert found["abstained_rightly"] is None
    assert below(found, {"abstained_rightly": 0.0}) == {"abstained_rightly": None}
    assert below(found, {"right": 1.0, "failed": 0, "wrong": 0.0}) == {}
    for cost in ("failed", "wrong", "abstained_wrongly", "warned_wrongly", "seconds"):
        assert below({cost: {"value": 0.5}}, {cost: 0.6}) == {}
        assert below({cost: {"value": 0.5}}, {cost: 0.4}) == {cost: 0.5}
    assert below({"right": {"value": math.nan}}, {"right": 0.0}).keys() == {"right"}
