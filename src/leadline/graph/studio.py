"""The graph as LangGraph's server loads it: without a checkpointer, over the one library of the process.

Importing this module reads nothing: settings and library are opened by whoever comes first, the chat API that is
mounted in the same server (`api/studio.py`) or a run, and are shared. Models load with the first question.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from leadline.config import Settings, load_settings
from leadline.graph.build import build_graph
from leadline.graph.opening import dependencies
from leadline.graph.run import Compiled
from leadline.graph.studio_person import AtStudio
from leadline.knowledge import Library, open_library
from leadline.nodes import languages


class Installation:
    """Settings, an open library and the graph over them."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._opened: tuple[Settings, Library, Compiled] | None = None

    async def opened(self) -> tuple[Settings, Library, Compiled]:
        """As opened by the first call. Raises ConfigError, StoreError."""
        async with self._lock:
            if self._opened is None:
                settings = await asyncio.to_thread(load_settings)
                library = await self._stack.enter_async_context(open_library(settings))
                await asyncio.to_thread(languages.load)  # nodes can't: they are in the event loop
                graph = build_graph(dependencies(settings, library, person=AtStudio())).compile()
                self._opened = settings, library, graph
            return self._opened

    async def close(self) -> None:
        """Closes what was opened."""
        async with self._lock:
            self._opened = None
            await self._stack.aclose()


_installation = Installation()


@asynccontextmanager
async def open_installation() -> AsyncIterator[tuple[Settings, Library]]:
    """The settings and the library that the graph is over, closed at the end. Raises ConfigError, StoreError."""
    settings, library, _ = await _installation.opened()
    try:
        yield settings, library
    finally:
        await _installation.close()


async def graph() -> Compiled:
    """The graph. The server calls this before each run, and to draw it: it is made once."""
    _, _, compiled = await _installation.opened()
    return compiled
