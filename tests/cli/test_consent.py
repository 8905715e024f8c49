"""Consent to a web search: asked once, remembered, never assumed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from leadline.cli import consent


def answer(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Somebody at the terminal who gives these answers; returns what is left of them."""
    left = list(answers)
    monkeypatch.setattr(consent, "is_interactive", lambda: True)
    monkeypatch.setattr("builtins.input", lambda *_: left.pop(0))
    return left


def test_nobody_there_means_no_asker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal there is nobody to ask, which a run takes for a no."""
    monkeypatch.setattr(consent, "is_interactive", lambda: False)
    (tmp_path / consent.FILE).write_text('{"web": true}', encoding="utf-8")
    assert consent.consent_asker(tmp_path, lambda: None) is None


@pytest.mark.parametrize(("typed", "granted"), [("y", True), ("YES", True), ("", False), ("n", False), ("what", False)])
def test_only_a_clear_yes_is_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, granted: bool) -> None:
    """Anything but y or yes is a no; the query that would go out is shown first."""
    answer(monkeypatch, typed)
    asker = consent.consent_asker(tmp_path, lambda: None)
    assert asker is not None
    assert asyncio.run(asker("capital of France")) is granted


def test_the_query_is_shown_and_the_answer_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second search doesn't ask again; the file that remembers is named."""
    left = answer(monkeypatch, "y")
    asker = consent.consent_asker(tmp_path, lambda: None)
    assert asker is not None
    assert asyncio.run(asker("capital of France")) is True
    assert asyncio.run(asker("another question")) is True
    assert left == []
    shown = capsys.readouterr().err
    assert "capital of France" in shown
    assert consent.FILE in shown


def test_once_is_for_this_query_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is granted and not remembered, so that the next search asks again."""
    answer(monkeypatch, "o", "Once", "n")
    asker = consent.consent_asker(tmp_path, lambda: None)
    assert asker is not None
    assert [asyncio.run(asker(query)) for query in ("one", "two", "three")] == [True, True, False]
    shown = capsys.readouterr().err
    assert all(choice in shown for choice in ("[y]es", "[o]nce", "[N]o"))


def test_a_hostile_query_cannot_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters of what is shown are made visible: what is agreed to is what is seen."""
    answer(monkeypatch, "n")
    asker = consent.consent_asker(tmp_path, lambda: None)
    assert asker is not None
    asyncio.run(asker("harmless\x1b[2K\rsecret\u202e [red]x[/red]"))
    shown = capsys.readouterr().err
    assert "\x1b[2K" not in shown
    assert "\u202e" not in shown
    assert "secret" in shown
    assert "[red]x[/red]" in shown


def test_a_damaged_memory_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that says neither yes nor no is not taken for a yes."""
    (tmp_path / consent.FILE).write_text('{"web": "sure"}', encoding="utf-8")
    left = answer(monkeypatch, "n")
    asker = consent.consent_asker(tmp_path, lambda: None)
    assert asker is not None
    assert asyncio.run(asker("q")) is False
    assert left == []


def test_a_closed_input_is_a_no_and_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who goes away without an answer has agreed to nothing, and is asked the next time."""

    def closed(*_: object) -> str:
        raise EOFError

    monkeypatch.setattr(consent, "is_interactive", lambda: True)
    monkeypatch.setattr("builtins.input", closed)
    cleared: list[bool] = []
    asker = consent.consent_asker(tmp_path, lambda: cleared.append(True))
    assert asker is not None
    assert asyncio.run(asker("q")) is False
    assert cleared == [True]
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
