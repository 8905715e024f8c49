"""What a connection may do beside its requests: how long their heads are and take, how long an answer isn't taken.

uvicorn bounds neither where it reads with httptools: whoever can reach the port, with a token or without, could fill
the memory or keep a connection for ever. What is no HTTP is answered in the one shape of errors. Bodies are bounded by
`limits`. A client that takes nothing of its answer would keep the connection, and whatever fills it, as well.
"""

import asyncio
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from leadline.api.headers import DEFAULTS
from leadline.api.problems import problem

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as AutoHTTPProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    HttpToolsProtocol = object  # or the one in plain Python, where httptools is not installed

MAX_HEAD: Final = 64 * 1024  # bytes of a request line with its headers, and of what follows a body
UNREAD_S: Final = 60.0  # without any of what waits for a client being taken; on Linux the connection ends then
HEAD_S: Final = 30.0  # from the connection, or from the first byte of a later request on it, to the end of the head


class Bounded(HttpToolsProtocol):
    """What is added to a protocol of uvicorn, for one connection.

    Answers 400, 408 and 431 itself, and ends the connection with them.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._outside = 0  # bytes since the last head or piece of a body was whole
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """See asyncio.Protocol."""
        super().connection_made(transport)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            taken = round(UNREAD_S * 1000)
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, taken)
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        cycle = self.cycle
        in_body = cycle is not None and cycle.more_body
        had = len(cycle.body) if in_body else 0
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not cycle or (in_body and (len(cycle.body) > had or not cycle.more_body)):
            self._outside = 0
            self._stop()
            return
        self._outside += len(data)
        if self._outside > MAX_HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"More than {MAX_HEAD:,} bytes of headers came.")
        elif not in_body and self._timer is None:
            self._start()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def _start(self) -> None:
        self._timer = self.loop.call_later(HEAD_S, self._too_slow)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        if self._outside:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"The headers did not come within {HEAD_S:g} s.")
        else:  # a browser that made a connection to have one
            self.transport.close()

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Unless an answer is going out on this connection, which it would be taken for a part of."""
        self._stop()
        if self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body):
            code = {400: "bad_request", 408: "too_slow"}.get(status, "too_large")
            answer = problem(status, code, message, headers={**DEFAULTS, "Connection": "close"})
            head = b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
            line = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
            self.transport.write(line + head + b"\r\n" + bytes(answer.body))
        self.transport.close()


class BoundedHttp(Bounded, AutoHTTPProtocol):
    """With the faster of uvicorn's two that is installed."""
