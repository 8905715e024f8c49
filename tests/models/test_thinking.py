"""What a model says to itself is taken out of a reply, wherever the pieces are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.models.thinking import ThinkingFilter, without_thinking

PARTS = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<THOUGHT>", "</thought>", "[THINK]", "[/THINK]", "a", " b", "<", "<t", "\n"]
    ),
    max_size=12,
)


def shown(pieces: list[str], *, begun: bool = False) -> str:
    """What a reader has in the end."""
    thinking = ThinkingFilter(begun=begun)
    text = ""
    for piece in [*(thinking.feed(piece) for piece in pieces), thinking.flush()]:
        text = piece.text if piece.restart else text + piece.text
    return text


@given(PARTS, st.lists(st.integers(1, 7), max_size=30))
def test_pieces_make_no_difference(parts: list[str], sizes: list[int]) -> None:
    """However a reply is cut, the same is shown as when it comes at once."""
    whole = "".join(parts)
    pieces, at = [], 0
    for size in [*sizes, len(whole)]:
        pieces.append(whole[at : at + size])
        at += size
    assert shown(pieces) == shown([whole]) == without_thinking(whole)
    assert shown(pieces, begun=True) == shown([whole], begun=True)


@given(st.text(alphabet="ab <>[]/thinkT\n", max_size=60))
def test_nothing_is_added_and_plain_text_is_whole(text: str) -> None:
    """What is shown is text of the reply, in order; a reply without any mark of thinking is shown as it is."""
    found = without_thinking(text)
    rest = iter(text)
    assert all(char in rest for char in found)
    if not any(mark in text.lower() for mark in ("think>", "[think]", "[/think]", "thinking>", "thought>")):
        assert found == text


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>x</think>Ten.", "Ten."),
        ("Ten.<think>x", "Ten."),
        ("x</think>Ten.", "Ten."),
        ("<think>a <b> c</think>Ten <3 apples", "Ten <3 apples"),
        ("<thinking>x</think>y</thinking>Ten.", "Ten."),
        ("<think></think>", ""),
        ("a <thin line>", "a <thin line>"),
        ("<thi", "<thi"),
    ],
)
def test_replies(reply: str, expected: str) -> None:
    """Thinking that never ends is not shown; its end alone voids what came before; a mere beginning is text."""
    assert without_thinking(reply) == expected


def test_nothing_is_held_that_need_not_be() -> None:
    """Text goes on at once; only what may begin a mark waits, and no longer than a mark is."""
    thinking = ThinkingFilter()
    assert thinking.feed("The fee is ten").text == "The fee is ten"
    assert thinking.feed(" <th").text == " "
    assert thinking.feed("ree coins").text == "<three coins"


@pytest.mark.parametrize(
    ("reply", "expected"), [("x[/THINK]Ten.", "Ten."), ("x</thinking>Ten.", "Ten."), ("<think>x", ""), ("Ten.", "Ten.")]
)
def test_a_model_that_thinks_at_once_may_end_it_by_any_mark(reply: str, expected: str) -> None:
    """It never said by which; and a reply that was none of that is shown without the thinking that it marks."""
    assert shown(list(reply), begun=True) == expected
