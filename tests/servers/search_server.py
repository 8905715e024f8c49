"""A search engine on loopback with DuckDuckGo's result page, so that the real `ddgs` client and parser run."""

import html
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from ddgs.engines.duckduckgo import Duckduckgo


@dataclass
class SearchServer:
    """`results` are (title, address, snippet) put into the page as they are; `statuses` are taken one a request."""

    url: str = ""
    results: list[tuple[str, str, str]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    delay_s: float = 0.0
    queries: list[str] = field(default_factory=list)


@pytest.fixture
def search_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    """A search engine for one test; `ddgs` is pointed at it."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    httpd.daemon_threads = True
    server = SearchServer(f"http://127.0.0.1:{httpd.server_port}/html/")
    httpd.search = server  # type: ignore[attr-defined]  # how a handler of http.server reaches what it serves
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    monkeypatch.setattr(Duckduckgo, "search_url", server.url)
    yield server
    httpd.shutdown()
    httpd.server_close()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        search: SearchServer = self.server.search  # type: ignore[attr-defined]  # see above
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        search.queries.extend(form.get("q", []))
        time.sleep(search.delay_s)
        status = search.statuses.pop(0) if search.statuses else 200
        rows = "".join(
            f'<div class="result__body body"><h2>{title}</h2><a href="{html.escape(url)}">{snippet}</a></div>'
            for title, url, snippet in search.results
        )
        page = f"<html><body>{rows}</body></html>".encode()
        if search.delay_s:
            return  # the client is gone
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
