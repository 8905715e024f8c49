"""The command line: one module a command (or a family of short ones), put together here.

Importing it loads no store and no model: each command imports what it needs when it runs.
"""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from leadline import __version__
from leadline.cli.ask import ask
from leadline.cli.calibrate import calibrate
from leadline.cli.command import USAGE
from leadline.cli.display import print_error
from leadline.cli.evaluate import abstention, retrieval
from leadline.cli.evaluate_answers import answers
from leadline.cli.evaluation import WHERE
from leadline.cli.explain import explain
from leadline.cli.ingest import ingest
from leadline.cli.library import ls, rm, stats, verify
from leadline.cli.mcp import mcp
from leadline.cli.models import fetch
from leadline.cli.reindex import reindex
from leadline.cli.replay import replay
from leadline.cli.search import search
from leadline.cli.serve import serve
from leadline.cli.tokens import add as add_token
from leadline.cli.tokens import ls as list_tokens
from leadline.cli.tokens import rm as remove_token
from leadline.cli.watch import watch
from leadline.errors import ConfigError

COMMANDS: tuple[Callable[..., None], ...] = (
    *(ingest, watch, ask, search, explain, replay),
    *(ls, rm, verify, reindex, stats, calibrate, serve, mcp),
)
EXIT_CODES = (
    "Exit codes: 0 done or answered, 1 error or interrupted, 2 bad usage, 3 some files failed, 4 no answer found, "
    "5 verify or replay found differences."
)
# Typer has no name for it, only for this child of it.
_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__bases__[0])
_PREFIX = "Value error, "  # of the library that checks values, before its own words
# New objects that the garbage collector waits for. What a command imports stays, and is looked through again and again
# by default: at 50,000 `leadline search` and `ask` take 0.94 of the processor's time (medians on two cores). Who
# imports the library keeps their own.
_NEW_OBJECTS = 50_000


class _Commands(TyperGroup):
    """Tells what was typed wrongly in plain words, whatever library noticed it."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that was typed, and all below it. Raises the usage error that it was typed with."""
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            error.message = error.message.replace(_PREFIX, "")
            raise


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    gc.set_threshold(_NEW_OBJECTS)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this process: nobody reads it
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 open to the end
        # A terminal that can't show a character gets its code, never a crash.
        getattr(sys, name).reconfigure(errors="backslashreplace")
    if "--json" not in sys.argv[1:]:
        build()()
    try:
        sys.exit(build()(standalone_mode=False))
    except _UsageError as error:
        print_error(ConfigError(error.format_message(), hint="See leadline --help."), as_json=True)
        sys.exit(USAGE)


def build() -> typer.Typer:
    """The command line with all its commands."""
    app = typer.Typer(
        name="leadline",
        cls=_Commands,
        help="Put documents in, get cited answers out.",
        epilog=EXIT_CODES,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_version_option)
    for command in COMMANDS:
        app.command()(command)
    evaluations = typer.Typer(help="Measure on judged questions.", no_args_is_help=True, rich_markup_mode=None)
    evaluations.callback()(lambda: None)
    for evaluation in (retrieval, abstention, answers):
        evaluations.command(epilog=WHERE)(evaluation)
    app.add_typer(evaluations, name="eval")
    models = typer.Typer(help="Models on this machine.", no_args_is_help=True, rich_markup_mode=None)
    models.callback()(lambda: None)
    models.command()(fetch)
    app.add_typer(models, name="models")
    tokens = typer.Typer(help="Who may ask a server.", no_args_is_help=True, rich_markup_mode=None)
    for name, token_command in (("add", add_token), ("ls", list_tokens), ("rm", remove_token)):
        tokens.command(name)(token_command)
    app.add_typer(tokens, name="tokens")
    return app


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"leadline {__version__}")
        raise typer.Exit


def _version_option(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...
