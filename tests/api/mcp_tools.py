"""`leadline mcp` in a process of its own, and the SDK's own client at its pipes."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

PROGRAM = str(Path(sys.executable).with_name("leadline"))
QUESTION = "What is the bollard pull of the tug Anvil?"
READING = {"search", "ask", "list_documents", "get_passage"}


def command(folder: Path, *words: str) -> list[str]:
    """The command line of the server."""
    return [PROGRAM, "mcp", "--data-dir", str(folder), *words]


@asynccontextmanager
async def served(folder: Path, *words: str, **env: str) -> AsyncIterator[Client]:
    """A client of a server process of its own."""
    program, *rest = command(folder, *words)
    parameters = StdioServerParameters(command=program, args=rest, env={"PATH": os.environ["PATH"], **env})
    async with Client(parameters) as client:
        yield client


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
