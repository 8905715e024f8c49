"""A search engine on loopback with DuckDuckGo's result page, so that the real `ddgs` client and parser run."""

import html
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import pytest
from ddgs.engines.duckduckgo import Duckduckgo
from tests.servers.http_servers import Handler, running


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
    with running(_Handler) as http:
        server = http.served = SearchServer(f"{http.url}/html/")
        monkeypatch.setattr(Duckduckgo, "search_url", server.url)
        yield server


class _Handler(Handler):
    def respond(self) -> None:
        search: SearchServer = self.served
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
        self.answer(status, page, {"Content-Type": "text/html; charset=utf-8"})
