"""What all commands share: their common options, how settings come about, how work becomes an exit code."""

import asyncio
import errno
import sys
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from leadline.cli.display import print_error, say
from leadline.errors import ConfigError, LeadlineError

if TYPE_CHECKING:
    from leadline.config import RunContext, Settings
    from leadline.knowledge import KnowledgeBase

FAILED, USAGE, PARTIAL, ABSTAINED, DIFFERENT = 1, 2, 3, 4, 5

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="LEADLINE_DATA_DIR",
        help="Folder of the catalog and the indexes.",
        show_default=".leadline",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, for programs.")]
LockTimeout = Annotated[
    float | None,
    typer.Option("--lock-timeout", min=0, help="Seconds to wait for another writer.", show_default="60"),
]
Collection = Annotated[str | None, typer.Option("--collection", "-c", help="Collection.", show_default="default")]


def settings_for(data_dir: Path | None, lock_timeout: float | None = None) -> "Settings":
    """The settings, with what was given on the command line first. Raises ConfigError."""
    from leadline.config import load_settings

    given = {"data_dir": data_dir, "lock_timeout_s": lock_timeout}
    return load_settings(**{key: value for key, value in given.items() if value is not None})


def context_for(settings: "Settings", **given: Any) -> "RunContext":
    """The knobs of one run: the settings' own, with what was given (not None) first. Raises ConfigError."""
    from pydantic import ValidationError

    from leadline.config import RunContext

    changed = {key: value for key, value in given.items() if value is not None}
    try:
        return RunContext.model_validate({**settings.run.model_dump(), **changed})
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise ConfigError(f"{'; '.join(problems)}.") from None


def say_empty(collection: str) -> None:
    """Says on standard error that there is nothing in a collection yet, and what to do."""
    say(f"The collection {collection} is empty. `leadline ingest PATH` puts documents in.", stderr=True)


async def say_problems(base: "KnowledgeBase") -> None:
    """Says on standard error why what was found may not be all there is: nothing put in, or an index at fault."""
    if not await base.count():
        say_empty(base.name)
    for problem in base.problems:
        say(f"Not everything was searched: {problem}.", style="yellow", stderr=True)
    if base.problems:
        say("`leadline verify --repair` brings the indexes in step with the catalog.", stderr=True)


def run(work: Coroutine[Any, Any, int], *, as_json: bool) -> NoReturn:
    """Does the work of a command and ends with the exit code it returns; errors become one clear message.

    A bad setting counts as bad usage. Only a fault of Leadline's own shows a traceback.
    """
    try:
        code = asyncio.run(work)
    except (LeadlineError, OSError, KeyboardInterrupt) as error:
        known = _named(error)
        print_error(known, as_json=as_json)
        code = USAGE if isinstance(known, ConfigError) else FAILED
    except Exception as error:  # noqa: BLE001 - the outermost edge: reported in full, and the command fails
        traceback.print_exc(file=sys.stderr)
        hint = "This is a fault in Leadline, not in what you did. Please report it with the lines above."
        print_error(LeadlineError(f"{type(error).__name__}: {error}", hint=hint), as_json=as_json)
        code = FAILED
    raise typer.Exit(code)


class _Interrupted(LeadlineError):
    code = "interrupted"


def _named(error: LeadlineError | OSError | KeyboardInterrupt) -> LeadlineError:
    if isinstance(error, LeadlineError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return _Interrupted("Interrupted.", hint="What was finished is kept; run the same command to go on.")
    if error.errno == errno.EPIPE:
        raise error  # the reader of the pipe has gone, typer ends quietly
    place = f"{error.filename}: " if error.filename else ""
    return LeadlineError(f"{place}{error.strerror or error}.", hint="Check that the place exists and may be written.")
