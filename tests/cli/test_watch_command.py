"""`leadline watch`: a collection that follows folders."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

LEADLINE = [sys.executable, "-c", "from leadline.cli import main; main()"]
WAIT_S = 60


class Watching:
    """`leadline watch` of a folder, in a process of its own; the data folder lies in the watched one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / ".leadline"
        words = ["watch", str(folder), "--json", "--data-dir", str(self.data)]
        self.process = subprocess.Popen([*LEADLINE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: Queue[dict[str, Any]] = Queue()
        self.said: list[str] = []
        self._threads = [Thread(target=self._read, daemon=True), Thread(target=self._hear, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def _hear(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def end(self) -> None:
        """Ends it, if it is not over."""
        self.process.kill()
        with self.process:
            for thread in self._threads:
                thread.join(30)

    def rows(self) -> list[tuple[str, str]]:
        """File and status of the next change that is told."""
        return [(row["uri"], row["status"]) for row in self.lines.get(timeout=WAIT_S)["files"]]


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    """One over a folder with one document."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "harbour.md").write_text("The harbour opens at six.")
    watching = Watching(folder)
    yield watching
    watching.end()


@pytest.mark.skipif(os.name == "nt", reason="sends Ctrl-C's signal")
def test_what_is_new_changed_broken_or_gone_is_followed(watching: Watching, leadline: Any) -> None:
    """Each change is told once and can be asked about, while what is written into the data folder, which may lie in the
    watched one, and what begins with a dot set nothing off. Ctrl-C ends it with 0."""
    assert watching.rows() == [("harbour.md", "added")]
    (watching.folder / ".hidden.md").write_text("Not read.")
    (watching.folder / "pier.txt").write_text("The pier is 120 metres long.")
    assert watching.rows() == [("pier.txt", "added")]
    (watching.folder / "pier.txt").write_text("The pier is 150 metres long.")
    assert watching.rows() == [("pier.txt", "replaced")]
    (watching.folder / "broken.pdf").write_bytes(b"no PDF")
    assert watching.rows() == [("broken.pdf", "failed")]
    (watching.folder / "broken.pdf").unlink()
    (watching.folder / "harbour.md").unlink()
    assert watching.rows() == [("harbour.md", "removed")]
    found = leadline("search", "pier metres", "--json", "--data-dir", watching.data)
    texts = [found["content"] for found in json.loads(found.out)["results"]]
    assert texts == ["The pier is 150 metres long."]
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(30) == 0
    assert watching.lines.empty()
