"""A disk that is full, and a folder that may only be read: a clear error, nothing lost, and it goes on afterwards.

Both are real: a small file system in memory, mounted where only the program under test sees it.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.knowledge.crash_client import ROOT

MOUNT = 'mount -t tmpfs -o size=160m none "$1" && exec "$2" -m tests.knowledge.no_room "$1" "$3" "$4"'
KIB = 1024
# Little by little up to where it fits. Chroma isn't let near a full disk, so it needs much more.
ROOMS = [0, 12, 24, 48, 80, 130, 200, 400, 36 * KIB]
OTHERS = {"vector_backend": "faiss", "lexical_backend": "rank-bm25"}
REMEDIES = ("Make room on", "Give this user the right to write")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where a file system is mounted, seen by one program only. Skips where this user may not do that."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(folder)]
        probe = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("the program unshare is not installed: a full disk needs a file system of its own")
    if probe.returncode:
        pytest.skip(f"this user may not mount a file system of its own: {probe.stderr.decode().strip()}")
    return folder


def done(disk: Path, what: str, given: dict[str, Any]) -> Any:
    """What the program says of its work on the disk."""
    command = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(disk), sys.executable, what, json.dumps(given)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("settings", [{}, OTHERS], ids=["chroma and tantivy", "faiss and rank-bm25"])
def test_a_replacement_on_a_full_disk(disk: Path, settings: dict[str, Any]) -> None:
    """However much room there is, it is made or refused with what to do; then the same open collection goes on."""
    result = done(disk, "full", {**settings, "rooms": [room * KIB for room in ROOMS]})
    refused = [each for each in result["tried"] if each["error"]]
    assert len(refused) >= 3
    for each in result["tried"]:
        others = {"tide": 1, "crane": 1}
        kept = [{"plan": each["put"], **others}] + [{"plan": each["before"], **others}] * bool(each["error"])
        assert each["state"]["problems"] == [], each
        assert each["state"]["versions"] in kept, each
        assert each["again"] == "", each
        assert each["after"] == {"versions": kept[0], "problems": []}, each
    assert [each["error"] for each in refused if not any(remedy in each["error"] for remedy in REMEDIES)] == []
    assert result["tried"][-1]["error"] == ""
    assert result["found"] == {"versions": kept[0], "problems": []}


@pytest.mark.parametrize("settings", [{}, OTHERS], ids=["chroma and tantivy", "faiss and rank-bm25"])
def test_a_folder_on_a_full_disk_from_the_start(disk: Path, settings: dict[str, Any]) -> None:
    """What was half made there holds nobody up once there is room."""
    result = done(disk, "start", settings)
    assert [error for error in result["errors"] if not any(remedy in error for remedy in REMEDIES)] == []
    assert result["last"] == ""
    assert result["found"] == {"versions": {"plan": 1}, "problems": []}


def test_the_command_line_says_what_is_wrong(disk: Path) -> None:
    """With an exit code that tells, a row for each file that failed, and what to do; nothing is changed."""
    said = done(disk, "commands", {})
    assert said["full"]["code"] == 1
    assert "is full" in said["full"]["said"]
    assert said["nearly full"]["code"] in (1, 3)
    assert "Make room on it" in said["nearly full"]["said"]
    for name in ("ingest", "search"):
        assert said[f"read only {name}"]["code"] == 1
        assert REMEDIES[1] in said[f"read only {name}"]["said"]
    assert said["changed"] == []
    assert said["with room"]["code"] == 0, said
