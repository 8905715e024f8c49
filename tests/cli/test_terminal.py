"""At a real terminal: the answer streams and stands there once, and consent to the web is asked for once."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
# Ctrl-C reaches a process only from the terminal that is its own.
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from leadline.cli import main; main()"


INTERRUPT = "\x03"


def at_terminal(*words: object, typed: str = "", at: str = "") -> tuple[int, str]:
    """Exit code and screen of a command at a terminal where `typed` is typed, at once or when `at` is on the screen."""
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-c", OWN_TERMINAL, *map(str, words)]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    with subprocess.Popen(command, **streams, env=env, start_new_session=True) as process:  # type: ignore[call-overload]
        os.close(terminal)
        screen = b""
        with contextlib.suppress(OSError):  # the other end is closed: the process has ended
            while True:
                if typed and at in screen.decode(errors="ignore"):
                    os.write(keyboard, typed.encode())
                    typed = ""
                if not (piece := os.read(keyboard, 65536)):
                    break
                screen += piece
    os.close(keyboard)
    return process.returncode, screen.decode()


def test_a_streamed_answer_stands_there_once(filled: Path) -> None:
    """Tokens are shown as they come and not repeated; the sources follow."""
    code, screen = at_terminal("ask", "What does error E-217 mean?", "--data-dir", filled)
    assert code == 0, screen
    answer, sources = screen.split("Sources")
    assert answer.count("The battery voltage is below 11.4 volts.") == 1
    assert "tide-gauge-manual.pdf, page 3" in sources


def test_consent_is_asked_once_with_the_query_and_remembered(filled: Path) -> None:
    """The query that would go out is shown; a no is an abstention, and the next question is not asked again."""
    ask = ("ask", "Who won the football world cup in 1990?", "--data-dir", filled)
    code, screen = at_terminal(*ask, typed="n\n")
    assert code == 4, screen
    asked = screen.index("Allow web searches")
    assert "Who won the football world cup in 1990?" in screen[:asked]
    code, screen = at_terminal(*ask)
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
    code, screen = at_terminal(*words, "--data-dir", filled, typed=INTERRUPT, at=prompt)
    assert code == 1, screen
    assert "Error: Interrupted." in screen
    assert "Traceback" not in screen
    assert "Remembered" not in screen
    assert not (filled / "web-consent.json").exists()


def test_the_end_of_the_input_is_no_consent_to_a_removal(filled: Path) -> None:
    """Ctrl-D in the place of an answer leaves the document where it is."""
    code, screen = at_terminal("rm", "tide-gauge-manual.pdf", "--data-dir", filled, typed="\x04", at="[y/N]")
    assert (code, "Nothing was removed." in screen) == (0, True), screen
