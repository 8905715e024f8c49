"""Every command in the README is run, in the order it stands there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from leadline.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
# What CI runs itself, before or around this test; and servers, which the tests of the API and of Studio start.
ELSEWHERE = ("make ", "git clone", "cd ", "pip install")
SERVERS = ("leadline serve", "leadline mcp", "leadline watch", "make studio")
ALLOWED_EXIT = re.compile(r"#.*exits? (\d)")
ASSIGNMENT = re.compile(r"[A-Z_]+=")


def commands() -> list[str]:
    """The README's shell lines that are run here, without comments and blank lines."""
    lines = [line.strip() for block in BLOCKS for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", *ELSEWHERE, *SERVERS))]


def expected_exit(command: str) -> int:
    """What the line says, 0 where it says nothing."""
    found = ALLOWED_EXIT.search(command)
    return int(found.group(1)) if found else 0


def run_in_a_shell(command: str, env: dict[str, str]) -> int:
    """The exit status of the line, typed into a shell."""
    return subprocess.run(command, shell=True, check=False, env=env, capture_output=True, timeout=300).returncode


def run_here(command: str) -> int:
    """The exit status of the line in this process, which has loaded all that a command loads: calls of `leadline`
    joined by `&&`, with settings before them."""
    code = 0
    for part in re.split(r"\s&&\s", command):
        words = shlex.split(part, comments=True)
        settings = dict(word.split("=", 1) for word in takewhile(ASSIGNMENT.match, words))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", words[len(settings) :])
            assert sys.argv[0] == "leadline", command
            with pytest.raises(SystemExit) as ended:
                main()
        if code := int(ended.value.code or 0):
            break
    return code


def test_the_first_screen_has_the_two_commands() -> None:
    """A newcomer finds `make demo` and `make test` in the first forty lines."""
    first = "\n".join(README.splitlines()[:40])
    assert "make demo" in first
    assert "make test" in first


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, as the README's commands expect it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("workplace")
def test_every_command_works(capsys: pytest.CaptureFixture[str]) -> None:
    """Each `leadline` line of the README exits as it says (0 where it says nothing). The first is typed into a shell,
    where it is a process of its own, and the rest run here, one after the other."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    lines = commands()
    assert len(lines) >= 5
    for number, command in enumerate(lines):
        code = run_in_a_shell(command, env) if number == 0 else run_here(command)
        assert code == expected_exit(command), f"{command}\n{capsys.readouterr()}"
