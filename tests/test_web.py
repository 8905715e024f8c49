"""The web search against a local engine: what comes back is clean, and failures are told from empty results."""

import re
import sys
import time
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline import web
from leadline.errors import WebUnavailable
from leadline.web import DdgsSearch, plain_text


async def test_results_are_clean_and_in_order(search_server: Any) -> None:
    """Title, address and snippet come back as plain text, best first, at most k, each address once."""
    search_server.results = [
        ("Tide &amp; <b>depth</b> table", "https://a.example/tides", "Depth at <b>noon</b>:&nbsp;4 m"),
        ("Tide depth again", "https://a.example/tides", "the same page"),
        ("Other tide depth", "http://b.example/x", "More depth"),
        ("Third tide depth", "https://c.example/x", "Even more"),
    ]
    found = await DdgsSearch(timeout_s=5).search("tide depth", k=2)
    assert len({result.url for result in found}) == len(found) == 2
    assert {result.url for result in found} <= {"https://a.example/tides", "http://b.example/x", "https://c.example/x"}
    assert all("<" not in result.title + result.snippet for result in found)
    assert all(result.retrieved_at.endswith("+00:00") for result in found)
    assert search_server.queries == ["tide depth"]


async def test_addresses_that_are_no_web_pages_are_dropped(search_server: Any) -> None:
    """No script, file, data or credential address ever reaches a reader."""
    bad = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "//x",
        "http://user:pw@x.example/",
        "ftp://x",
    ]
    search_server.results = [
        *(("tide depth", url, "tide depth") for url in bad),
        ("tide", "https://ok.example/", "depth"),
    ]
    found = await DdgsSearch(timeout_s=5).search("tide depth", k=10)
    assert [result.url for result in found] == ["https://ok.example/"]


@pytest.mark.parametrize("statuses", [[], [429], [202], [403]])
async def test_no_results_is_an_empty_list(search_server: Any, statuses: list[int]) -> None:
    """The client's "No results found." means nothing was found, whatever the engine did."""
    search_server.statuses = statuses
    assert await DdgsSearch(timeout_s=5).search("tide depth", k=3) == []


async def test_a_slow_engine_is_unavailable_after_one_more_try(
    search_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out is tried once more, then said, within about twice the time-out."""
    monkeypatch.setattr(web, "BACKOFF_S", 0.01)
    search_server.delay_s = 3
    begun = time.monotonic()
    with pytest.raises(WebUnavailable):
        await DdgsSearch(timeout_s=1).search("tide depth", k=3)
    assert time.monotonic() - begun < 8


async def test_a_refused_connection_is_unavailable(search_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server at the other end is a failure, never "nothing found"."""
    from ddgs.engines.duckduckgo import Duckduckgo

    monkeypatch.setattr(web, "BACKOFF_S", 0.01)
    monkeypatch.setattr(Duckduckgo, "search_url", "http://127.0.0.1:9/")
    with pytest.raises(WebUnavailable):
        await DdgsSearch(timeout_s=2).search("tide depth", k=3)


class OldPackage(ModuleType):
    """`duckduckgo_search` as it was, with a client that raises what it is told to."""

    def __init__(self, outcome: Any) -> None:
        super().__init__("duckduckgo_search")
        self.calls = 0
        exceptions = ModuleType("duckduckgo_search.exceptions")
        error = type("DuckDuckGoSearchException", (Exception,), {})
        exceptions.DuckDuckGoSearchException = error  # type: ignore[attr-defined]  # a module made by hand
        exceptions.RatelimitException = type("RatelimitException", (error,), {})  # type: ignore[attr-defined]  # as above
        package = self

        class DDGS:
            def __init__(self, timeout: int) -> None:
                assert timeout > 0

            def text(self, query: str, max_results: int) -> list[dict[str, str]]:
                assert query
                assert max_results
                package.calls += 1
                if isinstance(outcome, str):
                    raise getattr(exceptions, outcome)("202 Ratelimit")
                return list(outcome)

        self.DDGS = DDGS
        self.exceptions = exceptions


def install_old_package(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> OldPackage:
    """Only the old package name is there."""
    package = OldPackage(outcome)
    monkeypatch.setitem(sys.modules, "duckduckgo_search", package)
    monkeypatch.setitem(sys.modules, "duckduckgo_search.exceptions", package.exceptions)
    monkeypatch.setattr(web.importlib.util, "find_spec", lambda name: package if name == "duckduckgo_search" else None)
    monkeypatch.setattr(web, "BACKOFF_S", 0.01)
    return package


async def test_the_old_package_name_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only `duckduckgo_search` is installed, it is used."""
    install_old_package(monkeypatch, [{"title": "t", "href": "https://a.example/", "body": "b"}])
    assert [r.url for r in await DdgsSearch().search("x", k=1)] == ["https://a.example/"]


async def test_a_rate_limit_is_unavailable_after_one_more_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate limit on the first query is tried once more, then it is a failure the run can show."""
    package = install_old_package(monkeypatch, "RatelimitException")
    with pytest.raises(WebUnavailable, match="Ratelimit"):
        await DdgsSearch().search("x", k=1)
    assert package.calls == 2


async def test_without_a_client_the_hint_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither package: the web is unavailable and the message says what to install."""
    monkeypatch.setattr(web.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(web, "BACKOFF_S", 0.01)
    with pytest.raises(WebUnavailable, match="pip install ddgs"):
        await DdgsSearch().search("x", k=1)


MARKUP = [*"<>&;\"'ab \n\t\u200b\x00/!-", "&lt;", "<img src=x onerror=alert(1)>", "<img", "script"]


@given(st.lists(st.sampled_from(MARKUP), max_size=30).map("".join))
def test_plain_text_has_no_tag_and_is_short(text: str) -> None:
    """Whatever a page says, no tag, control or zero-width sign is left."""
    clean = plain_text(text, 30)
    assert not re.search(r"<[a-z]", clean)
    assert "\x00" not in clean
    assert "\u200b" not in clean
    assert len(clean) <= 32
