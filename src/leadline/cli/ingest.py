"""`leadline ingest`: files and folders into the knowledge base, with a line of result for each file."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.command import FAILED, PARTIAL, AsJson, Collection, DataDir, LockTimeout, run, settings_for
from leadline.cli.conversations import Redacted, redact
from leadline.cli.display import print_json, say, table

if TYPE_CHECKING:
    from leadline.ingest.pipeline import IngestReport, Progress

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH", exists=True, help="Files and folders.", show_default=False)
]
Sync = Annotated[bool, typer.Option("--sync", help="Then remove what came from these folders and is there no more.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be added, replaced and removed.")]


def ingest(  # noqa: PLR0913 - one parameter an option
    paths: Paths,
    sync: Sync = False,
    dry_run: DryRun = False,
    collection: Collection = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Put documents in. Exit code 3: some files could not be taken in; the others were."""

    async def work() -> int:
        from leadline.cli.progress import progress_bars
        from leadline.ingest.pipeline import ingest_paths
        from leadline.knowledge import open_library

        settings = settings_for(data_dir, lock_timeout)
        async with open_library(settings) as library:
            base = await library.collection(collection or settings.run.collection, create=True)
            with progress_bars() as bars:

                def show(progress: "Progress") -> None:
                    bars.set("Files", progress.done, progress.total)

                report = await ingest_paths(base, paths, settings, sync=sync, dry_run=dry_run, on_progress=show)
            redacted = await redact(settings, library) if took_out(report) else Redacted()
        if as_json:
            print_json({**as_dict(report), "redacted": asdict(redacted)})
        else:
            show_report(report)
        redacted.show()
        return _exit_code(report) or (PARTIAL if redacted.owed else 0)

    run(work(), as_json=as_json)


def took_out(report: "IngestReport") -> bool:
    """Whether text that was in the knowledge base may not be there any more."""
    pruned = report.pruned is not None and report.pruned.deleted > 0
    return not report.dry_run and (pruned or any(row.status == "replaced" for row in report.rows))


def show_report(report: "IngestReport") -> None:
    """A line for each file, then what was left out and removed, and the sums."""
    columns = ["file", "status", "chunks", "pages", "notes"]
    rows = []
    for row in [*report.rows, *report.removed]:
        notes = [row.error] if row.error else [*([f"same bytes as {row.copy_of}"] if row.copy_of else []), *row.notes]
        chunks = "-" if row.status == "removed" else row.chunks
        rows.append([row.uri, row.status, chunks, "-" if row.pages is None else row.pages, "; ".join(notes)])
    if rows:
        table(columns, rows, bad=[n for n, row in enumerate(report.rows) if row.status == "failed"])
    if not report.rows and not report.removed:
        say("No supported files were found.", stderr=True)
    if report.skipped:
        kinds = ", ".join(f"{suffix} ({count})" for suffix, count in sorted(report.skipped.items()))
        say(f"Left out, since no loader reads their kind: {kinds}.", stderr=True)
    if report.pruned is not None and (report.pruned.deleted or report.pruned.reason):
        why = f" ({report.pruned.reason})" if report.pruned.reason else ""
        done = "Would remove" if report.dry_run else "Removed"
        say(f"{done} {report.pruned.deleted} documents that are gone{why}.", stderr=True)
    taken = len(report.rows) - report.failed
    say(f"{taken} of {len(report.rows)} files, {report.chunks} chunks, {report.seconds:.1f} s.", stderr=True)
    if report.dry_run:
        say("Dry run: nothing was changed.", style="yellow", stderr=True)


def as_dict(report: "IngestReport") -> dict[str, Any]:
    """The report as `--json` prints it."""
    return {
        "files": [asdict(row) for row in [*report.rows, *report.removed]],
        "failed": report.failed,
        "skipped": report.skipped,
        "chunks": report.chunks,
        "seconds": round(report.seconds, 3),
        "dry_run": report.dry_run,
        "pruned": None if report.pruned is None else report.pruned.model_dump(),
    }


def _exit_code(report: "IngestReport") -> int:
    if not report.rows:
        return FAILED  # nothing went in, which can't be what was wanted
    return PARTIAL if report.failed else 0
