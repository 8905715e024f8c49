"""From paths to a collection: files are prepared ahead while those before them are embedded and stored.

    report = await ingest_paths(kb, [Path("docs")], settings, on_progress=show)

Knows how to keep both the reader and the embedder busy, what a failed file may and may not stop, and when a sync may
delete. Knows no file format and no index.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import LeadlineError, ModelError
from leadline.events import DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.ingest.extracted import Limits
from leadline.ingest.files import iter_files, unread_kinds
from leadline.ingest.handover import quick_handover
from leadline.ingest.prepare import prepare
from leadline.knowledge import KnowledgeBase, PutReport, PutStatus
from leadline.knowledge.identity import hash_of

log = logging.getLogger(__name__)

BATCH_CHUNKS: Final = 256  # a put's fixed costs are spread over so many chunks
WINDOW_S: Final = 0.5  # a batch that isn't full waits no longer than this for the next file
AHEAD: Final = 32  # files prepared and not yet put, at most


@dataclass(frozen=True, slots=True)
class FileRow:
    """What became of one file: a line of the result table. `pages` only where the format has them."""

    uri: str
    file_name: str
    status: PutStatus
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
    """The rows in the order of the files. `pruned` is set after a sync. In a dry run nothing was changed.

    `skipped`: suffix → number of the files in the folders whose kind no loader reads.
    """

    dry_run: bool = False
    rows: list[FileRow] = field(default_factory=list)
    seconds: float = 0.0
    pruned: DocumentsPruned | None = None
    pruned_names: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)

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


Prepared = tuple[File, SourceDraft | str]  # the draft, or why there is none
Result = tuple[FileRow, list[Event]]


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
    each chunk, ItemFailed for each file that failed, DocumentsPruned after a sync.

    Raises UnreadableFile for a path that isn't there, ConfigError for two files of one URI, ModelError and StoreError
    where no file could go in.
    """
    started = time.monotonic()
    report = IngestReport(dry_run=dry_run)
    files = await asyncio.to_thread(_files, paths)
    report.skipped = dict(await asyncio.to_thread(unread_kinds, paths))
    tell = on_event or (lambda _: None)
    async with (
        quick_handover(),
        aclosing(_prepared(kb, files, settings)) as prepared,
        aclosing(_batches(prepared)) as batches,
        aclosing(_puts(kb, batches, dry_run)) as puts,
    ):
        async for row, events in puts:
            report.rows.append(row)
            for event in events:
                tell(event)
            if on_progress is not None:
                on_progress(Progress(len(report.rows), len(files), row))
    if sync:
        await _prune(kb, [_root(path) for path in paths if path.is_dir()], files, report)
        assert report.pruned is not None
        tell(report.pruned)
    report.seconds = time.monotonic() - started
    return report


def _files(paths: Sequence[Path]) -> list[File]:
    folders = [path for path in paths if path.is_dir()]
    files = []
    for path, uri in iter_files(paths):
        found_under = [folder for folder in folders if folder / uri == path]
        files.append(File(path, uri, _root(found_under[0]) if found_under else ""))
    return files


def _root(folder: Path) -> str:
    return hash_of("root", str(folder.resolve()))


async def _prepared(
    kb: KnowledgeBase, files: Sequence[File], settings: Settings
) -> AsyncGenerator[Prepared | None, None]:
    """Each file prepared, in order; None for every short while in which none was ready."""
    queue: asyncio.Queue[Prepared | BaseException | None] = asyncio.Queue(AHEAD)
    reader = asyncio.create_task(_read_ahead(kb, files, settings, queue))
    try:
        while True:
            try:
                item = await asyncio.wait_for(queue.get(), WINDOW_S)
            except TimeoutError:
                yield None
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        reader.cancel()
        await asyncio.wait([reader])


async def _read_ahead(
    kb: KnowledgeBase,
    files: Sequence[File],
    settings: Settings,
    queue: "asyncio.Queue[Prepared | BaseException | None]",
) -> None:
    limits = Limits(
        max_bytes=int(settings.max_file_mb * 1_000_000), max_pages=settings.max_pages, max_chars=settings.max_chars
    )
    try:
        for file in files:
            await queue.put((file, await asyncio.to_thread(_prepare, kb, file, limits, settings.chunk_tokens)))
    except ModelError as error:
        await queue.put(error)
    else:
        await queue.put(None)


def _prepare(kb: KnowledgeBase, file: File, limits: Limits, chunk_tokens: int) -> SourceDraft | str:
    try:
        return prepare(file.path, file.uri, kb.tokenizer, limits, chunk_tokens)
    except ModelError:  # without the embedder's tokenizer no file can be cut
        raise
    except LeadlineError as error:
        return str(error)
    except OSError as error:
        return f"The file can't be read: {error.strerror}."
    except Exception as error:  # named degrade: what a hostile file does to a parser is that file's failure
        log.warning("%s could not be prepared", file.uri, exc_info=True)
        return f"The file can't be read: {type(error).__name__}: {error}"


async def _batches(prepared: AsyncIterator[Prepared | None]) -> AsyncGenerator[list[Prepared], None]:
    """Files of one root together, until they make a full batch or no further one is ready."""
    batch: list[Prepared] = []
    chunks = 0
    async for item in prepared:
        if batch and (item is None or chunks >= BATCH_CHUNKS or item[0].root != batch[0][0].root):
            yield batch
            batch, chunks = [], 0
        if item is not None:
            batch.append(item)
            chunks += 0 if isinstance(item[1], str) else len(item[1].chunks)
    if batch:
        yield batch


async def _puts(
    kb: KnowledgeBase, batches: AsyncIterator[list[Prepared]], dry_run: bool
) -> AsyncGenerator[Result, None]:
    """The results of all files, in order. Two are under way: one is embedded while the one before is stored."""
    under_way: deque[asyncio.Task[list[Result]]] = deque()
    try:
        async for batch in batches:
            under_way.append(asyncio.create_task(_put(kb, batch, dry_run)))
            if len(under_way) > 1:
                for result in await under_way.popleft():
                    yield result
        while under_way:
            for result in await under_way.popleft():
                yield result
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _put(kb: KnowledgeBase, batch: Sequence[Prepared], dry_run: bool) -> list[Result]:
    drafts = [draft for _, draft in batch if isinstance(draft, SourceDraft)]
    root = batch[0][0].root
    reports = iter(await (kb.preview(drafts, root=root) if dry_run else kb.put(drafts, root=root)))
    return [
        _failed(file, outcome) if isinstance(outcome, str) else _taken(next(reports), outcome, dry_run)
        for file, outcome in batch
    ]


def _failed(file: File, error: str) -> Result:
    return FileRow(file.uri, file.path.name, "failed", error=error), [ItemFailed(item=file.uri, error=error)]


def _taken(report: PutReport, draft: SourceDraft, dry_run: bool) -> Result:
    row = FileRow(
        uri=report.uri,
        file_name=report.file_name,
        status=report.status,
        chunks=report.chunks,
        new_chunks=report.new_chunks,
        pages=max((chunk.page for chunk in draft.chunks if chunk.page is not None), default=None),
        notes=report.notes,
        copy_of=report.copy_of,
        error=report.error,
        doc_id=report.doc_id,
    )
    if report.error is not None:
        return row, [ItemFailed(item=report.uri, error=report.error)]
    cached = report.status == "unchanged"
    saved = () if dry_run else report.chunk_ids
    return row, [DocumentSaved(chunk_id=chunk_id, cached=cached) for chunk_id in saved]


async def _prune(kb: KnowledgeBase, roots: Sequence[str], files: Sequence[File], report: IngestReport) -> None:
    kept = {row.doc_id for row in report.rows if row.doc_id is not None}
    empty = any(all(file.root != root for file in files) for root in roots)
    reason = _why_not(report.failed, empty, bool(roots))
    deleted: list[str] = []
    if not reason:
        for root in dict.fromkeys(roots):
            gone = await kb.delete_missing(root, kept, dry_run=report.dry_run)
            deleted.extend(gone.file_names)
    report.pruned_names = tuple(deleted)
    report.pruned = DocumentsPruned(deleted=len(deleted), kept=len(kept), reason=reason)


def _why_not(failed: int, empty: bool, any_folder: bool) -> str:
    if failed:
        return f"{failed} files failed, so what is missing may not be gone"
    if not any_folder:
        return "no folder was given, so nothing can be missing from it"
    return "a folder held no supported file" if empty else ""
