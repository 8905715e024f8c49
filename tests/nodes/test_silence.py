"""NO_ANSWER is kept out of what is shown, wherever it stands and however the reply is cut."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.nodes.silence import WithoutNoAnswer

MAX_HELD = 64


def shown(pieces: list[str]) -> str:
    """What is shown of the pieces in the end."""
    stream = WithoutNoAnswer()
    return "".join([*map(stream.feed, pieces), stream.flush()])


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("NO_ANSWER", ""),
        (" NO_ANSWER.\n", ""),
        ("**NO_ANSWER** [1].", ""),
        ("NO_ANSWER. The policy costs 20 EUR [1].", "The policy costs 20 EUR [1]."),
        ("NO_ANSWER\n\nThe policy costs 20 EUR [1].", "The policy costs 20 EUR [1]."),
        ("The policy costs 20 EUR [1]. NO_ANSWER", "The policy costs 20 EUR [1]."),
        ("It costs 20 EUR [1]. NO_ANSWER. It is new [2].", "It costs 20 EUR [1]. It is new [2]."),
        ("The NOAA and NO_ANSWERS, also XNO_ANSWER, stay. NO", "The NOAA and NO_ANSWERS, also XNO_ANSWER, stay. NO"),
        ("A  line.\n\n    code  N", "A  line.\n\n    code  N"),
    ],
)
def test_the_word_goes_and_all_else_stays(reply: str, left: str) -> None:
    """Alone, first, last, between; whole and by single characters. What only looks like it stays."""
    assert shown([reply]).rstrip("\n") == left
    assert shown(list(reply)).rstrip("\n") == left


@given(
    st.lists(
        st.sampled_from(["NO_ANSWER", "NO", "_ANS", "WER", " ", "\n", ".", "[1]", "*", "x", "It is. "]), max_size=12
    )
)
def test_pieces_give_the_same_text_and_little_is_held(pieces: list[str]) -> None:
    """However it is cut, and what is held back at any time is no more than some forty characters."""
    whole = "".join(pieces)
    assert shown(pieces) == shown([whole]) == shown(list(whole))
    stream = WithoutNoAnswer()
    for char in whole:
        stream.feed(char)
        assert len(deepcopy(stream).flush()) <= MAX_HELD
