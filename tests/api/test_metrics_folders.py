"""What servers that were killed left of their counters is removed by the next one; nothing else is."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from leadline.api.metrics import FOLDER, metrics_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes links, and asks who a folder belongs to")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(FOLDER, raising=False)
    return tmp_path


def ended() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_by(temporary: Path, server: object, *workers: int) -> Path:
    """A folder with the files of these workers."""
    folder = temporary / f"leadline-metrics-{server}-abc"
    folder.mkdir()
    for worker in workers:
        (folder / f"gauge_livesum_{worker}.db").write_bytes(b"")
    return folder


def now_there(temporary: Path) -> set[Path]:
    """What is there while another server runs, without its own."""
    with metrics_folder(2):
        return set(temporary.iterdir()) - {Path(os.environ[FOLDER])}


def test_what_a_killed_server_left_is_removed(temporary: Path) -> None:
    """With the server and its workers gone, the folder goes with the files in it."""
    gone = ended()
    left_by(temporary, gone, gone)
    assert now_there(temporary) == set()
    assert list(temporary.iterdir()) == []


def test_what_may_be_in_use_stays(temporary: Path) -> None:
    """The folder of a server that lives, of one whose worker still does, and what is called otherwise."""
    gone, alive = ended(), os.getpid()
    kept = {left_by(temporary, alive), left_by(temporary, gone, gone, alive), left_by(temporary, "x", gone)}
    assert now_there(temporary) == kept


def test_what_is_not_ours_stays(temporary: Path) -> None:
    """A link, a file, and the folder of another user are left alone, and so is what a link leads to."""
    gone = ended()
    (temporary / "elsewhere").mkdir()
    (temporary / f"leadline-metrics-{gone}-link").symlink_to(temporary / "elsewhere")
    (temporary / f"leadline-metrics-{gone}-file").touch()
    if os.getuid() == 0:  # only root can give a folder away
        os.chown(left_by(temporary, gone), 12345, 12345)
    before = set(temporary.iterdir())
    assert now_there(temporary) == before
