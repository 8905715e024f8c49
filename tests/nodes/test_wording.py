"""The sentences Leadline says itself."""

import pytest

from leadline.nodes.languages import language_of
from leadline.nodes.wording import _BEING_INDEXED, _NO_ANSWER, abstention, small_talk


@pytest.mark.parametrize("said", ["Hello!", "hi there", "Guten Tag.", "¡Hola!", "你好！", "Thanks a lot!", "مرحبا"])
def test_small_talk_gets_a_reply(said: str) -> None:
    """Greetings and thanks are answered without a search."""
    assert small_talk(said)


@pytest.mark.parametrize("asked", ["Hello, what is the vault code?", "Who wrote Hello World?", "thanks to whom?", ""])
def test_a_question_is_never_small_talk(asked: str) -> None:
    """Anything more than a greeting is searched for."""
    assert small_talk(asked) is None


def test_the_reply_is_in_the_language_of_the_greeting() -> None:
    """A German greeting gets a German reply."""
    assert "Dokumenten" in (small_talk("Guten Tag") or "")
    assert small_talk("谢谢") == "不客气。"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the capital of France?", "en"),
        ("Wie hoch ist der Turm?", "de"),
        ("¿Cuál es la capital?", "es"),
        ("Quelle est la capitale ?", "fr"),
        ("法国的首都是什么？", "zh"),
        ("本社はいつ移転した？", "ja"),
        ("ما هي عاصمة فرنسا؟", "ar"),
        ("Qual è la capitale della Francia?", "it"),
        ("Quando foi fundada a Acme?", "pt"),
        ("Wat kost de pomp?", "nl"),
        ("Kiedy założono Acme?", "pl"),
        ("Kdy byla založena firma Acme?", "cs"),
        ("Когда была основана фирма?", "ru"),
        ("Коли заснували її фірму?", "uk"),
        ("Hur ofta beskärs rosor?", "sv"),
        ("Hvornår blev Acme grundlagt?", "da"),
        ("Milloin Acme perustettiin?", "fi"),
        ("Acme ne zaman kuruldu?", "tr"),
        ("Mikor alapították az Acme-t?", "hu"),
        ("Când a fost fondată Acme?", "ro"),
        ("Πότε ιδρύθηκε η εταιρεία;", "el"),
        ("מתי נוסדה החברה?", "he"),
        ("شرکت کی تأسیس شد؟", "fa"),
        ("कंपनी की स्थापना कब हुई?", "hi"),
        ("บริษัทก่อตั้งเมื่อไร", "th"),
        ("회사는 언제 설립되었습니까?", "ko"),
        ("Acme được thành lập khi nào?", "vi"),
        ("vacation policy", "en"),
        ("E-217", "en"),
    ],
)
def test_the_language_of_a_question(text: str, language: str) -> None:
    """By script, common words, and a model of languages where those say nothing; else English."""
    assert language_of(text) == language


def test_abstaining_names_the_nearest_files() -> None:
    """The files are named where there are any."""
    assert "a.md, b.md" in abstention("Who?", ["a.md", "b.md"])
    assert abstention("Who?", []) == "I don't find the answer in the documents."


@pytest.mark.parametrize(
    "question", ["Qual è la capitale della Francia?", "Когда была основана фирма?", "Kiedy założono Acme?"]
)
def test_abstaining_beyond_the_languages_of_small_talk(question: str) -> None:
    """It is said in the language of the question where there is a sentence for it."""
    assert not abstention(question, ["a.md"]).startswith("I don't find")
    assert "a.md" in abstention(question, ["a.md"])


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, ""), (1, " 1 document is still being indexed."), (3, " 3 documents are still being indexed.")],
)
def test_abstaining_says_what_is_still_being_indexed(count: int, said: str) -> None:
    """The answer may be in what is not in yet: how many documents that are stands behind the nearest files."""
    assert (
        abstention("Who?", ["a.md"], count)
        == f"I don't find the answer in the documents. Nearest passages: a.md.{said}"
    )
    assert abstention("Who?", [], count) == f"I don't find the answer in the documents.{said}"


def test_what_is_being_indexed_is_said_in_every_language_of_abstentions() -> None:
    """Each language has both sentences, and the number stands in the second."""
    assert _BEING_INDEXED.keys() == _NO_ANSWER.keys()
    assert all("{n}" in sentence for sentence in _BEING_INDEXED.values())
    assert abstention("Qual è la capitale della Francia?", [], 2).endswith("in fase di indicizzazione: 2.")
    assert abstention("کمپنی کب قائم ہوئی، بتائیں؟", [], 1).endswith("1 document is still being indexed.")


def test_a_language_without_a_sentence_gets_english() -> None:
    """Nothing is made up in a language nobody wrote a sentence in."""
    assert abstention("کمپنی کب قائم ہوئی، بتائیں؟", []) == "I don't find the answer in the documents."
