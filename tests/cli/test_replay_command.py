"""`leadline replay`: exit code 0 for the same, 5 for a difference, 1 for what is no record."""

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

QUESTION = "What does error E-217 mean?"


@pytest.fixture
def record(leadline: Any, filled: Path, tmp_path: Path) -> Path:
    """The record of an answer, as `ask --record` writes it."""
    path = tmp_path / "answer.json"
    done = leadline("ask", QUESTION, "--web", "never", "--record", path, "--data-dir", filled)
    assert done.code == 0, done
    assert "[1] tide-gauge-manual.pdf" in done.out
    return path


def test_the_record_is_the_result_of_json(leadline: Any, filled: Path, record: Path) -> None:
    """`--record` writes what `--json` prints, for its owner alone to read; both can be replayed."""
    printed = json.loads(leadline("ask", QUESTION, "--web", "never", "--json", "--data-dir", filled).out)
    written = json.loads(record.read_text(encoding="utf-8"))
    for result in (printed, written):
        result.pop("usage")
        result["record"].pop("result_hash")  # that of the seconds too
    assert printed == written
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert [path.name for path in record.parent.glob(".*")] == []


def test_nothing_changed_is_exit_code_0(leadline: Any, filled: Path, record: Path) -> None:
    """One line says so."""
    done = leadline("replay", record, "--data-dir", filled)
    assert (done.code, done.err) == (0, "")
    assert "The same: 17 candidates" in done.out


def test_a_difference_is_exit_code_5(leadline: Any, filled: Path, record: Path) -> None:
    """Each stands on a line of its own, evidence first; --json has them all."""
    leadline("rm", "tide-gauge-manual.pdf", "--yes", "--data-dir", filled)
    done = leadline("replay", record, "--data-dir", filled)
    assert done.code == 5
    assert "tide-gauge-manual.pdf, page 3, passage 7 is not in the documents any more.  [was evidence]" in done.out
    as_json = leadline("replay", record, "--data-dir", filled, "--json")
    assert as_json.code == 5
    found = json.loads(as_json.out)
    assert found["same"] is False
    assert {d["kind"] for d in found["differences"]} >= {"gone", "moved", "evidence"}
    assert all(d["text"] for d in found["differences"])


def test_a_record_that_was_edited_is_exit_code_5(leadline: Any, filled: Path, record: Path) -> None:
    """Another number before a quote: what is found is the same, and the record is not what the run wrote."""
    result = json.loads(record.read_text(encoding="utf-8"))
    result["citations"][0]["n"] = 7
    record.write_text(json.dumps(result), encoding="utf-8")
    done = leadline("replay", record, "--data-dir", filled)
    assert done.code == 5
    assert "The record was changed since it was written" in done.out


def test_a_record_from_a_pipe(leadline: Any, filled: Path, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """- reads standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(record.read_text(encoding="utf-8")))
    assert leadline("replay", "-", "--data-dir", filled).code == 0


def test_what_is_no_record_is_exit_code_1(leadline: Any, filled: Path, tmp_path: Path) -> None:
    """A missing file, another kind of file, bytes that are no text: one sentence, no traceback."""
    binary, other = tmp_path / "binary", tmp_path / "other.json"
    binary.write_bytes(b"\xff\xfe\x00")
    other.write_text('{"name": "package"}', encoding="utf-8")
    for path in (tmp_path / "missing.json", tmp_path, binary, other):
        done = leadline("replay", path, "--data-dir", filled)
        assert done.code == 1, (path, done)
        assert done.err.startswith("Error: ")
        assert "Traceback" not in done.err
        assert json.loads(leadline("replay", path, "--data-dir", filled, "--json").out)["error"]["message"]


def test_a_hostile_record_cannot_steer_the_terminal(leadline: Any, filled: Path, record: Path) -> None:
    """Names in it are shown as text, cut from nothing and coloured by nobody."""
    result = json.loads(record.read_text(encoding="utf-8"))
    result["question"] = "What\x1b[2J\u202e?"
    for row in result["context"]:
        row["file_name"] = "a\x1b]0;owned\x07.md\nDifferent (0)"
        row["chunk_id"] = "nowhere " + row["chunk_id"]
    record.write_text(json.dumps(result), encoding="utf-8")
    done = leadline("replay", record, "--data-dir", filled)
    assert done.code == 5
    assert not set("\x1b\x07\u202e") & set(done.out + done.err)
    assert "\nDifferent (0)" not in done.out


def test_a_place_that_cannot_be_written_loses_no_answer(leadline: Any, filled: Path, tmp_path: Path) -> None:
    """The answer is shown, then what is wrong with the file, and the command has failed."""
    done = leadline("ask", QUESTION, "--record", tmp_path / "no" / "where.json", "--data-dir", filled)
    assert done.code == 1
    assert "battery voltage" in done.out
    assert "where.json" in done.err
