"""One request to `POST /chat` as a client of `serve.py` makes it, read as it comes, and what was wrong with it."""

import asyncio
import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any

import h11

SLOW_BYTES, SLOW_S = 512, 0.02  # how a slow reader reads


@dataclass
class Stream:
    """What a request gave. `faults`: what can't be, such as an event of somebody else; `ended`: it had its final."""

    status: int = 0
    run: str = ""
    first_event_s: float = 0.0
    first_token_s: float = 0.0
    seconds: float = 0.0
    dropped: bool = False
    ended: bool = False
    tokens: list[str] = field(default_factory=list)
    events: int = 0
    result: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


async def ask(
    port: int, body: dict[str, Any], *, slow: bool = False, drop: bool = False, started: asyncio.Event | None = None
) -> Stream:
    """Asks and reads to the end; `drop` goes away after the first token, `started` is set then."""
    told = Stream()
    begun = time.perf_counter()
    reader, writer = await _connect(port, slow)
    try:
        wire = h11.Connection(h11.CLIENT)
        data = json.dumps(body).encode()
        headers = [("Host", f"127.0.0.1:{port}"), ("Content-Type", "application/json")]
        request = h11.Request(method="POST", target="/chat", headers=[*headers, ("Content-Length", str(len(data)))])
        writer.write((wire.send(request) or b"") + (wire.send(h11.Data(data=data)) or b""))
        wire.send(h11.EndOfMessage())
        await _read(_Wire(reader, wire, slow), told, begun, drop=drop, started=started)
    except (ConnectionError, h11.RemoteProtocolError):
        pass  # the stream broke: it has no final
    finally:
        writer.transport.abort()  # a client that drops doesn't say goodbye
    told.seconds = time.perf_counter() - begun
    return told


async def _connect(port: int, slow: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    connection = socket.socket()
    connection.setblocking(False)
    if slow:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=connection, limit=1024 if slow else 2**16)


@dataclass
class _Wire:
    reader: asyncio.StreamReader
    http: h11.Connection
    slow: bool

    async def next_event(self) -> Any:
        """What comes next, of HTTP."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(SLOW_BYTES if self.slow else 65536))
            if self.slow:
                await asyncio.sleep(SLOW_S)
        return event


async def _read(wire: _Wire, told: Stream, begun: float, *, drop: bool, started: asyncio.Event | None) -> None:
    text = b""
    while True:
        event = await wire.next_event()
        if isinstance(event, h11.Response):
            told.status = event.status_code
            told.run = dict(event.headers).get(b"x-run-id", b"").decode()
        elif isinstance(event, h11.Data):
            told.first_event_s = told.first_event_s or time.perf_counter() - begun
            *frames, text = (text + event.data).split(b"\n\n")
            for frame in frames:
                _take(frame.decode(), told, begun)
            if told.tokens and started is not None:
                started.set()
            if told.tokens and drop:
                told.dropped = True
                return
        else:
            if text and told.status == 200:
                told.faults.append(f"half a frame at the end: {text[:80]!r}")
            return


def _take(frame: str, told: Stream, begun: float) -> None:
    if frame.startswith(":") or told.status != 200:
        return
    lines = dict(line.split(": ", 1) for line in frame.split("\n"))
    if set(lines) != {"event", "id", "data"} or lines["id"] != str(told.events):
        told.faults.append(f"a frame out of order, number {told.events}: {frame[:80]!r}")
    told.events += 1
    if told.ended:
        told.faults.append(f"after the final: {frame[:80]!r}")
    data = json.loads(lines["data"])
    if lines["event"] == "token":
        told.first_token_s = told.first_token_s or time.perf_counter() - begun
        told.tokens.append(data["text"])
    elif lines["event"] == "retract":
        told.tokens.clear()
    elif lines["event"] == "final":
        told.ended, told.result = True, data["result"]
