"""Consent to a web search: asked once, remembered, never assumed."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import consent

END_OF_INPUT = b"\x04"
PROMPT = "Allow web searches?"
Types = Callable[[bytes], None]


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Types]:
    """Somebody at a terminal, who types what is given."""
    pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal, encoding="utf-8") as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        monkeypatch.setattr(consent, "is_interactive", lambda: True)

        def types(keys: bytes) -> None:
            os.write(keyboard, keys)

        yield types
    os.close(keyboard)


def asked(data_dir: Path, *queries: str, clear: Callable[[], None] = lambda: None) -> list[bool]:
    """What is granted to each of the queries."""

    async def ask() -> list[bool]:
        asker = consent.consent_asker(data_dir, clear)
        assert asker is not None
        return [await asker(query) for query in queries]

    return asyncio.run(ask())


def test_nobody_there_means_no_asker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal there is nobody to ask, which a run takes for a no."""
    monkeypatch.setattr(consent, "is_interactive", lambda: False)
    (tmp_path / consent.FILE).write_text('{"web": true}', encoding="utf-8")
    assert consent.consent_asker(tmp_path, lambda: None) is None


@pytest.mark.parametrize(("typed", "granted"), [("y", True), ("YES", True), ("", False), ("n", False), ("what", False)])
def test_only_a_clear_yes_is_a_yes(tmp_path: Path, at_terminal: Types, typed: str, granted: bool) -> None:
    """Anything but y or yes is a no."""
    at_terminal(typed.encode() + b"\n")
    assert asked(tmp_path, "capital of France") == [granted]


def test_the_query_is_shown_and_the_answer_remembered(
    tmp_path: Path, at_terminal: Types, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second search doesn't ask again; the file that remembers is named."""
    at_terminal(b"y\n")
    assert asked(tmp_path, "capital of France", "another question") == [True, True]
    shown = capsys.readouterr().err
    assert "capital of France" in shown.split(PROMPT)[0]
    assert shown.count(PROMPT) == 1
    assert consent.FILE in shown


def test_once_is_for_this_query_alone(tmp_path: Path, at_terminal: Types, capsys: pytest.CaptureFixture[str]) -> None:
    """It is granted and not remembered, so that the next search asks again."""
    at_terminal(b"o\nOnce\nn\n")
    assert asked(tmp_path, "one", "two", "three") == [True, True, False]
    shown = capsys.readouterr().err
    assert all(choice in shown for choice in ("[y]es", "[o]nce", "[N]o"))


def test_a_hostile_query_cannot_steer_the_terminal(
    tmp_path: Path, at_terminal: Types, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters of what is shown are made visible: what is agreed to is what is seen."""
    at_terminal(b"n\n")
    asked(tmp_path, "harmless\x1b[2K\rsecret\u202e [red]x[/red]")
    shown = capsys.readouterr().err
    assert "\x1b[2K" not in shown
    assert "\u202e" not in shown
    assert "secret" in shown
    assert "[red]x[/red]" in shown


def test_a_damaged_memory_asks_again(tmp_path: Path, at_terminal: Types, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that says neither yes nor no is not taken for a yes."""
    (tmp_path / consent.FILE).write_text('{"web": "sure"}', encoding="utf-8")
    at_terminal(b"n\n")
    assert asked(tmp_path, "q") == [False]
    assert PROMPT in capsys.readouterr().err


def test_a_closed_input_is_a_no_and_not_remembered(tmp_path: Path, at_terminal: Types) -> None:
    """Who goes away without an answer has agreed to nothing, and is asked the next time."""
    at_terminal(END_OF_INPUT)
    cleared: list[bool] = []
    assert asked(tmp_path, "q", clear=lambda: cleared.append(True)) == [False]
    assert cleared == [True]
    assert not (tmp_path / consent.FILE).exists()


def test_who_is_asked_holds_nothing_up(tmp_path: Path, at_terminal: Types) -> None:
    """The rest of the run goes on meanwhile, and an interrupt ends the question at once: nothing is remembered."""

    async def leave() -> None:
        asker = consent.consent_asker(tmp_path, lambda: None)
        assert asker is not None
        async with asyncio.timeout(0.3):
            await asker("q")

    begun = time.monotonic()
    late = threading.Timer(3.0, at_terminal, [b"y\n"])  # so that a read that blocks ends in the end
    late.start()
    with pytest.raises(TimeoutError):
        asyncio.run(leave())
    late.cancel()
    assert time.monotonic() - begun < 2.5
    assert not (tmp_path / consent.FILE).exists()


CUP = "Who won the football world cup in 1990?"
# The client compiles its parser's patterns with flags that newer versions of Python advise against.
a_web = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@a_web
@pytest.mark.parametrize("policy", ["auto", "always"])
def test_in_a_pipe_nothing_goes_out_without_a_yes(leadline: Any, filled: Path, search_server: Any, policy: str) -> None:
    """Nobody can be asked, and an approval that nobody gave is none: not one byte reaches the search engine."""
    search_server.results = [("World cup 1990", "https://cup.example/", "Germany won the football world cup in 1990.")]
    done = leadline("ask", CUP, "--web", policy, "--data-dir", filled)
    assert done.code == 4, done
    assert not search_server.recorded


@a_web
def test_with_a_yes_the_question_goes_out_and_is_shown(leadline: Any, filled: Path, search_server: Any) -> None:
    """That, and nothing else; the answer names the page as one of the web, with its address and time."""
    search_server.results = [("World cup 1990", "https://cup.example/", "Germany won the football world cup in 1990.")]
    done = leadline("ask", CUP, "--yes", "--data-dir", filled)
    assert search_server.queries == [CUP]
    assert f"Sent to the web search: {CUP}" in done.err
    assert done.code == 0, done
    assert "cup.example: World cup 1990 web <https://cup.example/>, 20" in done.out
