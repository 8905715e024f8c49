"""From paths to a collection: files are prepared ahead while those before them are embedded and stored.

    report = await ingest_paths(kb, [Path("docs")], settings, on_progress=show)

Knows what a failed file may and may not stop, and which folders can be synced. Knows no file format and no index, and
leaves it to the knowledge base how sources go in together and when a sync may delete.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Literal

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import LeadlineError, ModelError, raised_at
from leadline.events import DocumentsPruned, Event
from leadline.ingest.apart import ReadingProcess
from leadline.ingest.extracted import Limits
from leadline.ingest.files import iter_files, unread_kinds
from leadline.ingest.handover import quick_handover
from leadline.ingest.prepare import prepare
from leadline.knowledge import KnowledgeBase, PutReport, PutStatus
from leadline.knowledge.identity import hash_of
from leadline.knowledge.steps import SourceStep
from leadline.stores.base import Failed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileRow:
    """What became of one file: a line of the result table. `pages` only where the format has them."""

    uri: str
    file_name: str
    status: PutStatus | Literal["removed"]
    chunks: int = 0
    new_chunks: int = 0
    pages: int | None = None
    notes: tuple[str, ...] = ()
    copy_of: str | None = None
    error: str | None = None
    doc_id: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` files are through; `row` is the latest."""

    done: int
    total: int
    row: FileRow


@dataclass(slots=True)
class IngestReport:
    """The rows in the order of the files. `pruned` is set after a sync. In a dry run it is all only said, not done.

    `skipped`: suffix → number of the files in the folders whose kind no loader reads.
    """

    dry_run: bool = False
    rows: list[FileRow] = field(default_factory=list)
    seconds: float = 0.0
    pruned: DocumentsPruned | None = None
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def removed(self) -> list[FileRow]:
        """A row for each document that a sync took out since its file is gone."""
        uris = self.pruned.items if self.pruned else ()
        return [FileRow(uri, PurePath(uri).name, "removed") for uri in uris]

    @property
    def failed(self) -> int:
        """How many files could not be taken in."""
        return sum(row.status == "failed" for row in self.rows)

    @property
    def chunks(self) -> int:
        """How many chunks the files have."""
        return sum(row.chunks for row in self.rows)


@dataclass(frozen=True, slots=True)
class File:
    """A file to take in; `root` marks the folder it was found under, empty for a file given by name."""

    path: Path
    uri: str
    root: str


async def ingest_paths(  # noqa: PLR0913 - keyword-only options
    kb: KnowledgeBase,
    paths: Sequence[Path],
    settings: Settings,
    *,
    sync: bool = False,
    dry_run: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> IngestReport:
    """Takes in every supported file under `paths`. A file that fails is a row with its error; the others go in.

    `sync` then deletes what was ingested from the same folders before and is there no more; never after a failed
    file, nor when a folder came out empty. `on_progress` is called after each file. `on_event` gets DocumentSaved for
    each chunk, ItemFailed for each file that failed, DocumentsPruned after a sync; see `KnowledgeBase.sync`.

    Raises UnreadableFile for a path that isn't there, ConfigError for two files of one URI, ModelError and StoreError
    where no file could go in.
    """
    started = time.monotonic()
    report = IngestReport(dry_run=dry_run)
    files = await asyncio.to_thread(_files, paths)
    report.skipped = dict(await asyncio.to_thread(unread_kinds, paths))
    why_not = _why_not([_root(path) for path in paths if path.is_dir()], files)
    make = kb.sync if sync and not why_not else kb.save
    async with aclosing(_taken_in(kb, files, settings, partial(make, dry_run=dry_run), report, on_event)) as rows:
        async for row in rows:
            if on_progress is not None:
                on_progress(Progress(len(report.rows), len(files), row))
    if sync and why_not:
        report.pruned = DocumentsPruned(deleted=0, kept=len(files) - report.failed, skipped=True, reason=why_not)
        if on_event is not None:
            on_event(report.pruned)
    report.seconds = time.monotonic() - started
    return report


async def ingest_files(
    kb: KnowledgeBase,
    files: Sequence[File],
    settings: Settings,
    on_begin: Callable[[int], Awaitable[None]] | None = None,
) -> AsyncGenerator[FileRow, None]:
    """Takes in these files, as `ingest_paths` does those it finds: a row for each, in their order, once it is in.

    `on_begin` is awaited with a file's place when it is about to be read, which is some files ahead of the rows.
    Cancelled, it ends the change that is being made, and makes no other. Raises ModelError and StoreError where no
    file could go in.
    """
    async with aclosing(_taken_in(kb, files, settings, kb.save, IngestReport(), on_begin=on_begin)) as rows:
        async for row in rows:
            yield row


async def _taken_in(  # noqa: PLR0913 - what one run has
    kb: KnowledgeBase,
    files: Sequence[File],
    settings: Settings,
    make: Callable[..., SourceStep],
    report: IngestReport,
    on_event: Callable[[Event], None] | None = None,
    on_begin: Callable[[int], Awaitable[None]] | None = None,
) -> AsyncGenerator[FileRow, None]:
    """The rows, which the report has too, and at the end what a sync has taken out."""
    pages: dict[str, int] = {}
    with ReadingProcess() as process:
        step = make(
            _sources(kb, files, settings, process, pages, on_begin), root={file.uri: file.root for file in files}
        )
        async with quick_handover(), aclosing(step.on_event(on_event)):
            async for outcome in step:
                row = _row(files[len(report.rows)], outcome, pages)
                report.rows.append(row)
                yield row
    report.pruned = step.summary.pruned


def _files(paths: Sequence[Path]) -> list[File]:
    folders = [path for path in paths if path.is_dir()]
    files = []
    for path, uri in iter_files(paths):
        found_under = [folder for folder in folders if folder / uri == path]
        files.append(File(path, uri, _root(found_under[0]) if found_under else ""))
    return files


def _root(folder: Path) -> str:
    return hash_of("root", str(folder.resolve()))


def _why_not(roots: Sequence[str], files: Sequence[File]) -> str:
    """Why these folders can't be synced; empty if they can."""
    if not roots:
        return "no folder was given, so nothing can be missing from it"
    empty = any(all(file.root != root for file in files) for root in roots)
    return "a folder held no supported file" if empty else ""


async def _sources(
    kb: KnowledgeBase,
    files: Sequence[File],
    settings: Settings,
    process: ReadingProcess,
    pages: dict[str, int],
    on_begin: Callable[[int], Awaitable[None]] | None,
) -> AsyncGenerator[SourceDraft | Failed, None]:
    """Each file prepared, in order, or why it could not be; `pages` gets its number of pages where it has any."""
    limits = Limits(
        max_bytes=int(settings.max_file_mb * 1_000_000),
        max_pages=settings.max_pages,
        max_chars=settings.max_chars,
        max_seconds=settings.max_file_seconds,
    )
    read = partial(
        prepare,
        tokenizer=kb.tokenizer,
        limits=limits,
        chunk_tokens=settings.chunk_tokens,
        load=process.load,
        ended=lambda: process.closed,
    )
    for place, file in enumerate(files):
        if on_begin is not None:
            await on_begin(place)
        outcome = await asyncio.to_thread(_prepare, read, file)
        if isinstance(outcome, str):
            yield Failed(file.uri, outcome)
        else:
            numbers = [chunk.page for chunk in outcome.chunks if chunk.page is not None]
            pages |= {file.uri: max(numbers)} if numbers else {}
            yield outcome


def _prepare(read: Callable[[Path, str], SourceDraft], file: File) -> SourceDraft | str:
    try:
        return read(file.path, file.uri)
    except ModelError:  # without the embedder's tokenizer no file can be cut
        raise
    except LeadlineError as error:
        return str(error)
    except OSError as error:
        return f"The file can't be read: {error.strerror}."
    except Exception as error:  # noqa: BLE001 - named degrade: what a hostile file does to a parser is that file's failure
        log.warning("A file could not be prepared: %s", raised_at(error))
        return f"The file can't be read: {type(error).__name__}: {error}"


def _row(file: File, report: PutReport, pages: Mapping[str, int]) -> FileRow:
    return FileRow(
        uri=report.uri,
        file_name=report.file_name,
        status=report.status,
        chunks=report.chunks,
        new_chunks=report.new_chunks,
        pages=pages.get(file.uri),
        notes=report.notes,
        copy_of=report.copy_of,
        error=report.error,
        doc_id=report.doc_id or None,
    )
