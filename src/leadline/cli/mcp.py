"""`leadline mcp`: the documents as tools for an agent, which starts this program and talks to it over its pipes."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from leadline.cli.command import FAILED, AsJson, DataDir, LockTimeout, option, run, settings_for, settings_of_filled
from leadline.cli.display import print_error
from leadline.errors import ConfigError, LeadlineError, MissingExtra

AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Also let the agent add and delete documents.")]
AddFrom = Annotated[
    list[Path] | None,
    option(
        "--add-from",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="With --allow-write: the agent may add files of this folder; again for more.",
        default="none: texts only",
    ),
]


def mcp(
    allow_write: AllowWrite = False,
    add_from: AddFrom = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Serve the documents to an agent over MCP.

    The agent's program starts it and talks to it over its pipes. Tools: search, ask, list_documents, get_passage.
    """

    async def work() -> int:
        if add_from and not allow_write:
            raise ConfigError("--add-from goes with --allow-write.", hint="Without it nothing can be added.")
        try:
            from leadline.api.mcp import build_server
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
                raise
            raise MissingExtra(
                "The MCP server needs the package mcp.", hint="Install it with `pip install 'leadline[mcp]'`."
            ) from error
        from leadline.cli.llm import check_llm
        from leadline.graph.run import open_app

        settings = (settings_for if allow_write else settings_of_filled)(data_dir, lock_timeout)
        await asyncio.to_thread(check_llm, settings.run.llm, settings)
        try:
            async with open_app(settings) as app:
                server = build_server(app, allow_write=allow_write, folders=add_from or ())
                serving = asyncio.create_task(server.run_stdio_async())
                await asyncio.wait({serving})
                serving.result()
        except asyncio.CancelledError:  # by Ctrl-C
            _leave()
        return 0

    run(work(), as_json=as_json)


def _leave() -> NoReturn:
    """Ends the process at once: a thread of it waits for input, and whoever waits for that thread waits for ever."""
    print_error(LeadlineError("Interrupted."), as_json=False)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)
