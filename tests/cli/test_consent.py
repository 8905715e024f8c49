"""Consent to a web search: asked once, remembered, never assumed."""

import asyncio
from pathlib import Path

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
