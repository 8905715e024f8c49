"""At a real terminal: the answer streams and stands there once, and who is asked can say no in every way."""

from pathlib import Path

import pytest
from tests.cli.terminals import END_OF_INPUT, INTERRUPT, LEADLINE, at_terminal


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a terminal shows doesn't hang on how many passages were scored, and how often."""
    monkeypatch.setenv("LEADLINE_RUN__TOP_K", "3")
    monkeypatch.setenv("LEADLINE_RUN__MAX_RETRIES", "0")


def test_a_streamed_answer_stands_there_once(filled: Path) -> None:
    """Tokens are shown as they come and not repeated; the sources follow."""
    code, screen = at_terminal(LEADLINE, "ask", "What does error E-217 mean?", "--data-dir", filled)
    assert code == 0, screen
    answer, sources = screen.split("Sources")
    assert answer.count("The battery voltage is below 11.4 volts.") == 1
    assert "tide-gauge-manual.pdf, page 3" in sources


def test_consent_is_asked_once_with_the_query_and_remembered(filled: Path) -> None:
    """The query that would go out is shown; a no is an abstention, and the next question is not asked again."""
    ask = ("ask", "Who won the football world cup in 1990?", "--data-dir", filled)
    code, screen = at_terminal(LEADLINE, *ask, typed="n\n")
    assert code == 4, screen
    asked = screen.index("Allow web searches")
    assert "Who won the football world cup in 1990?" in screen[:asked]
    code, screen = at_terminal(LEADLINE, *ask)
    assert code == 4, screen
    assert "Allow web searches" not in screen


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (("rm", "tide-gauge-manual.pdf"), "Remove tide-gauge-manual.pdf (10 chunks)?"),
        (("ask", "Who won the football world cup in 1990?"), "Allow web searches?"),
    ],
)
def test_an_interrupt_at_a_question_ends_the_command(filled: Path, words: tuple[str, ...], prompt: str) -> None:
    """One Ctrl-C is enough: nothing waits for the Enter key, nothing is removed, and no consent is remembered."""
    code, screen = at_terminal(LEADLINE, *words, "--data-dir", filled, typed=INTERRUPT, at=prompt)
    assert code == 1, screen
    assert "Error: Interrupted." in screen
    assert "Traceback" not in screen
    assert "Remembered" not in screen
    assert not (filled / "web-consent.json").exists()


def test_the_end_of_the_input_is_no_consent_to_a_removal(filled: Path) -> None:
    """Ctrl-D in the place of an answer leaves the document where it is."""
    code, screen = at_terminal(
        LEADLINE, "rm", "tide-gauge-manual.pdf", "--data-dir", filled, typed=END_OF_INPUT, at="[y/N]"
    )
    assert (code, "Nothing was removed." in screen) == (0, True), screen


PARAGRAPH = """
from leadline.cli.display import say
say("  planner   0.100 s  " + "one of many words " * 12, hang=21)
say("    " + "one of many words " * 12)
say("b" * 70, hang=69)
"""


def test_a_paragraph_hangs_below_its_first_line() -> None:
    """What follows stands under the first word, or as far in as the line began; never beyond the terminal's edge."""
    code, screen = at_terminal(PARAGRAPH, width=80)
    lines = screen.splitlines()
    assert code == 0, screen
    assert all(len(line) <= 80 for line in lines)
    hanging = [line for line in lines if line.startswith(" " * 21)]
    assert lines[0].startswith("  planner   0.100 s  one of")
    assert len(hanging) >= 3
    assert all(line[21] != " " for line in hanging)
    assert sum(line.startswith("    ") and line[4] != " " for line in lines) >= 3
    assert lines[-1] == "b" * 70
