"""A name of the same passage in another's place."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.citations.test_answers import block

from leadline.citations import check_answer
from leadline.citations.exchanged import exchanged_name

PIER = (
    "Tom Hale opened the pier in 1921. Mira Stone, the harbour master, closed it in 1950. The storm of 1953 broke it. "
    "The pilot, Otto Lind, left in 1960. Dana Fox, the head of the board, resigned after the fire. "
    "She was born in Bergen and died in Oslo."
)
OTHER = "Mira Stone came from Bergen. The pier is old."


def grounding(sentence: str, question: str = "Who did it?") -> str:
    """What the check of an answer with this sentence alone says, held against two passages."""
    return check_answer(sentence, [block(1, PIER), block(2, OTHER)], question).grounding


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("Tom Hale opened the pier in 1921.", "Mira Stone opened the pier in 1921."),
        ("The pier was opened by Tom Hale in 1921.", "The pier was opened by Mira Stone in 1921."),
        ("Mira Stone closed the pier in 1950.", "Tom Hale closed the pier in 1950."),
        ("Dana Fox resigned after the fire.", "Mira Stone resigned after the fire."),
        ("Dana Fox resigned.", "Tom Hale resigned."),
        ("Otto Lind left in 1960.", "Tom Hale left in 1960."),
        ("Dana Fox was born in Bergen.", "Dana Fox was born in Oslo."),
        ("Tom Hale opened the pier in 1921.", "Tom Fox opened the pier in 1921."),
    ],
)
def test_another_name_of_the_passage_in_its_place_is_found(sentence: str, wrong: str) -> None:
    """Before a verb, after `by`, with an aside between, and half of a name: the right one passes, the other fails.

    Also where the passage calls the thing `it`, and where a second passage has the name too.
    """
    assert (grounding(sentence), grounding(wrong)) == ("grounded", "ungrounded")


@pytest.mark.parametrize(("answer", "expected"), [("Tom Hale", "grounded"), ("Mira Stone", "ungrounded")])
def test_a_short_answer_is_read_in_the_place_of_the_question_word(answer: str, expected: str) -> None:
    """A name that is all of an answer stands where the question says who."""
    assert grounding(f"{answer}.", "Who opened the pier in 1921?") == expected


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Mira Stone resigned after the fire.", "Mira Stone led Halden. She resigned after the fire."),
        ("Halden moved to Bergen.", "Halden is a firm. The company moved to Bergen."),
        ("Mark Twain was born in 1835.", "Samuel Clemens, known as Mark Twain, wrote. Clemens was born in 1835."),
        ("Stone opened the pier.", "Mira Stone opened the pier."),
        ("The Dutch built the fort.", "The Netherlands built the fort. Spain lost it."),
        ("Acme sells pumps.", "Bolt sells pumps. Acme sells pumps and fans."),
        ("The Foxes became farmers of good wine.", "The Foxes who stayed in France became farmers of good wine."),
        ("Fox described a pump in 1629.", "A pump was described by Hale in 1551 and by Fox in 1629."),
        ("Fox translated the national hymn.", "Mira Hale sang the national hymn, while Fox gave the translation."),
        ("Acme sells pumps.", "Acme began in 1950. Bolt also sells pumps."),
        ("President Stone opened the pier.", "Mira Stone, later President, opened the pier."),
    ],
)
def test_a_name_that_the_place_means_is_no_fault(sentence: str, text: str) -> None:
    """Pronouns, other words for a thing, two names of one thing, peoples, and what several do."""
    assert exchanged_name(sentence, text) == ""


PIECES = (
    "Aa ",
    "bb ",
    "it ",
    "Aa, ",
    "Aa (",
    "by Aa ",
    "was ",
    "Aa's ",
    "A. ",
    ". ",
    "Cc bb ",
    "also ",
    "1 ",
    "\n",
    "of ",
)


def calls(work: Callable[[], object]) -> int:
    """How many functions the work calls: a measure of time that no busy machine changes."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join), st.sampled_from(PIECES))
def test_the_work_grows_with_the_length_only(piece: str, mark: str) -> None:
    """Whatever is repeated in sentence and text: twice the text is at most about twice the work."""

    def text(size: int) -> str:
        return mark + piece * (size // len(piece))

    sentence = text(1_100)
    exchanged_name(sentence, text(100))
    once, twice = (calls(partial(exchanged_name, sentence, text(size))) for size in (3_000, 6_000))
    assert twice < 3 * once + 5_000
