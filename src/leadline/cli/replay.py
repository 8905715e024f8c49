"""`leadline replay`: the searches of a recorded answer made again, and what is different."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.command import DIFFERENT, AsJson, DataDir, LockTimeout, option, run, settings_of_filled
from leadline.cli.display import plain, print_json, say
from leadline.errors import RecordError

if TYPE_CHECKING:
    from leadline.graph.replay import Replay

SHOWN = 25  # differences on a screen; --json has all

RecordFile = Annotated[
    Path,
    typer.Argument(
        metavar="RECORD", help="What `ask --json` or `ask --record` wrote; - reads it from a pipe.", show_default=False
    ),
]
InCollection = Annotated[
    str | None, option("--collection", "-c", help="Search this one instead.", default="as recorded")
]


def replay(
    record: RecordFile,
    collection: InCollection = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Search again as a recorded answer did, without an LLM. Exit code 5: what is found has changed."""

    async def work() -> int:
        from leadline.graph.recorded import read_record
        from leadline.graph.replay import replay
        from leadline.knowledge import open_library

        recorded = read_record(_read(record))
        async with open_library(settings_of_filled(data_dir, lock_timeout)) as library:
            found = await replay(recorded, library, collection=collection)
        if as_json:
            print_json(found.to_json())
        else:
            _show(found)
        return 0 if found.same else DIFFERENT

    run(work(), as_json=as_json)


def _read(record: Path) -> str:
    try:
        return sys.stdin.read() if str(record) == "-" else record.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RecordError("The record isn't text in UTF-8.", hint="Give the file as it was written.") from None
    except OSError as error:
        hint = "Give the file that `leadline ask --record` wrote."
        raise RecordError(f"{record} can't be read: {error.strerror or error}.", hint=hint) from None


def _show(found: "Replay") -> None:
    say(plain(found.question, one_line=True), style="bold")
    if found.same:
        say(f"The same: {found.candidates} candidates of {found.collection} are found and ranked as they were.")
    else:
        say(f"Different ({len(found.differences)}), searched in {found.collection}:", style="yellow")
    ordered = sorted(found.differences, key=lambda d: d.chunk_id is not None and not d.used)
    for difference in ordered[:SHOWN]:
        used = "  [was evidence]" if difference.used else ""
        say(f"  {difference.kind:<10} {plain(difference.text, one_line=True)}{used}")
    if len(ordered) > SHOWN:
        say(f"  and {len(ordered) - SHOWN} more: --json has all of them.")
    for note in found.notes:
        say(plain(note, one_line=True), style="dim")
