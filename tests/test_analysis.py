"""What counts as a search term."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.analysis import MAX_TERM_CHARS, Analyzer

english = Analyzer("english")
plain = Analyzer("none")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("ERR-4021", ["err-4021", "err", "4021"]),
        ("PPR-9087/B", ["ppr-9087/b", "ppr", "9087", "b"]),
        ("user_id", ["user_id", "user", "id"]),
        ("getUserId", ["getuserid", "get", "user", "id"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("C++ C# C", ["c++", "c#", "c"]),
        ("C++17", ["c++", "17"]),
        ("7.3.2", ["7.3.2", "7.3", "7", "3", "2"]),
        ("v2.10.3", ["v2.10.3", "2.10.3", "2.10", "v2", "10", "3"]),
        ("0.05", ["0.05"]),
        ("1,234,567", ["1234567"]),
        ("U.S.A.", ["usa"]),
        ("Acme's", ["acme"]),
        ("Acme’s", ["acme"]),
        ("__init__", ["init"]),
        ("Prüfgröße", ["prüfgrösse", "prufgrosse"]),
        ("café", ["café", "cafe"]),
        ("Prüf\u00adgröße", ["prüfgrösse", "prufgrosse"]),
        ("٢٠١٩", ["2019"]),
        ("２０１９", ["2019"]),
        ("!?…", []),
    ],
)
def test_identifiers_give_the_whole_and_the_parts(text: str, terms: list[str]) -> None:
    """Codes, versions, names in code and accented words are found whole and by part, signs and case apart."""
    assert plain.terms(text) == terms


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("err-4021", "ERR-4021"),
        ("4021", "see ERR-4021."),
        ("PPR-9087", "PPR-9087/B"),
        ("getuserid", "call getUserId()"),
        ("processimages", "def processImages(self)"),
        ("user", "user_id = 3"),
        ("running", "it runs"),
        ("cafe", "Le Café"),
        ("2.10", "since v2.10.3"),
        ("prüfgröße", "PRÜFGRÖSSE 5"),
        ("本社はいつ移転した？", "東京の本社は2019年に移転した"),
        ("猫", "黒猫の家"),
        ("ﾄｳｷｮｳ", "トウキョウ"),
        ("서울", "서울에서 만나요"),
        ("집", "집에서 일한다"),
        ("กรุงเทพ", "บริษัทตั้งอยู่ที่กรุงเทพ"),
    ],
)
def test_a_question_finds_what_is_stored(asked: str, stored: str) -> None:
    """Whatever way it is written, the question shares a term with the passage."""
    assert set(english.query_terms(asked)) & set(english.terms(stored))


@pytest.mark.parametrize(
    ("asked", "stored"), [("C", "C++ and C#"), ("C++", "the letter C"), ("4022", "ERR-4021"), ("海", "黒猫の家")]
)
def test_a_question_leaves_out_what_only_looks_alike(asked: str, stored: str) -> None:
    """C is not C++, and a code is not its neighbour."""
    assert not set(english.query_terms(asked)) & set(english.terms(stored))


def test_thai_vowel_signs_stay_with_their_consonants() -> None:
    """No term starts with a combining sign, and none is lost."""
    terms = english.terms("ที่นี่")
    assert "ที่" in terms
    assert "ที่นี่" in terms


def test_stop_words_are_stored_but_not_asked_for() -> None:
    """A question is searched without its stop words, unless it has no other word."""
    assert english.query_terms("Where is the pump?") == ["pump"]
    assert english.query_terms("who is it") == ["who", "is", "it"]
    assert set(english.query_terms("who is it")) <= set(english.terms("Who knows what it is?"))


def test_capitals_make_a_name_of_a_stop_word() -> None:
    """WHO and IT are names, unless the whole question is shouted."""
    assert english.query_terms("What does WHO say about IT?") == ["who", "say", "it"]
    assert english.query_terms("WHO IS THE OWNER") == ["owner"]


def test_without_a_stemmer_words_stay_as_they_are() -> None:
    """`none` neither stems nor knows stop words; the two analysers have different names."""
    assert plain.query_terms("the running pumps") == ["the", "running", "pumps"]
    assert english.query_terms("the running pumps") == ["run", "pump"]
    assert plain.name != english.name


@given(st.text(max_size=300))
def test_any_text_has_terms_or_none(text: str) -> None:
    """Nothing crashes; terms are non-empty, bounded, and the same each time."""
    terms = english.terms(text)
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in terms)
    assert english.terms(text) == terms
    assert bool(english.query_terms(text)) == bool(terms)


@given(st.text(max_size=120))
def test_a_text_finds_itself(text: str) -> None:
    """Every term of a text asked as a question is stored for that text."""
    assert set(english.query_terms(text)) <= set(english.terms(text))


@given(st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), min_size=1, max_size=20))
def test_plain_words_give_one_term_each(words: list[str]) -> None:
    """Parts and wholes don't inflate plain text: as many terms as words, case aside."""
    assert len(english.terms(" ".join(words))) == len(words)
    assert english.terms(" ".join(words).upper()) == english.terms(" ".join(words))


@pytest.mark.parametrize("unit", ["a", "a-", "1.1", "1,000", "aB", "京", "é", "a++", "_"])
def test_a_huge_line_takes_linear_time(unit: str) -> None:
    """Hundreds of kilobytes without a space are analysed in one pass, and no term is huge."""
    terms = english.terms(unit * (200_000 // len(unit)))
    assert all(len(term) <= MAX_TERM_CHARS for term in terms)


def test_threads_share_one_analyser() -> None:
    """Eight threads at once get what one gets alone."""
    text = "Pumps running dryly; the seals' failures were noticed by engineers. " * 50
    expected = Analyzer("english").terms(text)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(english.terms(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_digits_newer_than_the_standard_library_are_letters_like_others() -> None:
    """A digit of a script that Python's tables don't know yet is kept as it stands."""
    assert Analyzer().terms("\U0001e4f0") == ["\U0001e4f0"]
