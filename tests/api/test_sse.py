"""Framing of server-sent events, the heartbeat, and the end of a run whose reader went away."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from leadline.api.sse import HEARTBEAT, begin_stream, frame, numbered
from leadline.errors import ThreadBusy
from leadline.events import FinalEvent, RunEvent, TokenEvent


def test_a_frame_is_one_json_object_on_one_line() -> None:
    """Line breaks in the text are escaped, so that a client can split by lines."""
    lines = frame(TokenEvent(text="a\nb\r\n\u2028c"), 7).split("\n")
    assert lines[:2] == ["event: token", "id: 7"]
    assert json.loads(lines[2].removeprefix("data: ")) == {"type": "token", "text": "a\nb\r\n\u2028c"}
    assert lines[3:] == ["", ""]


async def test_quiet_times_are_filled_with_comments() -> None:
    """A comment goes out between frames while nothing happens, never inside one."""

    async def events() -> AsyncIterator[RunEvent]:
        yield TokenEvent(text="a")
        await asyncio.sleep(0.25)
        yield FinalEvent(result={})

    frames = [text async for text in await begin_stream(events(), numbered(), heartbeat_s=0.05)]
    assert frames[0].startswith("event: token")
    assert frames[-1].startswith("event: final")
    assert set(frames[1:-1]) == {HEARTBEAT}


async def test_closing_the_stream_cancels_the_run() -> None:
    """When the reader goes, the run behind it ends at once."""
    ended = asyncio.Event()

    async def events() -> AsyncIterator[RunEvent]:
        try:
            yield TokenEvent(text="a")
            await asyncio.sleep(60)
        finally:
            ended.set()

    stream = await begin_stream(events(), numbered())
    await anext(stream)
    await stream.aclose()
    assert ended.is_set()


async def test_what_fails_before_the_first_event_is_raised() -> None:
    """A busy conversation is still a status, not a broken stream."""

    async def events() -> AsyncIterator[RunEvent]:
        raise ThreadBusy("busy")
        yield

    with pytest.raises(ThreadBusy):
        await begin_stream(events(), numbered())


async def test_time_outs_inside_the_run_belong_to_it() -> None:
    """A run may hold a time-out over several events: one task drives it from start to end."""

    async def events() -> AsyncIterator[RunEvent]:
        async with asyncio.timeout(5):
            yield TokenEvent(text="a")
            yield FinalEvent(result={})

    assert len([text async for text in await begin_stream(events(), numbered())]) == 2
