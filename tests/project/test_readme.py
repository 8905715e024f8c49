"""Every command in the README is run, in the order it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
# What CI runs itself, before or around this test; and servers, which the tests of the API and of Studio start.
ELSEWHERE = ("make ", "git clone", "cd ", "pip install")
SERVERS = ("leadline serve", "make studio")
ALLOWED_EXIT = re.compile(r"#.*exits? (\d)")


def commands() -> list[str]:
    """The README's shell lines, without comments and blank lines."""
    lines = [line.strip() for block in BLOCKS for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_the_first_screen_has_the_two_commands() -> None:
    """A newcomer finds `make demo` and `make test` in the first forty lines."""
    first = "\n".join(README.splitlines()[:40])
    assert "make demo" in first
    assert "make test" in first


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with the examples, as the README's commands expect it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def test_every_command_works(workplace: Path) -> None:
    """Each `leadline` line of the README exits as it says (0 where it says nothing)."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("LEADLINE_")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    ran = 0
    for command in commands():
        if command.startswith((*ELSEWHERE, *SERVERS)):
            continue
        found = ALLOWED_EXIT.search(command)
        expected = int(found.group(1)) if found else 0
        done = subprocess.run(
            command, shell=True, check=False, cwd=workplace, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran >= 5
