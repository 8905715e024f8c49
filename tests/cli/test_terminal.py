"""At a real terminal: the answer streams and stands there once, and consent to the web is asked for once."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
LEADLINE = [sys.executable, "-c", "from leadline.cli import main; main()"]


def at_terminal(*words: object, typed: str = "") -> tuple[int, str]:
    """Exit code and screen of a command at a terminal where `typed` is typed."""
    keyboard, terminal = pty.openpty()
    os.write(keyboard, typed.encode())
    command = [*LEADLINE, *map(str, words)]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env) as process:
        os.close(terminal)
        screen = b""
        with contextlib.suppress(OSError):  # the other end is closed: the process has ended
            while piece := os.read(keyboard, 65536):
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
