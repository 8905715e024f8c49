"""The same in other words, by the embedded model; and the opposites that no likeness excuses."""

from typing import Any

import pytest
import sentencex

from leadline.citations import MeaningByLikeness, check_answer
from leadline.errors import ModelUnavailable
from leadline.models.likeness import TokenLikeness
from leadline.models.minilm import MiniLM

HALDEN = "Halden Robotics was founded in 2011 by Mira Stone. Its plant in Narvik builds pumps for fishing boats."


@pytest.fixture(scope="module")
def meaning() -> MeaningByLikeness:
    """The real model."""
    return MeaningByLikeness(TokenLikeness(MiniLM()))


def grounding(answer: str, text: str, meaning: Any, question: str = "What about it?") -> str:
    """How an answer stands against one passage."""
    bounds = [(b["start_index"], b["end_index"]) for b in sentencex.get_sentence_boundaries("en", text)]
    metadata = {"chunk_id": "c", "doc_id": "d", "file_name": "f.md", "start_char": 0}
    document = {"content": text, "metadata": metadata, "score": 0.0, "source": "bm25", "rerank_score": 1.0}
    block: Any = {"n": 1, "chunk_id": "c", "sentences": [(a, b, text[a:b]) for a, b in bounds], "document": document}
    return check_answer(answer, [block], question, meaning=meaning).grounding


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Mira Stone established Halden Robotics [1].", HALDEN),
        ("Iqbal returned to Lahore in 1908 [1].", "Iqbal studied in England. He came back to Lahore in 1908."),
        ("The Broncos were the winner of Super Bowl 50 [1].", "The Broncos were led to victory in Super Bowl 50."),
        ("Mitsubishi renamed the Forte [1].", "Mitsubishi rebranded its Forte as the Dodge D-50."),
    ],
)
def test_other_words_of_the_same_meaning_pass(answer: str, text: str, meaning: Any) -> None:
    """Words alone don't carry these; with the model they are grounded."""
    assert grounding(answer, text, None) == "ungrounded"
    assert grounding(answer, text, meaning) == "grounded"
    assert grounding(answer.replace(" [1]", ""), text, meaning) == "grounded"


@pytest.mark.parametrize(
    "answer",
    [
        "Mira Stone acquired Halden Robotics [1].",
        "Mira Stone sold Halden Robotics [1].",
        "Mira Stone left Halden Robotics [1].",
        "Mira Stone never founded Halden Robotics [1].",
        "Halden Robotics was established in 2012 by Mira Stone [1].",
        "Halden Robotics was established in 2011 by Dana Fox [1].",
        "Halden's plant was destroyed by a storm [1].",
        "The plant paints ships [1].",
        'Mira Stone "set up the firm" in 2011 [1].',
    ],
)
def test_another_meaning_fails_with_the_model_too(answer: str, meaning: Any) -> None:
    """Other deeds, figures, names, negations and quotations stay wrong, however alike they look."""
    assert grounding(answer, HALDEN, meaning) == "ungrounded"


def test_without_the_model_the_rules_stand_alone() -> None:
    """A model that can't be had excuses nothing and breaks nothing."""

    def gone(sentence: str, places: Any) -> Any:
        raise ModelUnavailable("no weights")

    answer = "Mira Stone established Halden Robotics [1]."
    assert grounding(answer, HALDEN, MeaningByLikeness(gone)) == "ungrounded"
    assert grounding("Mira Stone founded Halden Robotics [1].", HALDEN, MeaningByLikeness(gone)) == "grounded"


def test_a_place_in_other_words_is_quoted_exactly(meaning: Any) -> None:
    """The citation is verified, and its quote is the sentence that means the same."""
    text = "Grapes are red. Iqbal came back to Lahore in 1908. He wrote there."
    bounds = [(0, 15), (16, 50), (51, 66)]
    document = {"content": text, "metadata": {"chunk_id": "c"}, "score": 0.0, "source": "bm25", "rerank_score": 1.0}
    block: Any = {"n": 3, "chunk_id": "c", "sentences": [(a, b, text[a:b]) for a, b in bounds], "document": document}
    check = check_answer("Iqbal returned to Lahore in 1908 [3].", [block], "When?", meaning=meaning)
    assert [(c["quote"], c["verified"]) for c in check.citations] == [("Iqbal came back to Lahore in 1908.", True)]


def test_likeness_of_a_text_with_itself_is_one() -> None:
    """The measure's upper end; an empty place is like nothing."""
    measure = TokenLikeness(MiniLM())
    same, empty = measure("Pumps are built in Narvik.", ["Pumps are built in Narvik.", ""])
    assert same.whole == pytest.approx(1.0, abs=1e-3)
    assert all(value == pytest.approx(1.0, abs=1e-3) for _, _, value in same.tokens)
    assert empty.whole == 0.0
    assert {value for _, _, value in empty.tokens} == {0.0}
