"""`leadline explain`: the stage in words, a line a passage, at any width; hostile names and texts shown as text."""

import json
from pathlib import Path
from typing import Any

import pytest

QUESTION = "What does error E-217 mean?"


def test_a_used_document_is_told_at_a_glance(leadline: Any, filled: Path) -> None:
    """The name, the verdict, then a line a passage: ranks, logit, fate."""
    done = leadline("explain", QUESTION, "--doc", "tide-gauge", "--data-dir", filled)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("tide-gauge-manual.pdf  (10 passages, collection default")
    assert lines[1] == "Used: cited as [1]."
    assert "passage\tvector\tbm25\tgraph\tfused\trank\tlogit\tfate" in lines
    assert any(line.startswith("7 p3\t") and line.endswith("\tcited") for line in lines)
    assert sum(line.count("\t") == 7 for line in lines) == 11


def test_a_document_that_was_not_found(leadline: Any, filled: Path) -> None:
    """The rank that each leg would have it at, in brackets, and what would help."""
    done = leadline("explain", QUESTION, "--doc", "crossing-the-bar.txt", "--data-dir", filled)
    assert done.code == 0
    assert "Not used: no leg has it among its best 10" in done.out
    assert "The reranker would give it -" in done.out
    assert "CROSSING THE BAR" in done.out


def test_the_json_says_all(leadline: Any, filled: Path) -> None:
    """Stage, reason, hint, every passage, the run."""
    done = leadline("explain", QUESTION, "--doc", "emergency-plan.pdf", "--data-dir", filled, "--json")
    found = json.loads(done.out)
    assert found["stage"] == "beyond_top"
    assert found["used"] is False
    assert found["document"]["file_name"] == "emergency-plan.pdf"
    assert len(found["passages"]) == found["document"]["chunks"]
    assert found["run"]["status"] == "answered"
    deeper = [deep for passage in found["passages"] for deep in passage["deeper"]]
    assert {deep["leg"] for deep in deeper} == {"vector", "bm25", "graph"}


def test_without_a_document_every_candidate_is_shown(leadline: Any, filled: Path) -> None:
    """The rows of the result's context, kept ones first."""
    done = leadline("explain", QUESTION, "--data-dir", filled)
    rows = [line.split("\t") for line in done.out.splitlines() if "\t" in line]
    assert rows[0] == ["file", "passage", "vector", "bm25", "graph", "fused", "rank", "logit", "fate"]
    assert rows[1][-1] == "cited"
    context = json.loads(leadline("explain", QUESTION, "--data-dir", filled, "--json").out)["context"]
    assert len(rows) == len(context) + 1
    kept = [row["kept"] for row in context]
    assert kept == sorted(kept, reverse=True)


def test_what_is_not_there_is_an_explanation_and_several_an_error(leadline: Any, filled: Path) -> None:
    """A document that isn't in the catalog is the answer to the question; a name of several is a mistake."""
    missing = leadline("explain", QUESTION, "--doc", "nope.pdf", "--data-dir", filled)
    assert missing.code == 0
    assert "no document of this name" in missing.out
    several = leadline("explain", QUESTION, "--doc", "harbour", "--data-dir", filled)
    assert several.code == 1
    assert "harbour-handbook.md" in several.err
    assert "harbour-history.md" in several.err
    assert "Traceback" not in several.err


def test_an_llm_of_the_settings_is_not_called_unless_named(
    leadline: Any, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To explain costs nothing: only --llm calls one."""
    monkeypatch.setenv("LEADLINE_RUN__LLM", "openai/nobody-is-there")
    monkeypatch.setenv("LEADLINE_LLM_API_BASE", "http://127.0.0.1:9/v1")
    done = json.loads(leadline("explain", QUESTION, "--doc", "tide-gauge", "--data-dir", filled, "--json").out)
    assert done["run"]["models"]["llm"] == "extractive"
    assert done["used"]


def test_hostile_names_and_texts_are_shown_as_text(leadline: Any, tmp_path: Path) -> None:
    """Escape sequences and direction marks in a file's name, its text, the question and the name asked for."""
    name = "har\x1b[31mbour\u202e.html"
    text = "<p>The lock gate &#27;[2J&#27;]0;owned&#7; closes at [bold]nine[/bold] \u009b31m in the \u202eevening.</p>"
    (tmp_path / name).write_text(text, encoding="utf-8")
    data = ("--data-dir", tmp_path / "data")
    assert leadline("ingest", tmp_path / name, *data).code == 0
    question = "When does the lock\x1b[2J gate close?"
    for words in (["--doc", "har"], ["--doc", "har", "--json"], [], ["--doc", "\x1b]0;x\x07"], ["--doc", name]):
        done = leadline("explain", question, *words, *data)
        assert done.code == 0, done
        assert done.out
        assert not set("\x1b\x07\x9b\u202e") & set(done.out + done.err), words
