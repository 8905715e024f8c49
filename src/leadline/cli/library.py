"""`leadline ls`, `rm`, `verify` and `stats`: what is in the knowledge base, and whether its parts agree."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.asking import is_confirmed
from leadline.cli.calibrate import rows as calibration_rows
from leadline.cli.command import (
    DIFFERENT,
    PARTIAL,
    AsJson,
    Collection,
    DataDir,
    LockTimeout,
    run,
    say_empty,
    settings_of_filled,
)
from leadline.cli.conversations import Redacted, redact
from leadline.cli.display import is_interactive, plain, print_json, say, table
from leadline.errors import ConfigError, LeadlineError, StoreError

if TYPE_CHECKING:
    from leadline.knowledge import DeleteReport, KnowledgeBase, Library, SourceInfo, VerifyReport

# As much of an id as the table shows; the start of an id is enough to name a document.
SHORT_ID = 12

Wanted = Annotated[
    str, typer.Argument(metavar="DOC", help="A document's id, path or name, as ls shows them.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Repair = Annotated[bool, typer.Option("--repair", help="Bring the indexes in step with the catalog.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="With --repair: only say what it would do.")]


def ls(collection: Collection = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the documents."""

    async def work() -> int:
        from leadline.knowledge import open_library

        settings = settings_of_filled(data_dir)
        name = collection or settings.run.collection
        async with open_library(settings) as library:
            sources = await library.sources(name)
        if as_json:
            print_json([asdict(source) for source in sources])
        elif sources:
            rows = [[s.file_name, s.chunks, _day(s.created), s.doc_id[:SHORT_ID], "; ".join(s.notes)] for s in sources]
            table(["file", "chunks", "added", "id", "notes"], rows)
        else:
            say_empty(name)
        return 0

    run(work(), as_json=as_json)


def rm(
    wanted: Wanted,
    collection: Collection = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Remove a document, and with it the answers made from it.

    It goes from the catalog, every index and the conversations.
    """

    async def work() -> int:
        from leadline.knowledge import open_library

        settings = settings_of_filled(data_dir, lock_timeout)
        async with open_library(settings) as library:
            base = await library.collection(collection or settings.run.collection)
            found = await base.find_sources(wanted)
            source = _only_one(found, wanted, "" if found else await _elsewhere(library, base.name, wanted))
            if not await _may_delete(source, yes):
                say("Nothing was removed.", stderr=True)
                return 0
            deleted = await base.delete(source.doc_id)
            redacted = await redact(settings, library)
        return _show_deletion(deleted, redacted, as_json)

    run(work(), as_json=as_json)


def verify(
    collection: Collection = None,
    repair: Repair = False,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Compare the catalog with every index. Exit code 5: they differ."""

    async def work() -> int:
        from leadline.knowledge import open_library

        if dry_run and not repair:
            raise ConfigError("--dry-run goes with --repair.", hint="Without --repair nothing is changed anyway.")
        settings = settings_of_filled(data_dir, lock_timeout)
        async with open_library(settings) as library:
            reports = [await _verified(base, repair, dry_run) for base in await _chosen(library, collection)]
        if as_json:
            print_json({report["collection"]: report for report in reports})
        else:
            for report in reports:
                _show_verification(report)
        return 0 if all(report["ok"] for report in reports) else DIFFERENT

    run(work(), as_json=as_json)


def stats(
    collection: Collection = None, data_dir: DataDir = None, lock_timeout: LockTimeout = None, as_json: AsJson = False
) -> None:
    """Show how much is stored. By which model and in which indexes, and how the reranker is calibrated."""

    async def work() -> int:
        from leadline.knowledge import open_library

        settings = settings_of_filled(data_dir, lock_timeout)
        async with open_library(settings) as library:
            figures = [await _figures(library, base) for base in await _chosen(library, collection)]
        if as_json:
            print_json({each["collection"]: each for each in figures})
        else:
            for each in figures:
                table(["collection", each["collection"]], _rows(each))
        return 0

    run(work(), as_json=as_json)


async def _figures(library: "Library", base: "KnowledgeBase") -> dict[str, Any]:
    """Those of the collection, and its calibration for the reranker that the settings name."""
    reranker = await asyncio.to_thread(_reranker_name, library)
    return {**await base.get_stats(), "calibration": await library.calibrations.describe(base.name, reranker)}


def _reranker_name(library: "Library") -> str | None:
    """None where the model can't be had, which is no reason not to show the rest."""
    from leadline.models import open_reranker

    try:
        return open_reranker(library.settings.reranker_model, library.embedder).name
    except LeadlineError:
        return None


async def _chosen(library: "Library", collection: str | None) -> "list[KnowledgeBase]":
    """The collection that was named, or all of them."""
    names = [collection] if collection else await library.collections()
    return [await library.collection(name) for name in names]


async def _elsewhere(library: "Library", name: str, wanted: str) -> str:
    """What to do where a document isn't in this collection: whoever means one of another has to name that."""
    from leadline.stores.catalog_sources import find_sources

    others = [other for other in await library.collections() if other != name]
    there = [other for other in others if await asyncio.to_thread(find_sources, library.catalog, other, wanted)]
    if not there:
        return f"`leadline ls --collection {name}` lists what is there."
    return f"There is one in the collection {', '.join(there)}: --collection {there[0]} removes it there."


def _only_one(found: "Sequence[SourceInfo]", wanted: str, elsewhere: str) -> "SourceInfo":
    if not found:
        raise StoreError(f"There is no document {wanted!r} in this collection.", hint=elsewhere)
    if len(found) > 1:
        ids = ", ".join(f"{source.doc_id} ({source.uri})" for source in found)
        raise StoreError(f"{len(found)} documents are called {wanted!r}.", hint=f"Give the id of one: {ids}.")
    return found[0]


async def _may_delete(source: "SourceInfo", yes: bool) -> bool:
    """Consent to a deletion; unattended it must have been given with --yes."""
    if yes:
        return True
    if not is_interactive():
        raise ConfigError("Nobody is there to confirm the removal.", hint="Add --yes to remove without being asked.")
    return await is_confirmed(f"Remove {plain(source.file_name, one_line=True)} ({source.chunks} chunks)?")


def _show_deletion(deleted: "DeleteReport", redacted: Redacted, as_json: bool) -> int:
    if as_json:
        print_json({**asdict(deleted), "redacted": asdict(redacted)})
    else:
        legs = ", ".join(f"{leg} {count}" for leg, count in deleted.legs.items())
        say(f"Removed {', '.join(deleted.file_names)}: {deleted.chunks} chunks (by index, and texts: {legs}).")
        for leg, why in deleted.owed.items():
            what = "content store" if leg == "content" else f"{leg} index"
            say(f"The {what} could not follow yet and will with the next change: {why}", style="yellow")
    redacted.show()
    return PARTIAL if deleted.owed or redacted.owed else 0


async def _verified(base: "KnowledgeBase", repair: bool, dry_run: bool) -> dict[str, Any]:
    if not repair:
        return _as_dict(await base.verify())
    done = await base.repair(dry_run=dry_run)
    changes = {"added": dict(done.added), "removed": dict(done.removed), "dry_run": dry_run}
    return {**_as_dict(done.after), "before": _as_dict(done.before), "repair": changes}


def _as_dict(report: "VerifyReport") -> dict[str, Any]:
    return {**asdict(report), "ok": report.ok}


def _show_verification(report: dict[str, Any]) -> None:
    say(f"{report['collection']}: {report['sources']} documents, {report['chunks']} chunks", style="bold")
    rows = [[leg, r["expected"], r["found"], len(r["missing"]), len(r["extra"])] for leg, r in report["legs"].items()]
    table(["index", "expected", "found", "missing", "extra"], rows)
    if done := report.get("repair"):
        verb = "would be" if done["dry_run"] else "were"
        added, removed = sum(done["added"].values()), sum(done["removed"].values())
        say(f"{added} chunks {verb} added to the indexes, {removed} taken out.")
    if report["ok"]:
        say("Catalog and indexes agree.", style="green")
    for problem in report["problems"]:
        say(f"Difference: {problem}.", style="red")
    if report["problems"] and "repair" not in report:
        say("`leadline verify --repair` brings the indexes in step with the catalog.")


def _rows(figures: dict[str, Any]) -> list[list[object]]:
    """The figures a person looks at; those of single sources are for programs."""
    rows: list[list[object]] = [
        [name, figures[name]] for name in ("sources", "chunks", "generation", "embedding_model")
    ]
    for leg, index in figures["indexes"].items():
        shown = [f"{name} {value}" for name, value in index.items() if not isinstance(value, dict)]
        rows.append([leg, ", ".join(shown)])
    rows.append(["reranker", figures["calibration"]["reranker"] or "not there"])
    rows += calibration_rows(figures["calibration"])
    return rows + [["difference", problem] for problem in figures["problems"]]


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
