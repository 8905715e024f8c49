"""Events as a server-sent stream: framing, heartbeat, and the end of the run when the client goes away."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

from leadline.events import RunEvent

HEARTBEAT_S = 10.0
HEARTBEAT = ": still working\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_Queue = asyncio.Queue[RunEvent | None]


async def begin_stream(
    events: AsyncIterator[RunEvent], *, heartbeat_s: float = HEARTBEAT_S
) -> AsyncGenerator[str, None]:
    """Starts the run behind `events` and returns its frames once the first event has come.

    What the run raises before its first event is raised here, while it can still become a status. Between frames, a
    comment goes out whenever nothing came for `heartbeat_s` seconds. Closing the generator, or cancelling whoever
    reads it, cancels the run.
    """
    queue: _Queue = asyncio.Queue()
    run = asyncio.create_task(_pump(events, queue))
    try:
        first = await queue.get()
    except asyncio.CancelledError:
        run.cancel()
        raise
    if first is None:
        await run
    return _frames(first, queue, run, heartbeat_s)


def frame(event: RunEvent, number: int) -> str:
    """One event: its type, its number in the stream, and one JSON object on one line."""
    return f"event: {event.type}\nid: {number}\ndata: {event.model_dump_json()}\n\n"


async def _pump(events: AsyncIterator[RunEvent], queue: _Queue) -> None:
    """One task drives the run from its first to its last event: time-outs inside belong to the task they began in."""
    try:
        async for event in events:
            queue.put_nowait(event)
    finally:
        queue.put_nowait(None)


async def _frames(
    event: RunEvent | None, queue: _Queue, run: asyncio.Task[None], heartbeat_s: float
) -> AsyncGenerator[str, None]:
    number = 0
    try:
        while event is not None:
            yield frame(event, number)
            number += 1
            while queue.empty():
                try:
                    async with asyncio.timeout(heartbeat_s):
                        event = await queue.get()
                        break
                except TimeoutError:
                    yield HEARTBEAT
            else:
                event = queue.get_nowait()
        await run
    finally:
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run
