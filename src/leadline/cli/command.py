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
from leadline.errors import ConfigError, LeadlineError, QuestionEmpty, QuestionRefused

if TYPE_CHECKING:
    from leadline.config import RunContext, Settings
    from leadline.knowledge import KnowledgeBase, Library

FAILED, USAGE, PARTIAL, ABSTAINED, DIFFERENT = 1, 2, 3, 4, 5


def option(*names: str, help: str, default: str, **given: Any) -> Any:
    """An option that is None unless it is given; its help says what is done then."""
    return typer.Option(*names, help=f"{help} [default: {default}]", show_default=False, **given)


DataDir = Annotated[
    Path | None,
    option(
        "--data-dir",
        envvar="LEADLINE_DATA_DIR",
        help="Folder of the catalog and the indexes.",
        default=".leadline",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, for programs.")]
LockTimeout = Annotated[
    float | None,
    option("--lock-timeout", min=0, help="Seconds to wait for another writer.", default="60"),
]
Collection = Annotated[str | None, option("--collection", "-c", help="Collection.", default="default")]


def settings_for(data_dir: Path | None, lock_timeout: float | None = None) -> "Settings":
    """The settings, with what was given on the command line first. Raises ConfigError."""
    from leadline.config import load_settings

    given = {"data_dir": data_dir, "lock_timeout_s": lock_timeout}
    return load_settings(**{key: value for key, value in given.items() if value is not None})


def settings_of_filled(data_dir: Path | None, lock_timeout: float | None = None) -> "Settings":
    """The same, for a command that reads what others have put in: it makes no data folder where there is none.

    Raises ConfigError.
    """
    settings = settings_for(data_dir, lock_timeout)
    folder = settings.data_dir
    if not is_filled(settings):
        what = "holds no data of Leadline" if folder.is_dir() else "does not exist"
        raise ConfigError(
            f"The data folder {folder} {what}: nothing was put in there.",
            hint="`leadline ingest PATH` puts documents in; --data-dir or LEADLINE_DATA_DIR names another folder.",
        )
    return settings


def is_filled(settings: "Settings") -> bool:
    """Whether the data folder has been made, or the catalog is elsewhere."""
    from leadline.knowledge.places import INDEXES
    from leadline.stores.catalog import FILE_NAME

    folder = settings.data_dir
    return settings.catalog_url is not None or (folder / FILE_NAME).exists() or (folder / INDEXES).is_dir()


def context_for(settings: "Settings", **given: Any) -> "RunContext":
    """The knobs of one run: the settings' own, with what was given (not None) first. Raises ConfigError."""
    from pydantic import ValidationError

    from leadline.config import RunContext
    from leadline.knowledge.places import check_name

    changed = {key: value for key, value in given.items() if value is not None}
    if "collection" in changed:
        check_name(changed["collection"])
    try:
        return RunContext.model_validate({**settings.run.model_dump(), **changed})
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise ConfigError(f"{'; '.join(problems)}.") from None


def refuse_empty(question: str) -> None:
    """Raises QuestionEmpty, before anything is opened for it."""
    if not question.strip():
        raise QuestionEmpty


def say_empty(collection: str) -> None:
    """Says on standard error that there is nothing in a collection yet, and what to do."""
    say(f"The collection {collection} is empty. `leadline ingest PATH` puts documents in.", stderr=True)


async def without_retries(library: "Library", context: "RunContext") -> "RunContext":
    """The knobs for a run in a collection with nothing in it, of which this tells: looking again would find no more.

    Those of any other are as they were.
    """
    from leadline.stores.catalog_sources import count_chunks

    name = context.collection
    if name not in await library.collections():  # the run says that
        return context
    if await asyncio.to_thread(count_chunks, library.catalog, name):
        return context
    say_empty(name)
    return context.model_copy(update={"max_retries": 0})


async def say_problems(base: "KnowledgeBase") -> None:
    """Says on standard error why what was found may not be all there is: an index is at fault."""
    for problem in base.problems:
        say(f"Not everything was searched: {problem}.", style="yellow", stderr=True)
    if base.problems:
        say("`leadline verify --repair` brings the indexes in step with the catalog.", stderr=True)


def run(work: Coroutine[Any, Any, int], *, as_json: bool) -> NoReturn:
    """Does the work of a command and ends with the exit code it returns; errors become one clear message.

    A bad setting counts as bad usage, and so does what is no question. Only a fault of Leadline's own shows a
    traceback.
    """
    try:
        code = asyncio.run(work)
    except (LeadlineError, OSError, KeyboardInterrupt) as error:
        known = _named(error)
        print_error(known, as_json=as_json)
        code = USAGE if isinstance(known, ConfigError | QuestionRefused) else FAILED
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
