"""The embedded reranker: its sign on clear pairs, on long texts, and at its edges."""

import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import ModelUnavailable, RerankerRefused
from leadline.models import features, open_reranker
from leadline.models.evidence import ASKING, WEIGHTS, EvidenceScorer, focuses
from leadline.models.features import TermWeights
from leadline.models.minilm import MiniLM
from leadline.models.sign import check_sign, signed
from leadline.models.windows import cut

FILLER = (
    "The museum opened a new wing for textiles in spring. Visitors walk through six rooms of woven cloth. "
    "The oldest piece is a fragment of linen. Guides offer tours on Sundays. "
)
ANSWER = "The warranty of the Corvus pump ends after eighteen months of operation."
QUESTION = "When does the warranty of the Corvus pump end?"


@pytest.fixture(scope="module")
def scorer() -> EvidenceScorer:
    """One loaded scorer for the module."""
    return EvidenceScorer(MiniLM())


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (QUESTION, ANSWER),
        ("Who wrote the annual report?", "The annual report was written by Dana Fox and printed in May."),
        ("what is the vault code", "The vault code is 7719."),
        ("How high is the interest rate on savings?", "Savings accounts earn interest at a rate of 4 % a year."),
        ("What does error ERR-4021 mean?", "ERR-4021: the sensor lost its connection. Check the cable."),
        ("Where is the head office of Acme Corp?", "Acme Corp has its head office in Utrecht, near the station."),
    ],
)
def test_the_sign_tells_an_answer_from_another_topic(scorer: EvidenceScorer, question: str, answer: str) -> None:
    """Passages and sentences that answer are above zero, those about something else below."""
    for score in (scorer.score, scorer.score_sentences):
        right, wrong = score(question, [answer, FILLER])
        assert right > 0.0 > wrong
        assert type(right) is float


def test_the_last_sentence_of_a_long_passage_counts(scorer: EvidenceScorer) -> None:
    """An answer at the end of 900 tokens is found; without it the passage stays below zero."""
    filler = FILLER * 27
    assert len(MiniLM().token_spans(filler)) > 900
    with_answer, without = scorer.score(QUESTION, [filler + ANSWER, filler])
    assert with_answer > 0.0 > without


def test_a_long_question_is_scored_by_what_it_asks(scorer: EvidenceScorer) -> None:
    """A story of 300 tokens before the question doesn't drown it."""
    story = (
        "Last week our basement was flooded after heavy rain and the neighbours helped us carry everything out. " * 16
    )
    assert len(MiniLM().token_spans(story)) > 280
    right, wrong = scorer.score(story + QUESTION, [ANSWER, FILLER])
    assert right > 0.0 > wrong


def test_the_best_window_and_the_order_decide(scorer: EvidenceScorer) -> None:
    """Scores come in the order given, whatever the lengths, and equal texts score equally."""
    passages = [FILLER, ANSWER, FILLER * 10 + ANSWER, "", ANSWER]
    scores = scorer.score(QUESTION, passages)
    assert scores[1] == scores[4]
    assert scores == [scorer.score(QUESTION, [passage])[0] for passage in passages]
    assert all(score != 0.0 for score in scores)
    assert scorer.score(QUESTION, []) == []


def test_a_new_scorer_gives_the_same_scores(scorer: EvidenceScorer) -> None:
    """Nothing is learnt from what was scored before."""
    assert EvidenceScorer(MiniLM()).score(QUESTION, [ANSWER, FILLER]) == scorer.score(QUESTION, [ANSWER, FILLER])


def test_a_zero_point_is_taken_off(scorer: EvidenceScorer) -> None:
    """A calibrated zero point shifts the passages' logits."""
    shifted = EvidenceScorer(MiniLM(), zero_point=0.25).score(QUESTION, [ANSWER])[0]
    assert shifted == pytest.approx(scorer.score(QUESTION, [ANSWER])[0] - 0.25)


@pytest.mark.parametrize("question", ["", "?!", "who is it", "本社はいつ移転した？", "\ud800", "x" * 5000])
def test_odd_questions_have_finite_scores(scorer: EvidenceScorer, question: str) -> None:
    """Empty, wordless, foreign and endless questions get a number for every passage."""
    assert all(math.isfinite(score) for score in scorer.score(question, [ANSWER, "", "東京の本社は2019年に移転した"]))


def test_an_empty_question_finds_nothing(scorer: EvidenceScorer) -> None:
    """What asks nothing is answered by nothing."""
    assert scorer.score("", [ANSWER])[0] < 0.0


@pytest.mark.parametrize("question", ["🙂", "?!", "→ … ←"])
def test_a_question_without_words_finds_nothing(scorer: EvidenceScorer, question: str) -> None:
    """The model has one vector for every sign it doesn't know, so likeness between those says nothing."""
    passages = ["ระบบจ่ายน้ำเปิดเวลา 7 โมงเช้า", "🙃 ☃", ANSWER]
    assert max(*scorer.score(question, passages), *scorer.score_sentences(question, passages)) < 0.0


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    """A changed file is an error that names it."""
    (tmp_path / "terms.npz").write_bytes((WEIGHTS / "terms.npz").read_bytes())
    (tmp_path / "layers.json").write_bytes((WEIGHTS / "layers.json").read_bytes() + b" ")
    with pytest.raises(ModelUnavailable, match=r"layers\.json is not the one"):
        EvidenceScorer(MiniLM(), tmp_path).load()


def test_a_zero_point_that_loses_the_probe_is_refused() -> None:
    """A zero point beyond the answers would make every passage irrelevant: opening says so."""
    with pytest.raises(RerankerRefused, match="can't be trusted"):
        EvidenceScorer(MiniLM(), zero_point=100.0).load()


def test_the_setting_embedded_shares_the_embedder() -> None:
    """The default reranker is this one."""
    opened = open_reranker("embedded", MiniLM())
    assert isinstance(opened, EvidenceScorer)
    assert opened.name.startswith("evidence-2/")


@pytest.mark.parametrize(
    ("scores", "reason"),
    [([0.9, 0.1], "probabilities"), ([-1.0, -2.0], "trusted"), ([2.0, 1.5], "trusted"), ([math.nan, -1.0], "numbers")],
)
def test_the_probe_refuses_what_has_no_sign(scores: list[float], reason: str) -> None:
    """Probabilities, one-sided scores and NaN are told apart in the error."""
    with pytest.raises(RerankerRefused, match=reason):
        check_sign("some model", lambda _, __: scores)


@given(st.floats())
def test_a_score_is_never_exactly_zero(value: float) -> None:
    """Zero becomes the smallest float of its sign, infinity becomes NaN, all else stays."""
    score = signed(value)
    assert score != 0.0
    assert math.isnan(score) if not math.isfinite(value) else score == value or value == 0.0
    assert math.copysign(1.0, score) == math.copysign(1.0, value) or math.isnan(score)


@given(st.integers(0, 400), st.integers(1, 80))
def test_windows_cover_every_token(count: int, room: int) -> None:
    """Pieces are at most `room` tokens long and leave no token out."""
    text = "".join(chr(0x4E00 + place) for place in range(count))
    pieces = cut(text, [(place, place + 1) for place in range(count)], room)
    assert all(len(piece) <= room for piece in pieces)
    assert set("".join(pieces)) == set(text)


def test_a_long_question_without_a_question_mark_keeps_its_end() -> None:
    """Without any sentence that asks, the last one is held against the passages too."""
    text = "We moved house in May. " * 20 + "Tell me the notice period of the lease."
    assert focuses(text, MiniLM().token_spans(text))[1] == "Tell me the notice period of the lease."
    assert focuses("Short?", MiniLM().token_spans("Short?")) == ["Short?"]


@settings(deadline=None)
@given(st.text(max_size=80), st.text(max_size=80), st.integers(0, 5), st.integers(0, 5))
def test_measures_stay_in_their_range(question: str, passage: str, rows: int, columns: int) -> None:
    """Whatever the texts, every measure is a number; shares lie between 0 and 1."""
    weights = TermWeights({}, 5.0, np.ones(10, dtype=np.float32))
    similarities = np.full((rows, columns), 0.5, dtype=np.float32)
    asked = features.asked_terms(question, weights)
    numbers = features.measure(
        asked, passage, cosine=0.1, similarities=similarities, token_weights=np.ones(rows, dtype=np.float32)
    )
    named = dict(zip(features.NAMES, numbers, strict=True))
    assert np.isfinite(numbers).all()
    assert 0.0 <= named["coverage"] <= 1.0 + 1e-9
    assert 0.0 <= named["saturation"] <= features.K1 + 1.0


def test_a_sentence_without_an_end_is_read_once() -> None:
    """Ten times the text takes about ten times the work: what asks is looked for from each sentence's start only."""

    def seconds(text: str) -> float:
        begun = time.process_time()
        assert ASKING.findall(text) == []
        return time.process_time() - begun

    short, long = (min(seconds("channel " * count) for _ in range(3)) for count in (2_000, 20_000))
    assert long < 40 * max(short, 1e-4)
    assert ASKING.findall("One. Two? Three\nfour？ five") == [" Two?", "four？"]
