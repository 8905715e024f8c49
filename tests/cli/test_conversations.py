"""Commands that delete take the answers made from what they delete out of the conversations, and off the disk."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT_TEXT = {"plan.md": "Project Quokka has a budget of 42 million.", "roses.md": "Roses are pruned in March."}
QUESTION = "What budget does Project Quokka have?"


@pytest.fixture
def asked(leadline: Any, tmp_path: Path) -> Path:
    """A data folder with two documents and a conversation about one of them; the documents are in `docs` beside it."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in ROOT_TEXT.items():
        (docs / name).write_text(text, encoding="utf-8")
    data = tmp_path / "data"
    assert leadline("ingest", docs, "--data-dir", data).code == 0
    for thread, question in (("budget", QUESTION), ("garden", "When are roses pruned?")):
        assert leadline("ask", question, "--thread", thread, "--data-dir", data).code == 0
    assert {"42 million", "in March"} <= set(left_of(data))
    return data


def left_of(data: Path) -> list[str]:
    """Which of the two answers stand in the conversations' files."""
    files = b"".join(path.read_bytes() for path in data.glob("threads.db*"))
    return [words for words in ("42 million", "in March") if words.encode() in files]


def test_rm_redacts_conversations(leadline: Any, asked: Path) -> None:
    """The answer is gone from the file and from the next turn; other conversations stay."""
    done = leadline("rm", "plan.md", "--yes", "--data-dir", asked)
    assert done.code == 0
    assert "removed from 1 conversations" in done.err
    assert left_of(asked) == ["in March"]
    again = leadline("ask", QUESTION, "--thread", "budget", "--data-dir", asked, "--json")
    assert (again.code, json.loads(again.out)["status"]) == (4, "abstained")
    assert "42 million" not in again.out


def test_rm_reports_it_as_json(leadline: Any, asked: Path) -> None:
    """One document, with the number of conversations."""
    done = leadline("rm", "plan.md", "--yes", "--data-dir", asked, "--json")
    assert json.loads(done.out)["redacted"] == {"conversations": 1, "owed": ""}


def test_a_sync_redacts_what_it_removes(leadline: Any, asked: Path) -> None:
    """A dry run doesn't."""
    docs = asked.parent / "docs"
    (docs / "plan.md").unlink()
    assert leadline("ingest", docs, "--sync", "--dry-run", "--data-dir", asked).code == 0
    assert left_of(asked) == ["42 million", "in March"]
    done = leadline("ingest", docs, "--sync", "--data-dir", asked)
    assert (done.code, left_of(asked)) == (0, ["in March"])


def test_an_ingest_redacts_what_it_replaces(leadline: Any, asked: Path) -> None:
    """The old text goes, and the number of conversations is said."""
    docs = asked.parent / "docs"
    (docs / "roses.md").write_text("Roses are pruned in May.", encoding="utf-8")
    done = leadline("ingest", docs, "--data-dir", asked, "--json")
    assert json.loads(done.out)["redacted"]["conversations"] == 1
    assert left_of(asked) == ["42 million"]


def test_conversations_that_cant_be_read_are_named(leadline: Any, asked: Path) -> None:
    """The document is deleted all the same; the exit code says that not everything could follow."""
    for path in asked.glob("threads.db*"):
        path.write_bytes(b"no database " * 500)
    done = leadline("rm", "plan.md", "--yes", "--data-dir", asked)
    assert done.code == 3
    assert "conversations could not follow" in done.err
    assert "plan.md" not in leadline("ls", "--data-dir", asked).out


def test_without_conversations_none_are_made(leadline: Any, filled: Path) -> None:
    """Neither the file nor a word about it."""
    done = leadline("rm", "harbour-history.md", "--yes", "--data-dir", filled)
    assert "conversations" not in done.out + done.err
    assert not (filled / "threads.db").exists()
