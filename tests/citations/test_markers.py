"""The `[n]` marks: which forms count, what is left alone, and that streaming changes nothing."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.citations.markers import MarkerStream, clean_answer, parse_markers

KNOWN = frozenset({1, 2, 3})


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The fee is 10 [1].", [(1,)]),
        ("both [1, 2]", [(1, 2)]),
        ("both [1,2;3]", [(1, 2, 3)]),
        ("all [1-3]", [(1, 2, 3)]),
        ("all [1–3], more [5]", [(1, 2, 3), (5,)]),
        ("two [1][2]", [(1,), (2,)]),
        ("本社は大阪だ【1】。", [(1,)]),
        ("本社は大阪だ［２］。", [(2,)]),
        ("٣ [٣]", [(3,)]),
        ("a link [1](https://example.org/a_(b)) here", [(1,)]),
        ("a foot note[^1] here", [(1,)]),
        ("[^1, ^2]", [(1, 2)]),
        ("double [[1]] and [[2]](https://x.org)", [(1,), (2,)]),
        ("Ten EUR[1]", [(1,)]),
        ("in 2015[1]", [(1,)]),
        ("`code`[1]", [(1,)]),
        ("see [the list [1]](https://x.org)", [(1,)]),
        ("an unclosed ` stays in its line\nand [1] here", [(1,)]),
    ],
)
def test_every_form_of_a_mark_is_read(text: str, numbers: list[tuple[int, ...]]) -> None:
    """Models write marks in many ways; each is read as the numbers it names."""
    assert [marker.numbers for marker in parse_markers(text)] == numbers


@pytest.mark.parametrize(
    "text",
    [
        "set arr[0] = 5",
        "x[1] + y[2]",
        "m[1][2]",
        "row_sum[3]",
        "`list[1]` and ``a ` [2]`` end",
        "```python\nvalue [1]\n```\n",
        "~~~\n[1]\n~~~",
        "[[wiki]] and [[Wiki 1]]",
        "[a link](https://example.org/[1])".replace("[1]", "1"),
        "[^1]: the definition",
        "[1]: https://example.org",
        "matches [0-9]",
        "in [0, 1]",
        "in [2019]",
        "(1) first",
        r"\[1\] is escaped",
        "[1, 1, 2, 3, 5, 8, 13, 21, 34, 55]",
        "[1, 2)",
        "[",
        "[]",
        "[1",
    ],
)
def test_what_only_looks_like_a_mark_is_left_alone(text: str) -> None:
    """Indexes, code, wiki links, definitions, classes and intervals are no citations and stay as written."""
    assert parse_markers(text) == []
    assert clean_answer(text, KNOWN) == (text, [])


@pytest.mark.parametrize(
    ("text", "cleaned", "removed"),
    [
        ("It is ten [1, 2].", "It is ten [1][2].", []),
        ("It is ten [1-3].", "It is ten [1][2][3].", []),
        ("It is ten 【1】.", "It is ten [1].", []),
        ("It is ten [1](https://evil.test/?q=x).", "It is ten [1].", []),
        ("It is ten [1](see below).", "It is ten [1](see below).", []),
        ("It is ten [5, 7].", "It is ten.", [5, 7]),
        ("It is ten [1, 7].", "It is ten [1].", [7]),
        ("It is ten [9], or so.", "It is ten, or so.", [9]),
        ("It is [9] ten.", "It is ten.", [9]),
        ("It is[9]ten.", "It is ten.", [9]),
        ("[9] It is ten.", "It is ten.", [9]),
        ("- [9] item", "- item", [9]),
        ("It is ten. [9]", "It is ten.", [9]),
        ("It is ten. [9].", "It is ten.", [9]),
        ("It is ten ([9]).", "It is ten.", [9]),
        ("It is ten ([1]).", "It is ten ([1]).", []),
        ("It is ten [1], [2].", "It is ten [1][2].", []),
        ("It is ten [9], [2].", "It is ten [2].", [9]),
        ("It is ten [1], [9].", "It is ten [1].", [9]),
        ("It is ten [1][1] [1].", "It is ten [1].", []),
        ("It is ten [1], and so on.", "It is ten [1], and so on.", []),
        ("It is ten [0].", "It is ten.", [0]),
    ],
)
def test_cleaning_brings_marks_to_one_form_and_closes_the_gaps(text: str, cleaned: str, removed: list[int]) -> None:
    """Unknown numbers never reach the reader, and no hole is left where they stood."""
    assert clean_answer(text, KNOWN) == (cleaned, removed)


def streamed(tokens: list[str]) -> tuple[str, list[int]]:
    """What a reader of the stream sees in the end."""
    stream = MarkerStream(KNOWN)
    return "".join([*(stream.feed(token) for token in tokens), stream.flush()]), stream.removed


def test_marks_split_over_tokens() -> None:
    """`[`, `1`, `2`, `]` is one mark; a lone bracket at the end is text; a wiki link stays."""
    assert streamed(["ten ", "[", "1", "2", "]", "."]) == ("ten.", [12])
    assert streamed(["ten ", "[", "1", "]", "."]) == ("ten [1].", [])
    assert streamed(["ten ["]) == ("ten [", [])
    assert streamed(["see [", "[wi", "ki]", "]"]) == ("see [[wiki]]", [])


ALPHABET = st.lists(
    st.sampled_from(
        [
            *"[]【】［］(){}^`~:,;.-–!? \n\t0129５a",
            "[1]",
            "[9]",
            "[1, 9]",
            "[[2]]",
            "[9](http",
            "://x)",
            "arr",
            "```\n",
            "fee ",
        ]
    ),
    max_size=40,
).map("".join)


@given(ALPHABET, st.data())
@example("[[9]5]", None)
@example("[1 [9]]", None)
def test_any_cut_into_tokens_gives_the_same_text(text: str, data: st.DataObject | None) -> None:
    """The streamed text equals the cleaned one, whatever the tokens are."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12))) if data else list(range(len(text)))
    bounds = [0, *cuts, len(text)]
    assert streamed([text[a:b] for a, b in pairwise(bounds)]) == clean_answer(text, KNOWN)


@given(ALPHABET)
@example("[[9]5]")
@example("[1 [9]]")
def test_no_unknown_number_is_left(text: str) -> None:
    """After cleaning, every mark is known, however hostile the text."""
    cleaned, _ = clean_answer(text, KNOWN)
    assert {n for marker in parse_markers(cleaned) for n in marker.numbers} <= KNOWN


@given(ALPHABET)
def test_positions_are_those_of_the_marks(text: str) -> None:
    """A marker's slice begins with its opening bracket and they follow each other without overlap."""
    at = 0
    for marker in parse_markers(text):
        assert at <= marker.start < marker.end <= len(text)
        assert text[marker.start] in "[【［"
        at = marker.end


@given(ALPHABET)
def test_never_more_than_32_characters_are_held_back(text: str) -> None:
    """A reader is never kept waiting by a bracket that doesn't close."""
    stream = MarkerStream(frozenset(range(1000)))
    without_marks = text.replace("]", "").replace("】", "").replace("］", "")
    shown = 0
    for place, char in enumerate(without_marks):
        shown += len(stream.feed(char))
        assert place + 1 - shown <= 32
