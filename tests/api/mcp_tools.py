"""The MCP server with the SDK's own client: in this process, or as `leadline mcp` in one of its own, over its pipes."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from leadline import load_settings, open_app
from leadline.api.mcp import build_server
from leadline.cli import main

PROGRAM = str(Path(sys.executable).with_name("leadline"))
QUESTION = "What is the bollard pull of the tug Anvil?"
READING = {"search", "ask", "list_documents", "get_passage"}


def command(folder: Path, *words: str) -> list[str]:
    """The command line of the server."""
    return [PROGRAM, "mcp", "--data-dir", str(folder), *words]


@asynccontextmanager
async def served(
    folder: Path, *, allow_write: bool = False, folders: Sequence[Path] = (), **settings: Any
) -> AsyncIterator[Client]:
    """A client of a server in this process, over the data folder. Few passages are weighed for an answer."""
    run = {"top_k": 3, "max_retries": 0, **settings.pop("run", {})}
    async with (
        open_app(load_settings(data_dir=folder, run=run, **settings)) as app,
        Client(build_server(app, allow_write=allow_write, folders=folders)) as client,
    ):
        yield client


@asynccontextmanager
async def served_apart(folder: Path, *words: str, **env: str) -> AsyncIterator[Client]:
    """A client of a server process of its own."""
    program, *rest = command(folder, *words)
    parameters = StdioServerParameters(command=program, args=rest, env={"PATH": os.environ["PATH"], **env})
    async with Client(parameters) as client:
        yield client


def command_line(*words: str) -> None:
    """A command that does what it is told, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["leadline", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code


async def call(client: Client, tool: str, /, **arguments: Any) -> Any:
    """What a tool gives, as data; its text is there too."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.content[0].text  # type: ignore[union-attr]
    return result.structured_content


async def fault(client: Client, tool: str, /, **arguments: Any) -> str:
    """What a tool says that can't do what was asked."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]
