"""Asks the crashing program for jobs, and how many rounds of them a test is to make."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROUNDS: Final = int(os.environ.get("LEADLINE_CRASH_ROUNDS") or 10)
THOROUGH: Final = ROUNDS >= 100
ROOT: Final = Path(__file__).parents[2]


class Crasher:
    """The program, warmed up, and a folder for what it works on."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._count = 0

    def run(self, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Has the jobs done, each on a folder of its own unless it names one; their results, in their order.

        Fails if one could not be done.
        """
        placed = [self._placed(job) for job in jobs]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(placed) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"
        results = [json.loads(Path(job["result"]).read_bytes()) for job in placed]
        for job, result in zip(placed, results, strict=True):
            assert "failed" not in result, f"{job}\n{result['failed']}"
        return results

    def template(self, name: str, **job: Any) -> Path:
        """The folder that a job leaves, to be copied by others. Made once."""
        folder = self._folder / name
        if not folder.exists():
            self.run([{"folder": str(folder), "keep": True, **job}])
        return folder

    def _placed(self, job: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        own = self._folder / f"job{self._count}"
        return {"folder": str(own), **job, "result": f"{own}.json"}


@contextmanager
def crasher(folder: Path) -> Iterator[Crasher]:
    """Starts the program and ends it."""
    command = [sys.executable, "-m", "tests.knowledge.crashing"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE_")}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Crasher(process, folder)
        process.kill()
