"""A search engine on loopback with DuckDuckGo's result page, so that the real `ddgs` client and parser run, and the
web behind it: pages whose every header and byte a test can set. Records every byte that reaches it."""

import html
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from ddgs.engines.duckduckgo import Duckduckgo
from tests.servers.http_servers import Handler, running

from leadline.web import PageFetcher

NOTHING = '<div class="no-results">No&nbsp;&nbsp;results.</div>'
CAPTCHA = '<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div>'


@dataclass
class Served:
    """What the server answers at one path. `parts` are sent one by one, `pause_s` apart."""

    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})
    parts: tuple[bytes, ...] = ()
    pause_s: float = 0.0
    location: str = ""


@dataclass
class SearchServer:
    """`results` are (title, address, snippet) put into the page as they are; `statuses` are taken one a request.

    `extra` is put into the result page. `pages` is the rest of the web, by path. `json_results`, where set, are what
    the server answers as SearXNG.
    """

    origin: str = ""
    results: list[tuple[str, str, str]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    extra: str = ""
    delay_s: float = 0.0
    queries: list[str] = field(default_factory=list)
    pages: dict[str, Served] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    json_results: Any = None
    recorded: bytearray = field(default_factory=bytearray)

    @property
    def url(self) -> str:
        """Where the engine takes its queries."""
        return f"{self.origin}/html/"

    def page(self, path: str, body: bytes | str, **options: Any) -> str:
        """Puts a page there; returns its address."""
        self.pages[path] = Served(body, **options)
        return f"{self.origin}{path}"

    def fetcher(self, **options: Any) -> PageFetcher:
        """A fetcher that may reach this machine too, which nothing but a test's own argument allows."""
        return PageFetcher(**{"permitted": lambda address: address.is_loopback, "timeout_s": 5, **options})


@contextmanager
def running_search_server() -> Iterator[SearchServer]:
    """A search engine that runs while the block does, on a free port."""
    with running(_Handler) as http:
        server = http.served = SearchServer(http.url)
        yield server


@pytest.fixture
def search_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    """A search engine for one test; `ddgs` is pointed at it."""
    with running_search_server() as server:
        monkeypatch.setattr(Duckduckgo, "search_url", server.url)
        yield server


class _Recorder:
    """A stream that remembers what was read from it."""

    def __init__(self, stream: Any, recorded: bytearray) -> None:
        self._stream = stream
        self._recorded = recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, *size: int) -> bytes:
        data: bytes = self._stream.read(*size)
        self._recorded += data
        return data

    def readline(self, *size: int) -> bytes:
        data: bytes = self._stream.readline(*size)
        self._recorded += data
        return data


class _Handler(Handler):
    def setup(self) -> None:
        super().setup()
        self.rfile = _Recorder(self.rfile, self.served.recorded)  # type: ignore[assignment]  # as far as it is read

    def respond(self) -> None:
        web: SearchServer = self.served
        path = urlsplit(self.path).path
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if path == "/html/":
            self._search(web, sent)
        elif path == "/search":
            self._searxng(web, sent)
        else:
            web.fetched.append(self.path)
            self._page(web.pages.get(path) or Served("nothing here", status=404))

    def _search(self, web: SearchServer, sent: str) -> None:
        web.queries.extend(parse_qs(sent).get("q", []))
        time.sleep(web.delay_s)
        status = web.statuses.pop(0) if web.statuses else 200
        rows = "".join(
            f'<div class="result__body body"><h2>{title}</h2><a href="{html.escape(url)}">{snippet}</a></div>'
            for title, url, snippet in web.results
        )
        page = f"<html><body>{rows}{web.extra}</body></html>".encode()
        if not web.delay_s:  # else the client is gone
            self.answer(status, page, {"Content-Type": "text/html; charset=utf-8"})

    def _searxng(self, web: SearchServer, sent: str) -> None:
        web.queries.extend(parse_qs(sent).get("q", []))
        status = web.statuses.pop(0) if web.statuses else 200
        self.answer(status, json.dumps(web.json_results).encode(), {"Content-Type": "application/json", **web.headers})

    def _page(self, page: Served) -> None:
        body = page.body.encode() if isinstance(page.body, str) else page.body
        headers = dict(page.headers)
        if page.location:
            headers["Location"] = page.location
        if not page.parts:
            self.answer(page.status, body, headers)
            return
        self.send_response(page.status)
        for name, value in headers.items():
            self.send_header(name, value)
        with suppress(ConnectionError):
            self.end_headers()
            for part in page.parts:
                self.wfile.write(part)
                self.wfile.flush()
                time.sleep(page.pause_s)
