"""The sentences Leadline says itself."""

import pytest

from leadline.nodes.wording import abstention, language_of, small_talk


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
    ],
)
def test_language_by_script_and_common_words(text: str, language: str) -> None:
    """Enough to say one sentence in the right language."""
    assert language_of(text) == language


def test_abstaining_names_the_nearest_files() -> None:
    """The files are named where there are any."""
    assert "a.md, b.md" in abstention("Who?", ["a.md", "b.md"])
    assert abstention("Who?", []) == "I don't find the answer in the documents."
