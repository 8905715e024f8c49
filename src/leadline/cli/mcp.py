"""`leadline mcp`: the documents as tools for an agent, which starts this program and talks to it over its pipes."""

from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.command import AsJson, DataDir, LockTimeout, run, settings_for
from leadline.errors import ConfigError, MissingExtra

AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Also let the agent add and delete documents.")]
AddFrom = Annotated[
    list[Path] | None,
    typer.Option(
        "--add-from",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="With --allow-write: the agent may add files of this folder; again for more.",
        show_default="none: texts only",
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
        from leadline.graph.run import open_app

        async with open_app(settings_for(data_dir, lock_timeout)) as app:
            await build_server(app, allow_write=allow_write, folders=add_from or ()).run_stdio_async()
        return 0

    run(work(), as_json=as_json)
