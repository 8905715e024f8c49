"""A real terminal for programs of the command line."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

LEADLINE = "from leadline.cli import main; main()"
INTERRUPT = "\x03"
END_OF_INPUT = "\x04"
# Ctrl-C reaches a process only from the terminal that is its own.
_OWN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"


def at_terminal(code: str, *words: object, width: int = 120, typed: str = "", at: str = "") -> tuple[int, str]:
    """Exit code and screen of Python code with these arguments, colours taken out.

    `typed` is typed when `at` is on the screen. Skips the test where there are no such terminals.
    """
    pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-c", _OWN + code, *map(str, words)]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": str(width)}
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=env, start_new_session=True
    ) as process:
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
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.decode())
