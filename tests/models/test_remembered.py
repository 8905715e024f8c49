"""The reranker that knows its last answers, around the embedded one."""

from collections.abc import Sequence

import pytest

from leadline.errors import ModelUnavailable
from leadline.models import open_embedder, open_reranker
from leadline.models.base import Reranker
from leadline.models.remembered import Remembered

QUESTION = "When are roses pruned?"
PASSAGES = ["Roses are pruned in early spring.", "Tulips are planted in autumn."]


class Counted:
    """The embedded reranker, whose calls are counted, and which fails while it is `broken`."""

    def __init__(self) -> None:
        self._scorer: Reranker = open_reranker("embedded", open_embedder("embedded"))
        self.calls = 0
        self.broken = False

    @property
    def name(self) -> str:
        """The model's."""
        return self._scorer.name

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Counted."""
        self.calls += 1
        if self.broken:
            raise ModelUnavailable("gone")
        return self._scorer.score(question, passages)

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """Counted."""
        self.calls += 1
        return self._scorer.score_sentences(question, sentences)


@pytest.fixture(scope="module")
def scorer() -> Counted:
    """One for all tests here: it loads a model."""
    return Counted()


def test_the_same_question_and_passages_cost_one_call(scorer: Counted) -> None:
    """The second answer is the first one, and its list is the caller's own."""
    known, before = Remembered(scorer), scorer.calls
    first = known.score(QUESTION, PASSAGES)
    expected = list(first)
    first.clear()
    assert known.score(QUESTION, list(PASSAGES)) == expected
    assert scorer.calls == before + 1
    assert known.name == scorer.name


def test_what_differs_in_anything_is_scored(scorer: Counted) -> None:
    """Another question, order, cut between texts, or kind of score is another call."""
    known, before = Remembered(scorer), scorer.calls
    known.score(QUESTION, PASSAGES)
    swapped = known.score(QUESTION, PASSAGES[::-1])
    known.score(QUESTION, ["".join(PASSAGES)])
    known.score("When are tulips planted?", PASSAGES)
    known.score_sentences(QUESTION, PASSAGES)
    assert scorer.calls == before + 5
    assert swapped == pytest.approx(known.score(QUESTION, PASSAGES)[::-1], abs=1e-3)


def test_the_oldest_is_forgotten_first(scorer: Counted) -> None:
    """Memory is bounded: what was asked for last stays."""
    known, before = Remembered(scorer, kept=2), scorer.calls
    for question in ("one?", "two?", "one?", "three?", "one?", "two?"):
        known.score(question, PASSAGES[:1])
    assert scorer.calls == before + 4


def test_a_failure_is_not_remembered(scorer: Counted) -> None:
    """A call that failed is made again."""
    known = Remembered(scorer)
    scorer.broken = True
    with pytest.raises(ModelUnavailable):
        known.score(QUESTION, PASSAGES)
    scorer.broken = False
    assert len(known.score(QUESTION, PASSAGES)) == 2
