"""`leadline ingest`: every file gets a row, one bad file stops nothing, and the exit code tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.cli.ingest import show_report
from leadline.events import DocumentsPruned
from leadline.ingest.pipeline import IngestReport


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two good files and one that only says it is a Word file."""
    place = tmp_path / "docs"
    place.mkdir()
    (place / "ok1.md").write_text("# Vault\n\nThe vault code is 7719.\n", encoding="utf-8")
    (place / "broken.docx").write_bytes(b"\x00\xffnot a zip at all")
    (place / "ok2.md").write_text("# Garden\n\nRoses are pruned in March.\n", encoding="utf-8")
    return place


def statuses(out: str) -> dict[str, str]:
    """File → status of a JSON report."""
    return {row["file_name"]: row["status"] for row in json.loads(out)["files"]}


def test_one_bad_file_is_reported_and_the_others_go_in(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """Exit code 3, a line for each file, and both good ones can be listed."""
    done = leadline("ingest", folder, "--data-dir", tmp_path / "data")
    assert done.code == 3
    lines = {line.split("\t")[0]: line.split("\t")[1] for line in done.out.splitlines()}
    assert lines == {"file": "status", "broken.docx": "failed", "ok1.md": "added", "ok2.md": "added"}
    listed = leadline("ls", "--data-dir", tmp_path / "data", "--json")
    assert [source["file_name"] for source in json.loads(listed.out)] == ["ok1.md", "ok2.md"]


def test_a_file_that_takes_too_long_is_given_up_and_the_others_go_in(
    leadline: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row says after how long, and which setting allows more; exit code 3."""
    (folder / "broken.docx").unlink()
    attributes = " ".join(f"a{n}=x" for n in range(400_000))  # each is compared with all before it
    (folder / "made_to_hold_up.html").write_text(f"<p {attributes}>x", encoding="utf-8")
    monkeypatch.setenv("LEADLINE_MAX_FILE_SECONDS", "0.5")
    done = leadline("ingest", folder, "--data-dir", tmp_path / "data", "--json")
    assert done.code == 3
    assert statuses(done.out) == {"made_to_hold_up.html": "failed", "ok1.md": "added", "ok2.md": "added"}
    [said] = [row["error"] for row in json.loads(done.out)["files"] if row["status"] == "failed"]
    assert said == "It could not be read within 0.5 s. Split it, or raise LEADLINE_MAX_FILE_SECONDS."


def test_the_same_files_again_change_nothing(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """Unchanged files are left alone and said to be so; a copy under another name is told as one."""
    (folder / "broken.docx").unlink()
    assert leadline("ingest", folder, "--data-dir", tmp_path / "data").code == 0
    (folder / "copy.md").write_bytes((folder / "ok1.md").read_bytes())
    done = leadline("ingest", folder, "--data-dir", tmp_path / "data", "--json")
    assert done.code == 0
    assert statuses(done.out) == {"ok1.md": "unchanged", "ok2.md": "unchanged", "copy.md": "added"}
    copy = next(row for row in json.loads(done.out)["files"] if row["file_name"] == "copy.md")
    assert copy["copy_of"] == "ok1.md"


def test_a_changed_file_replaces_its_old_text(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """After a second ingest of the same name only the new text can be found."""
    data = ("--data-dir", tmp_path / "data")
    leadline("ingest", folder / "ok1.md", *data)
    (folder / "ok1.md").write_text("# Vault\n\nThe vault code is 8820.\n", encoding="utf-8")
    assert statuses(leadline("ingest", folder / "ok1.md", *data, "--json").out) == {"ok1.md": "replaced"}
    found = json.loads(leadline("search", "vault code 7719", *data, "--json").out)["results"]
    assert [document["content"] for document in found] == ["The vault code is 8820."]


def test_sync_removes_what_is_gone_but_not_after_a_failure(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """With a failed file nothing is removed; without, the document whose file has gone is."""
    data = ("--data-dir", tmp_path / "data")
    leadline("ingest", folder, *data)
    (folder / "ok2.md").unlink()
    held = leadline("ingest", folder, "--sync", *data)
    assert held.code == 3
    assert "Removed 0" in held.err
    (folder / "broken.docx").unlink()
    done = leadline("ingest", folder, "--sync", *data)
    assert done.code == 0
    assert "Removed 1 documents that are gone." in done.err
    assert "ok2.md\tremoved" in done.out


def test_a_dry_run_changes_nothing(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """It says what would go in, and nothing is there afterwards."""
    data = ("--data-dir", tmp_path / "data")
    done = leadline("ingest", folder / "ok1.md", "--dry-run", *data)
    assert done.code == 0
    assert "nothing was changed" in done.err
    assert json.loads(leadline("ls", *data, "--json").out) == []


def test_a_rehearsed_sync_names_what_it_would_add_replace_and_remove(
    leadline: Any, folder: Path, tmp_path: Path
) -> None:
    """One line a document with its status, in words and as JSON; the real run then says and does the same."""
    data = ("--data-dir", tmp_path / "data")
    (folder / "broken.docx").unlink()
    (folder / "gone.md").write_text("Gone.", encoding="utf-8")
    assert leadline("ingest", folder, *data).code == 0
    (folder / "gone.md").unlink()
    (folder / "ok2.md").write_text("# Garden\n\nRoses are pruned in May.\n", encoding="utf-8")
    (folder / "new.md").write_text("New.", encoding="utf-8")
    expected = {"new.md": "added", "ok1.md": "unchanged", "ok2.md": "replaced", "gone.md": "removed"}
    before = leadline("ls", *data, "--json").out
    rehearsal = leadline("ingest", folder, "--sync", "--dry-run", *data)
    assert rehearsal.code == 0
    assert "Would remove 1 documents" in rehearsal.err
    lines = [line.split("\t") for line in rehearsal.out.splitlines()[1:]]
    assert {line[0]: line[1] for line in lines} == expected
    as_json = leadline("ingest", folder, "--sync", "--dry-run", *data, "--json").out
    assert statuses(as_json) == expected
    assert json.loads(as_json)["pruned"]["items"] == ["gone.md"]
    assert leadline("ls", *data, "--json").out == before
    assert statuses(leadline("ingest", folder, "--sync", *data, "--json").out) == expected
    assert leadline("verify", *data).code == 0
    assert {row["uri"] for row in json.loads(leadline("ls", *data, "--json").out)} == expected.keys() - {"gone.md"}


def test_where_files_only_went_away_none_are_missed(capsys: pytest.CaptureFixture[str]) -> None:
    """As `watch` tells it: what was removed, and no word of files that can't be read."""
    show_report(IngestReport(pruned=DocumentsPruned(deleted=1, kept=0, items=("gone.md",))))
    shown = capsys.readouterr()
    assert "gone.md" in shown.out
    assert "No supported files" not in shown.err


def test_a_path_that_is_not_there_is_bad_usage(leadline: Any, tmp_path: Path) -> None:
    """Exit code 2 before anything is opened."""
    done = leadline("ingest", tmp_path / "nowhere", "--data-dir", tmp_path / "data")
    assert done.code == 2
    assert "nowhere" in done.err
    assert not (tmp_path / "data").exists()


def test_a_folder_without_documents_is_no_success(leadline: Any, tmp_path: Path) -> None:
    """Nothing went in: exit code 1 and a line that says so."""
    (tmp_path / "empty").mkdir()
    done = leadline("ingest", tmp_path / "empty", "--data-dir", tmp_path / "data")
    assert done.code == 1
    assert "No supported files" in done.err


def test_files_of_unread_kinds_are_counted(leadline: Any, tmp_path: Path) -> None:
    """What a folder holds beside documents is left out, and said: nobody should think that it went in."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.md").write_text("The vault code is 7719.", encoding="utf-8")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / ".git").mkdir()
    (folder / ".git" / "hidden.jpg").write_bytes(b"\xff\xd8\xff")
    done = leadline("ingest", folder, "--data-dir", tmp_path / "data")
    assert done.code == 0
    assert ".jpg (1)" in done.err
