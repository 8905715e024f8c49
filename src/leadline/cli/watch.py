"""`leadline watch`: keeps a collection in step with folders until it is ended."""

import asyncio
import contextlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.command import AsJson, Collection, DataDir, LockTimeout, run, settings_for
from leadline.cli.conversations import Redacted, redact
from leadline.cli.display import print_json, say
from leadline.cli.ingest import as_dict, show_report, took_out

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from watchfiles import Change
    from watchfiles.main import FileChange

    from leadline.config import Settings
    from leadline.ingest.pipeline import FileRow, IngestReport
    from leadline.knowledge import Library

Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folders.", show_default=False)
]
QUIET_MS = 500  # no change for so long: then what changed is read
LATEST_MS = 5000  # a folder that never rests is read all the same


def watch(
    folders: Folders,
    collection: Collection = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Keep a collection in step with folders, until Ctrl-C."""

    async def work() -> int:
        settings = settings_for(data_dir, lock_timeout)
        with contextlib.suppress(asyncio.CancelledError):  # Ctrl-C: how it ends
            await _watch(settings, folders, collection or settings.run.collection, as_json=as_json)
        return 0

    run(work(), as_json=as_json)


async def _watch(settings: "Settings", folders: list[Path], collection: str, *, as_json: bool) -> None:
    from leadline.knowledge import open_library

    told = _Told(as_json)
    async with (
        open_library(settings) as library,
        contextlib.aclosing(document_changes(folders, settings.data_dir)) as changes,
    ):
        # Begun before the first reading, so that nothing that changes meanwhile is missed.
        change = asyncio.ensure_future(anext(changes, None))
        try:
            await _in_step(settings, library, folders, collection, told)
            say("Watching. Ctrl-C ends it.", stderr=True)
            while await change is not None:
                change = asyncio.ensure_future(anext(changes, None))
                await _in_step(settings, library, folders, collection, told)
        finally:
            change.cancel()
            await asyncio.wait({change})


def document_changes(folders: list[Path], data_dir: Path) -> "AsyncGenerator[set[FileChange], None]":
    """What changes below the folders and can be documents: what ingest passes over is none, nor is the data folder."""
    from watchfiles import awatch

    # Changes are told by the path that was given, which may lead through links or up and down again.
    places, own = [folder.resolve() for folder in folders], data_dir.resolve()

    def is_documents(_change: "Change", path: str) -> bool:
        changed = Path(path)
        return not changed.is_relative_to(own) and any(_is_seen(changed, place) for place in places)

    return awatch(*places, watch_filter=is_documents, step=QUIET_MS, debounce=LATEST_MS)


def _is_seen(path: Path, place: Path) -> bool:
    """Whether a path is below a folder that is watched, and nothing from there on begins with a dot."""
    return path.is_relative_to(place) and not any(part.startswith(".") for part in path.relative_to(place).parts)


async def _in_step(
    settings: "Settings", library: "Library", folders: list[Path], collection: str, told: "_Told"
) -> None:
    from leadline.errors import IngestError, StoreError
    from leadline.ingest.pipeline import ingest_paths

    try:
        base = await library.collection(collection, create=True)
        report = await ingest_paths(base, folders, settings, sync=True)
        redacted = await redact(settings, library) if took_out(report) else Redacted()
    except (IngestError, StoreError) as error:  # a folder that is gone for a moment, another writer: the next change
        say(f"Not in step: {error}", style="yellow", stderr=True)
        return
    told.tell(report, redacted)


class _Told:
    """Tells each change once: a file that stays as it is, or goes on failing, is not told again."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._failed: dict[str, str | None] = {}

    def tell(self, report: "IngestReport", redacted: Redacted) -> None:
        """What a reading changed, if anything; as one JSON object on one line, or as `ingest` shows it."""
        news = [row for row in report.rows if self._is_news(row)]
        self._failed = {row.uri: row.error for row in report.rows if row.status == "failed"}
        if not news and not report.removed:
            return
        report.rows[:] = news
        if self._as_json:
            print_json({**as_dict(report), "redacted": asdict(redacted)})
            sys.stdout.flush()
        else:
            show_report(report)
            redacted.show()

    def _is_news(self, row: "FileRow") -> bool:
        failed_before = row.uri in self._failed and self._failed[row.uri] == row.error
        return row.status != "unchanged" and not (row.status == "failed" and failed_before)
