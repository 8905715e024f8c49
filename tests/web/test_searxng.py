"""A SearXNG server as the engine: its JSON, its refusals, and what is sent to it."""

from typing import Any

import pytest

from leadline.config import Settings
from leadline.errors import ConfigError, WebRateLimited, WebUnavailable
from leadline.web import DdgsSearch, SearxngSearch, open_search, patience

HITS = [
    {"title": "Tide <b>table</b>", "url": "https://a.example/tides", "content": "4 m at noon", "engine": "bing"},
    {"title": "again", "url": "https://a.example/tides", "content": "x"},
    {"title": "bad", "url": "file:///etc/passwd", "content": "x"},
    {"title": None, "url": "https://b.example/", "content": None},
    "no hit at all",
]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits."""
    monkeypatch.setattr(patience, "PAUSE_S", 0.01)
    monkeypatch.setattr(patience, "RATE_LIMIT_PAUSE_S", 0.01)


async def test_hits_are_clean_and_in_order(search_server: Any) -> None:
    """Plain text, each address once, web pages only, in the server's order; the query goes in the body."""
    search_server.json_results = {"results": HITS}
    found = await SearxngSearch(search_server.origin + "/").search("tide depth", k=5)
    assert [(hit.title, hit.url, hit.snippet) for hit in found] == [
        ("Tide table", "https://a.example/tides", "4 m at noon"),
        ("https://b.example/", "https://b.example/", ""),
    ]
    assert search_server.queries == ["tide depth"]
    line, _, _ = search_server.recorded.decode().partition("\r\n")
    assert line == "POST /search HTTP/1.1"


async def test_nothing_and_no_answer_are_told_apart(search_server: Any) -> None:
    """No results while the engines behind it don't answer is a failure; no results from engines that do, is none."""
    engine = SearxngSearch(search_server.origin)
    search_server.json_results = {"results": [], "unresponsive_engines": []}
    assert await engine.search("tide", k=3) == []
    search_server.json_results = {"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]}
    with pytest.raises(WebUnavailable, match="CAPTCHA"):
        await engine.search("tide", k=3)


@pytest.mark.parametrize("answer", [None, [], {"results": "x"}, {"results": {"a": 1}}, "text"])
async def test_what_is_no_result_list_is_a_failure(search_server: Any, answer: Any) -> None:
    """Whatever else a server may say under that address."""
    search_server.json_results = answer
    with pytest.raises(WebUnavailable):
        await SearxngSearch(search_server.origin).search("tide", k=3)


async def test_a_refusal_says_what_to_set(search_server: Any) -> None:
    """A server whose JSON is switched off answers 403."""
    search_server.statuses = [403] * 2
    with pytest.raises(WebUnavailable) as raised:
        await SearxngSearch(search_server.origin).search("tide", k=3)
    assert "search.formats" in raised.value.hint


async def test_the_pause_a_server_names_is_kept(search_server: Any) -> None:
    """A long one isn't waited for: nothing more is sent to it for so long."""
    search_server.statuses, search_server.headers = [429], {"Retry-After": "900"}
    engine = SearxngSearch(search_server.origin)
    with pytest.raises(WebRateLimited) as raised:
        await engine.search("tide", k=3)
    assert raised.value.retry_after_s == 900
    with pytest.raises(WebRateLimited, match=r"again in (900|899) s"):
        await engine.search("tide", k=3)
    assert len(search_server.queries) == 1


def test_the_setting_chooses_the_engine() -> None:
    """DuckDuckGo unless set otherwise; a server needs an address that is one."""
    assert isinstance(open_search(Settings()), DdgsSearch)
    assert isinstance(open_search(Settings(web_provider="searxng", web_url="http://localhost:8888")), SearxngSearch)
    with pytest.raises(ConfigError, match="LEADLINE_WEB_URL"):
        open_search(Settings(web_provider="searxng"))
    for bad in ("localhost:8888", "ftp://x.example", "http://user:pw@x.example"):
        with pytest.raises(ConfigError):
            open_search(Settings(web_provider="searxng", web_url=bad))


@pytest.mark.parametrize("url", ["localhost:8888", "http://", "http://süche.example"])
def test_an_address_that_cannot_be_asked_is_refused_at_once(url: str) -> None:
    """Not at the first search, with an error of the client."""
    with pytest.raises(ConfigError, match="SearXNG"):
        SearxngSearch(url)
