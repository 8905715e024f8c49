"""Which names a text mentions, and which known names a question means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.entities import candidate_names, extract_entities, fold, longest


def whole(text: str) -> dict[str, int]:
    """Display name → count, of the names that stand by themselves."""
    return {found.name: found.count for found in extract_entities(text).values() if not found.part}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LangGraph and ChromaDB use PyTorch with OpenAI", {"LangGraph", "ChromaDB", "PyTorch", "OpenAI"}),
        ("We moved to The Google Cloud.", {"Google Cloud"}),
        ("Summarize Acme Corp", {"Acme Corp"}),
        ("What is Acme Corp? Who runs it?", {"Acme Corp"}),
        ("Wer leitet das Werk? Was zahlt Müller-Lüdenscheid?", {"Werk", "Müller-Lüdenscheid"}),
        ("It was signed by Dana\nFox signed nothing.", {"Dana"}),
        ("Ángel Peña met Łukasz in São Paulo.", {"Ángel Peña", "Łukasz", "São Paulo"}),
        ("In Q3, GPT-4 explained COVID19; see ERR-4021.", {"Q3", "GPT-4", "COVID19", "ERR-4021"}),
        ("call getUserId with user_id, in C++ or C#", {"getUserId", "user_id", "C++", "C#"}),
        ("The Bank of England and Ludwig van Beethoven", {"Bank of England", "Ludwig van Beethoven"}),
        ("They cite J. R. R. Tolkien and Dr. Smith.", {"J. R. R. Tolkien", "Smith"}),
        ("We like Johnson & Johnson, AT&T and Acme's pay.", {"Johnson & Johnson", "AT&T", "Acme"}),
        ("WARNING: DO NOT OPEN THE VALVE V2", {"V2"}),
        ("Results were good. Everything ended well.", set()),
        ("Halden is small. Yet Halden grew.", {"Halden"}),
        ("They met on Monday in March.", set()),
        (
            "東京の本社は2019年に移転した。トヨタの「吾輩は猫である」",
            {"東京", "本社", "移転", "トヨタ", "吾輩は猫である"},
        ),
        ("10mg of 2,4-D, 4021 pieces", set()),
        ("From 50 to 400 EUR the shift lead approves, or CHF 380.", set()),
        ("Ask Acme Corp EUR 300", {"Acme Corp"}),
        ("", set()),
    ],
)
def test_names_in_a_text(text: str, names: set[str]) -> None:
    """Names of every form are found whole, without articles, question words or verbs before them."""
    assert whole(text).keys() == names


def test_repeated_mentions_are_counted() -> None:
    """Each mention counts, whatever its case; the words of a longer name are known as parts of it."""
    found = extract_entities("We saw Dana Fox. Then Dana Fox left and ms Fox stayed.")
    assert found["dana fox"].count == 2
    assert found["dana"].part
    assert found["fox"].count == 3
    assert not found["fox"].part


@pytest.mark.parametrize(
    "question", ["what does acme corp say", "WHAT DOES ACME CORP SAY", "Was sagt Acme Corp's Chef?"]
)
def test_question_in_any_case_means_the_known_name(question: str) -> None:
    """A question needs no capitals, and isn't misled by them."""
    assert longest(candidate_names(question), {"acme corp", "acme", "corp"}) == ["acme corp"]


def test_known_names_inside_unspaced_text() -> None:
    """In scripts without spaces a known name is found anywhere."""
    assert longest(candidate_names("トヨタの本社はいつ移転した？"), {"トヨタ", "本社"}) == ["トヨタ", "本社"]


@pytest.mark.parametrize("question", ["Who?", "Wer will was?", "", "   ", "!?", "the of and"])
def test_question_words_are_no_names(question: str) -> None:
    """Words that only ask are never looked up by themselves."""
    assert all(" " in key for key in candidate_names(question))


@given(st.text(max_size=400))
def test_any_text_is_taken(text: str) -> None:
    """Nothing in a text breaks the extraction; a name has a count and never crosses a line."""
    for found in extract_entities(text).values():
        assert found.count > 0
        assert "\n" not in found.name


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing(text: str) -> None:
    """The compared form of a name is its own compared form."""
    assert fold(fold(text)) == fold(text)


@given(st.lists(st.sampled_from(["Dana Fox", "Acme Corp", "GPT-4", "トヨタ", "user_id"]), min_size=1, max_size=4))
def test_mentioned_names_are_found_by_a_question(names: list[str]) -> None:
    """What is mentioned in a document is a candidate of a question that names it in lower case."""
    keys = {key for key, found in extract_entities(" and ".join(["we saw", *names])).items() if not found.part}
    assert keys <= set(candidate_names(f"tell me about {' or '.join(names).lower()}"))


def test_long_input_is_linear() -> None:
    """A question of a megabyte, or a line without an end, ends at once."""
    assert len(candidate_names("acme " * 2000)) < 3000
    extract_entities("A" * 300_000)
    extract_entities("a_" * 100_000)
