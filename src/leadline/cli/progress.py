"""Progress of long work, on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leadline.cli.display import console, plain, say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_EVERY_S = 10.0


class Bars:
    """One bar a task; tasks are told apart by their name."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def set(self, task: str, done: int, total: int) -> None:
        """Where a task stands."""
        if task not in self._tasks:
            self._tasks[task] = self._progress.add_task(plain(task, one_line=True), total=total)
        self._progress.update(self._tasks[task], completed=done, total=total)


class Lines:
    """The same in a pipe: a line when a task has ended, and every ten seconds before."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def set(self, task: str, done: int, total: int) -> None:
        """Where a task stands."""
        now = time.monotonic()
        if done == total or now - self._said >= LINE_EVERY_S:
            self._said = now
            say(f"{plain(task, one_line=True)}: {done} of {total}", stderr=True)


@contextmanager
def progress_bars() -> Iterator[Bars | Lines]:
    """Shows progress while the block runs."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield Bars(progress)
