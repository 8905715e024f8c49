"""A run's events as a server-sent stream: the heartbeat, and the end of the run when the client goes away.

Doesn't know what a frame says: its caller writes each event.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from leadline.events import FinalEvent, RunEvent

log = logging.getLogger(__name__)

HEARTBEAT_S: Final = 10.0
HEARTBEAT: Final = ": still working\n\n"
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_LINE_ENDS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}

Write = Callable[[RunEvent], str]
_Queue = asyncio.Queue[RunEvent | None]


async def begin_stream(
    events: AsyncIterator[RunEvent],
    write: Write,
    *,
    heartbeat_s: float = HEARTBEAT_S,
    cut: RunEvent | None = None,
) -> AsyncGenerator[str, None]:
    """Starts the run behind `events` and returns its frames once the first event has come.

    `write` gives the frames of an event, whole ones, or nothing. What the run raises before its first event is raised
    here, while it can still become a status. Between frames, a comment goes out whenever nothing was sent for
    `heartbeat_s` seconds. Closing the generator, or cancelling whoever reads it, cancels the run; who is cancelled gets
    `cut` as the last event: a server that ends does that, and its client is still there.
    """
    queue: _Queue = asyncio.Queue()
    run = asyncio.create_task(_pump(events, queue))
    run.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # looked at, also when nobody is left
    try:
        first = await queue.get()
    except asyncio.CancelledError:
        run.cancel()
        raise
    if first is None:
        await run
    return _closing(_frames(first, queue, run, write, heartbeat_s), run, write, cut)


def numbered() -> Write:
    """Writes a stream's events: type, number in the stream from 0, and one JSON object on one line."""
    numbers = itertools.count()
    return lambda event: frame(event, next(numbers))


def frame(event: RunEvent, number: int) -> str:
    """One event as `numbered` writes it."""
    return f"event: {event.type}\nid: {number}\ndata: {one_line(event.model_dump_json())}\n\n"


def one_line(data: str) -> str:
    """JSON without the characters that JSON allows and that many a client takes for the end of a line."""
    return data.translate(_LINE_ENDS)


async def _pump(events: AsyncIterator[RunEvent], queue: _Queue) -> None:
    """One task drives the run from its first to its last event: time-outs inside belong to the task they began in."""
    try:
        async for event in events:
            queue.put_nowait(event)
    finally:
        queue.put_nowait(None)


async def _closing(
    frames: AsyncGenerator[str, None], run: asyncio.Task[None], write: Write, cut: RunEvent | None
) -> AsyncGenerator[str, None]:
    try:
        async with aclosing(frames):
            async for text in frames:
                yield text
    except asyncio.CancelledError:
        if cut is None or (run.done() and not run.cancelled()):
            raise
        yield write(cut)  # and no wait: whoever reads is cancelled at the next one


async def _frames(
    event: RunEvent | None, queue: _Queue, run: asyncio.Task[None], write: Write, heartbeat_s: float
) -> AsyncGenerator[str, None]:
    clock = asyncio.get_running_loop().time
    ended, due = False, clock() + heartbeat_s
    try:
        while event is not None:
            ended = ended or isinstance(event, FinalEvent)
            if text := write(event):
                yield text
                due = clock() + heartbeat_s
            while True:
                try:
                    async with asyncio.timeout_at(due):
                        event = await queue.get()
                    break
                except TimeoutError:
                    yield HEARTBEAT
                    due = clock() + heartbeat_s
        await _over(run, ended)
    finally:
        run.cancel()
        # Not awaited itself: a server cancels whoever answers again and again, which the run's own ending must not see.
        await asyncio.wait({run})


async def _over(run: asyncio.Task[None], ended: bool) -> None:
    """Raises what the run raised, unless its result is out: then there is nobody to tell but the log."""
    try:
        await run
    except Exception as error:
        if not ended:
            raise
        log.warning("A run failed after its result: %s", type(error).__name__)  # its words may be a document's
