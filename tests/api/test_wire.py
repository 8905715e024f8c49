"""What comes before a request is one: heads without an end, slow ones, and what is no HTTP."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from leadline import Settings
from leadline.api import wire
from leadline.api.wire import MAX_HEAD, Bounded, BoundedHttp
from leadline.api.workers import server_config

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
PATIENCE_S = 10


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body to its end, then says how long it was."""
    if scope["type"] != "http":
        return
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    said = str(length).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


@pytest.fixture(scope="module", params=[HttpToolsProtocol, H11Protocol])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Where a server listens that reads HTTP by the one or the other of uvicorn's ways."""
    protocol = type("Protocol", (Bounded, request.param), {})
    config = uvicorn.Config(_app, http=protocol, ws="none", port=0, lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(PATIENCE_S)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with less patience, so that nobody has to wait for it."""
    monkeypatch.setattr(wire, "HEAD_S", 0.3)


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(PATIENCE_S)
    return connection


def _until_closed(connection: socket.socket) -> bytes:
    """What comes until the server has closed the connection; a time-out fails the test."""
    said = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionError:
            return said
        if not piece:
            return said
        said += piece


def _until(connection: socket.socket, end: bytes) -> bool:
    """Whether an answer comes that ends so: head and body may come apart."""
    said = b""
    while not said.endswith(b"\r\n\r\n" + end):
        piece = connection.recv(65536)
        if not piece:
            return False
        said += piece
    return True


def _error(said: bytes) -> tuple[int, str]:
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert b"content-type: application/json" in head.lower()
    found = json.loads(body)["error"]
    assert set(found) == {"code", "message", "hint"}
    return int(head.split(b" ")[1]), found["code"]


@pytest.mark.parametrize(
    ("first", "piece"),
    [(GET + b"X: ", b"a" * 8192), (GET, b"X-Y: z\r\n" * 1000), (b"GET /", b"a" * 8192)],
    ids=["a value", "headers", "an address"],
)
def test_a_head_without_end_is_refused(port: int, first: bytes, piece: bytes) -> None:
    """Long before it fills the memory, and the connection ends."""
    with _connected(port) as connection:
        taken = len(first)
        connection.sendall(first)
        with suppress(ConnectionError):
            for _ in range(200):
                taken += connection.send(piece)
                time.sleep(0.002)  # else all of it is in the system's buffers before the server sees the first
        status, code = _error(_until_closed(connection))
        assert (status, code) in {(431, "too_large"), (400, "bad_request")}  # h11 has a bound of its own
    assert taken < 20 * MAX_HEAD


def test_what_follows_a_body_is_bounded_too(port: int) -> None:
    """Trailers without an end close the connection; nobody is answered as if the body were whole."""
    with _connected(port) as connection:
        connection.sendall(POST + b"3\r\nabc\r\n0\r\n")
        taken = 0
        with suppress(ConnectionError):
            for _ in range(200):
                taken += connection.send(b"X-Y: z\r\n" * 1000)
                time.sleep(0.002)
        assert b" 200 " not in _until_closed(connection)
    assert taken < 20 * MAX_HEAD


@pytest.mark.usefixtures("hasty")
def test_a_head_that_stops_coming_is_given_up(port: int) -> None:
    """Also where it comes byte by byte, and a connection on which nothing comes is closed without a word."""
    with _connected(port) as half, _connected(port) as slow, _connected(port) as silent:
        half.sendall(GET)
        with suppress(ConnectionError):
            for byte in GET * 3:
                slow.sendall(bytes([byte]))
                time.sleep(0.01)
        assert _error(_until_closed(half)) == (408, "too_slow")
        assert _error(_until_closed(slow)) == (408, "too_slow")
        assert _until_closed(silent) == b""


@pytest.mark.usefixtures("hasty")
def test_patience_is_for_each_request_of_a_connection(port: int) -> None:
    """The second may begin late, and can't be slow either; a slow body is none of this."""
    with _connected(port) as connection:
        connection.sendall(GET + b"\r\n")
        assert _until(connection, b"0")
        time.sleep(0.5)
        connection.sendall(POST)
        for _ in range(5):
            time.sleep(0.1)
            connection.sendall(b"3\r\nabc\r\n")
        connection.sendall(b"0\r\n\r\n")
        assert _until(connection, b"15")
        connection.sendall(b"GET ")
        assert _error(_until_closed(connection)) == (408, "too_slow")


def test_a_large_body_is_no_head(port: int) -> None:
    """However it is cut, and several requests in one piece are all answered."""
    with _connected(port) as connection:
        connection.sendall(POST + b"".join(b"40000\r\n" + b"a" * 0x40000 + b"\r\n" for _ in range(8)) + b"0\r\n\r\n")
        assert _until(connection, str(8 * 0x40000).encode())
        connection.sendall((GET + b"\r\n") * 2 + GET + b"Connection: close\r\n\r\n")
        assert _until_closed(connection).count(b" 200 ") == 3


@pytest.mark.parametrize("sent", [b"NONSENSE / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n"])
def test_what_is_no_http_is_told_in_the_one_shape(port: int, sent: bytes) -> None:
    """A word that is no method, and TLS on a port without it."""
    with _connected(port) as connection:
        connection.sendall(sent)
        connection.sendall(b"\r\n")
        assert _error(_until_closed(connection)) == (400, "bad_request")


def test_the_server_speaks_so(tmp_path: Path) -> None:
    """What `leadline serve` starts has these bounds, and no WebSockets."""
    config = server_config(Settings(data_dir=tmp_path), app=_app)
    config.load()
    assert config.http_protocol_class is BoundedHttp
    assert config.ws == "none"
