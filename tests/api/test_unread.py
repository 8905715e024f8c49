"""A client that takes nothing of its answer has its connection ended; one that reads, however slowly, hasn't."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from leadline.api import wire
from leadline.api.wire import BoundedHttp

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux ends such a connection")

PATIENCE_S = 30
PIECE = b"x" * 65536
ended = threading.Event()


async def endless(scope: Any, receive: Any, send: Any) -> None:
    """An answer without an end, for as long as there is a client."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    gone = asyncio.create_task(receive())
    while not gone.done():
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        await asyncio.sleep(0)
    ended.set()


@pytest.fixture(params=["asyncio", "auto"])
def wire_to(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The connection of a client that has asked, to a server with a second of patience, on either event loop."""
    monkeypatch.setattr(wire, "UNREAD_S", 1.0)
    ended.clear()
    config = uvicorn.Config(endless, http=BoundedHttp, loop=request.param, port=0, lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    with socket.create_connection(server.servers[0].sockets[0].getsockname(), timeout=PATIENCE_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield client
    server.should_exit = server.force_exit = True
    thread.join(PATIENCE_S)


def test_who_takes_nothing_is_given_up(wire_to: socket.socket) -> None:
    """What fills the answer learns that its client is gone, though the client still holds the connection."""
    assert ended.wait(PATIENCE_S)
    with pytest.raises(ConnectionError):  # an answer that ends as if it were whole would do harm
        list(iter(lambda: wire_to.recv(len(PIECE)), b""))


def test_who_reads_slowly_is_not(wire_to: socket.socket) -> None:
    """Over three times as long, with pauses in which nothing is taken."""
    until = time.monotonic() + 3 * wire.UNREAD_S
    while time.monotonic() < until:
        left = 4 << 20
        while left > 0:
            got = len(wire_to.recv(min(left, 1 << 20)))
            assert got, "the connection was ended"
            left -= got
        time.sleep(0.3)
    assert not ended.is_set()
