"""HTTP servers of the tests' own, each in a thread: on a free port of this machine, over TLS where it is to."""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = {"Content-Type": "application/json"}


class HttpServer(ThreadingHTTPServer):
    """A server that runs. `served` is what its handlers work on: set it before the first request."""

    daemon_threads = True
    scheme = "http"
    served: Any = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """A handler that responds to every method alike, says nothing of it, and knows what its server is for."""

    @property
    def served(self) -> Any:
        """What the server was given to work on."""
        assert isinstance(self.server, HttpServer)
        return self.server.served

    def respond(self) -> None:
        """Reads the request and answers it."""
        raise NotImplementedError

    def _any(self) -> None:
        self.respond()

    do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815 - the names http.server looks for

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def answer(self, status: int, content: bytes, headers: Mapping[str, str] = JSON) -> None:
        """A whole response; a client that is gone is none of the server's business."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        with suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(content)


@contextmanager
def running(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    """A server that runs while the block does."""
    with HttpServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.scheme = "https"
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
