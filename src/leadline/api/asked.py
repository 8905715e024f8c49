"""What every way of asking over HTTP shares: whose collection it is, and when nobody waits for the answer any more."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from fastapi import Request

from leadline.api.access import Caller
from leadline.errors import CollectionUnknown
from leadline.graph.run import App
from leadline.state import Result

CLIENT_GONE: Final = 499  # nobody reads it; named so that the access log tells it from an error
POLL_S: Final = 0.25


async def collection_for(app: App, who: Caller, named: str | None) -> str:
    """The collection that is asked: the one that was named, else the server's.

    Raises CollectionUnknown, in the same words for one that isn't there and for one that this caller may not see.
    """
    name = named or app.settings.run.collection
    who.need(name)
    if not app.library.is_open(name) and name not in await app.library.collections():
        raise CollectionUnknown(f"There is no collection {name}.")
    return name


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result, or None when the client went away first; the run is cancelled then."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=POLL_S)
            if not task.done() and await request.is_disconnected():
                return None
        return task.result()
    finally:
        task.cancel()
