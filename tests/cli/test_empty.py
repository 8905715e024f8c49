"""What a person is told who asks before anything was put in, or in a place where nothing is."""

from pathlib import Path
from typing import Any

import pytest

from leadline.cli import build

READING = (
    ("ls",),
    ("ask", "What is the rent?"),
    ("search", "rent"),
    ("explain", "What is the rent?"),
    ("rm", "lease.pdf", "--yes"),
    ("verify",),
    ("verify", "--repair"),
    ("stats",),
    ("reindex",),
    ("calibrate", "--clear"),
)


@pytest.mark.parametrize(("words", "code"), [(("ask", "--web", "never"), 4), (("search",), 0), (("explain",), 0)])
def test_an_empty_collection_is_named_with_what_to_do(
    leadline: Any, words: tuple[str, ...], code: int, nothing_in_it: Path
) -> None:
    """Asking or searching in an empty store says that it is empty and how to fill it, once; it looks only once."""
    done = leadline(*words, "What is the rent?", "--data-dir", nothing_in_it)
    assert done.code == code
    assert done.err.count("is empty") == 1
    assert "leadline ingest" in done.err
    assert "Looking again" not in done.err


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_mistyped_data_folder_is_an_error_and_is_not_made(
    leadline: Any, words: tuple[str, ...], tmp_path: Path
) -> None:
    """Commands that read name it and what would fill it; neither a missing folder nor a foreign one is written to."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for folder in (tmp_path / "typo", foreign):
        done = leadline(*words, "--data-dir", folder)
        assert done.code == 2
        assert f"The data folder {folder} " in done.err
        assert "leadline ingest" in done.err
    assert [*foreign.iterdir()] == []
    assert not (tmp_path / "typo").exists()


def test_the_default_folder_is_not_made_by_looking(leadline: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """In whatever directory a person happens to be, and wherever the environment points."""
    assert "The data folder .leadline does not exist" in leadline("ls").err
    monkeypatch.setenv("LEADLINE_DATA_DIR", str(tmp_path / "elsewhere"))
    assert str(tmp_path / "elsewhere") in leadline("ls").err
    assert [*Path.cwd().iterdir()] == []
    assert not (tmp_path / "elsewhere").exists()


def test_a_record_needs_its_data_folder_too(leadline: Any, filled: Path, tmp_path: Path) -> None:
    """`replay` searches: where there is nothing to search it makes nothing."""
    record = tmp_path / "record.json"
    leadline("ask", "What does error E-217 mean?", "--data-dir", filled, "--record", record)
    done = leadline("replay", record, "--data-dir", tmp_path / "typo")
    assert (done.code, "leadline ingest" in done.err) == (2, True)
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("words", [("ask",), ("search",), ("explain",)])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_question_is_refused_before_anything_is_opened(
    leadline: Any, words: tuple[str, ...], blank: str, tmp_path: Path
) -> None:
    """In the same words wherever it is asked, as bad usage."""
    done = leadline(*words, blank, "--data-dir", tmp_path / "none", "--json")
    assert done.code == 2
    assert '"code": "question", "message": "Nothing is asked: the question is empty."' in done.out
    assert not (tmp_path / "none").exists()


def test_a_default_in_the_help_is_in_brackets_once(leadline: Any) -> None:
    """Of every option of every command that takes one."""
    for command in build().registered_commands:
        assert command.callback is not None
        shown = " ".join(leadline(command.callback.__name__, "--help").out.split())
        assert "default: (" not in shown
    assert "[default: .leadline]" in shown
