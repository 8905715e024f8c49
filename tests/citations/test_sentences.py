"""The sentences of an answer and the marks that belong to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.citations import answer_sentences, says_no_answer


def read(text: str) -> list[tuple[str, tuple[int, ...], bool]]:
    """Text, numbers and claim of each sentence."""
    return [(s.text, s.numbers, s.claim) for s in answer_sentences(text)]


def test_a_mark_behind_the_full_stop_belongs_to_the_sentence_before() -> None:
    """Inside, behind the stop, and glued to it: always the sentence that was just said."""
    assert read("It is 10.5 EUR. [1] Dr. Smith paid it.[2] It was 3% [3].") == [
        ("It is 10.5 EUR.", (1,), True),
        ("Dr. Smith paid it.", (2,), True),
        ("It was 3%.", (3,), True),
    ]


def test_markdown_is_read_as_people_read_it() -> None:
    """Headings, lead-ins and table headers claim nothing; items, rows and quotes do."""
    items = "# Fees\nHere is what I found:\n- **Base** is 5 [1]\n- top is 7 [2]"
    text = f"{items}\n\n| a | b |\n|---|---|\n| x [1] | 5 |\n\n> quoted [2]"
    assert read(text) == [
        ("# Fees", (), False),
        ("Here is what I found:", (), False),
        ("Base is 5", (1,), True),
        ("top is 7", (2,), True),
        ("a; b", (), False),
        ("x; 5", (1,), True),
        ("quoted", (2,), True),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "**The fee is 20 EUR.**",
        "# The fee is 20 EUR",
        "Of course the policy covers water damage.",
        "The fee is 20 EUR:",
        "Sure, the fee is ten.",
    ],
)
def test_a_claim_in_disguise_is_a_claim(text: str) -> None:
    """A figure in a heading, or a courtesy in front, doesn't hide a claim from the check."""
    assert all(claim for _, _, claim in read(text))


def test_japanese_sentences_and_their_marks() -> None:
    """Sentences without blanks are split, and marks before or behind the stop are theirs."""
    assert read("本社は2019年に移転した[1]。新しい本社は大阪だ。[2]") == [
        ("本社は2019年に移転した。", (1,), True),
        ("新しい本社は大阪だ。", (2,), True),
    ]


PIECES = ["The fee is 5. ", "[1]", " [2]", "\n", "- ", "# ", "|", "```", "> ", "Yes! ", "なし。", "**", ":", "?", "  "]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_places_are_slices_in_order(text: str) -> None:
    """Sentences lie in the answer, in order, without overlap, and have words."""
    at = 0
    for sentence in answer_sentences(text):
        assert at <= sentence.start < sentence.end <= len(text)
        assert any(c.isalnum() for c in sentence.text)
        at = sentence.end


@pytest.mark.parametrize(
    "text",
    [
        "NO_ANSWER",
        "no answer.",
        "The documents do not say who acquired it.",
        "The provided context doesn't contain any information about this.",
        "There is no information about this in the passages.",
        "This is not mentioned in the provided documents.",
        "I could not find the answer.",
        "I don't know.",
        "Die Dokumente enthalten keine Angaben dazu.",
        "Les documents ne mentionnent pas cela.",
        "Los documentos no mencionan eso.",
        "文档中没有提到这一点。",
        "資料には記載されていません。",
    ],
)
def test_saying_that_there_is_no_answer(text: str) -> None:
    """The token and the usual phrases of several languages are an abstention."""
    assert says_no_answer(text)


@pytest.mark.parametrize(
    "text",
    [
        "The policy does not cover water damage.",
        "The document does not include the annex.",
        "No fee is due.",
        "It is ten.",
    ],
)
def test_a_denial_is_not_an_abstention(text: str) -> None:
    """What the documents deny is an answer."""
    assert not says_no_answer(text)


def test_a_day_ends_no_sentence_in_a_language_that_writes_it_with_a_dot() -> None:
    """`14. Oktober` stays whole in German."""
    text = "Der Zähler wird am 14. Oktober 2025 getauscht. [1] Die Rate ist zum 15. des Monats fällig. [1]"
    assert [s.text for s in answer_sentences(text, "de")] == [
        "Der Zähler wird am 14. Oktober 2025 getauscht.",
        "Die Rate ist zum 15. des Monats fällig.",
    ]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("**Mira Stone**", ["Mira Stone"]),
        ("# Mira Stone", ["# Mira Stone"]),
        ("- **Mira Stone**\n- **Dana Fox**", ["Mira Stone", "Dana Fox"]),
        ("The founders are:\n\n**Mira Stone**\n\n**Dana Fox**", ["Mira Stone", "Dana Fox"]),
        ("It makes pumps. Its founder is:\n\n**Dana Fox**", ["It makes pumps.", "Dana Fox"]),
        ("**Mira Stone**\n\nLet me know if you need more.", ["Mira Stone"]),
        ("**Fees**\nThe fee is ten.", ["The fee is ten."]),
        ("The fee is ten.\n\n## Sources", ["The fee is ten."]),
        ("# Fees\n## Base\nThe fee is ten.", ["The fee is ten."]),
    ],
)
def test_bold_text_that_heads_nothing_is_a_claim(text: str, claims: list[str]) -> None:
    """A name in bold that is the whole answer, an item of it, or what a lead-in leads to, is what the answer says."""
    assert [words for words, _, claim in read(text) if claim] == claims
