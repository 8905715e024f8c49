"""`leadline reindex`: new indexes for other settings, while questions are answered from the old ones."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.command import AsJson, Collection, DataDir, LockTimeout, run, settings_of_filled
from leadline.cli.display import print_json, say

if TYPE_CHECKING:
    from leadline.drafts import SourceDraft
    from leadline.knowledge import ReindexReport

Everything = Annotated[bool, typer.Option("--all", help="Also the indexes that are as the settings say.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be built.")]


def reindex(
    collection: Collection = None,
    everything: Everything = False,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Build the indexes anew for changed settings. Until they are done, questions are answered from the old ones."""

    async def work() -> int:
        from leadline.cli.progress import progress_bars
        from leadline.ingest.layout import recut
        from leadline.knowledge import open_library

        settings = settings_of_filled(data_dir, lock_timeout)
        async with open_library(settings) as library:

            def cut(draft: "SourceDraft") -> "SourceDraft":
                return recut(draft, library.embedder, settings.chunk_tokens)

            names = [collection] if collection else await library.collections()
            reports = []
            for name in names:
                with progress_bars() as bars:
                    reports.append(
                        await library.reindex(name, recut=cut, everything=everything, dry_run=dry_run, told=bars.set)
                    )
        if as_json:
            print_json({report.collection: asdict(report) for report in reports})
        else:
            for report in reports:
                _show(report)
        return 0

    run(work(), as_json=as_json)


def _show(report: "ReindexReport") -> None:
    legs = ", ".join(report.legs)
    anew = ", chunks cut anew" if report.recut else ""
    if not report.legs:
        say(f"{report.collection}: the indexes are as the settings say; nothing to build.")
    elif report.dry_run:
        say(f"{report.collection}: would build {legs} for {report.sources} documents{anew}.")
    else:
        say(f"{report.collection}: built {legs} for {report.sources} documents, {report.chunks} chunks{anew}.")
    for name in report.uncut:
        say(f"{name} kept its chunks: it was put in as chunks of its own.", style="yellow")
    for name in report.left:
        say(f"The old index {name} could not be reached and was left where it is.", style="yellow")
