"""The web search against a local engine: what comes back is clean, and failures are told from empty results."""

import re
import sys
import time
from types import ModuleType
from typing import Any

import pytest
from ddgs.engines.duckduckgo import Duckduckgo
from hypothesis import given
from hypothesis import strategies as st
from tests.servers.search_server import CAPTCHA, NOTHING

from leadline.errors import ConfigError, WebRateLimited, WebUnavailable
from leadline.web import DdgsSearch, duckduckgo, patience, plain_text


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits."""
    monkeypatch.setattr(patience, "PAUSE_S", 0.01)
    monkeypatch.setattr(patience, "RATE_LIMIT_PAUSE_S", 0.01)


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


async def test_hits_that_lead_through_the_engine_are_named_by_their_end(search_server: Any) -> None:
    """DuckDuckGo's own redirects are taken apart, so that it isn't told which hit is read."""
    search_server.results = [
        ("tide", "//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Ft%3Fx%3D1%26y%3D2&rut=0af1", "depth"),
        ("tide", "https://duckduckgo.com/l/?kh=-1&uddg=https%3A%2F%2Fb.example%2F", "depth"),
        ("tide", "//duckduckgo.com/l/?uddg=file%3A%2F%2F%2Fetc%2Fpasswd&rut=0", "depth"),
    ]
    found = await DdgsSearch(timeout_s=5).search("tide depth", k=5)
    assert [hit.url for hit in found] == ["https://a.example/t?x=1&y=2", "https://b.example/"]


async def test_none_is_said_only_where_the_engine_says_so(search_server: Any) -> None:
    """A page that says there are no results is a true nothing, also where the question is about captchas."""
    search_server.extra = f"{NOTHING} <input value='are you a robot'>"
    assert await DdgsSearch(timeout_s=5).search("are you a robot", k=3) == []
    assert len(search_server.queries) == 1


@pytest.mark.parametrize("status", [429, 202, 403, 503])
async def test_a_refusal_is_a_rate_limit_and_not_nothing(search_server: Any, status: int) -> None:
    """The client says "No results found." to all of these; the engine's status says more. One more try, no third."""
    search_server.statuses = [status] * 5
    search_server.extra = NOTHING
    with pytest.raises(WebRateLimited, match=str(status)):
        await DdgsSearch(timeout_s=5).search("tide depth", k=3)
    assert len(search_server.queries) == 2


async def test_a_captcha_is_a_rate_limit_and_not_nothing(search_server: Any) -> None:
    """A page that asks for a proof of being human comes with status 200 too."""
    search_server.extra = CAPTCHA
    with pytest.raises(WebRateLimited):
        await DdgsSearch(timeout_s=5).search("tide depth", k=3)


@pytest.mark.parametrize(("status", "extra"), [(200, ""), (200, "<p>Our new design!</p>"), (500, ""), (404, "")])
async def test_a_page_that_says_nothing_is_a_failure(search_server: Any, status: int, extra: str) -> None:
    """Neither results nor the word that there are none: nobody knows, so "nothing found" would be an invention."""
    search_server.statuses, search_server.extra = [status] * 2, extra
    with pytest.raises(WebUnavailable) as raised:
        await DdgsSearch(timeout_s=5).search("tide depth", k=3)
    assert not isinstance(raised.value, WebRateLimited)


@pytest.mark.parametrize("page", ["\n", "<!-- nothing -->", f"<!-- {CAPTCHA} -->"])
async def test_a_page_that_cannot_be_parsed_is_a_failure(
    search_server: Any, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """The client's parser gives up on a page without content: that is as unavailable as any other page without hits."""
    monkeypatch.setattr(Duckduckgo, "search_url", search_server.page("/blank", page))
    with pytest.raises(WebRateLimited if CAPTCHA in page else WebUnavailable):
        await DdgsSearch(timeout_s=5).search("tide depth", k=3)
    assert len(search_server.fetched) == 2


async def test_a_limit_that_passes_is_waited_for(search_server: Any) -> None:
    """The second try gives the results."""
    search_server.statuses = [429]
    search_server.results = [("Tide depth", "https://a.example/tides", "4 m")]
    assert [hit.url for hit in await DdgsSearch(timeout_s=5).search("tide depth", k=3)] == ["https://a.example/tides"]


async def test_after_a_rate_limit_the_engine_is_left_alone(search_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three questions in a row: the first is tried twice, the others are not sent at all, until a while has passed."""
    search_server.statuses = [429] * 2
    search_server.results = [("Tide depth", "https://a.example/tides", "4 m")]
    engine = DdgsSearch(timeout_s=5)
    for question in ("one", "two", "three"):
        with pytest.raises(WebRateLimited):
            await engine.search(question, k=3)
    assert search_server.queries == ["one", "one"]
    later = time.monotonic() + patience.COOL_DOWN_S + 1
    monkeypatch.setattr(patience.time, "monotonic", lambda: later)
    assert len(await engine.search("four", k=3)) == 1


async def test_an_engine_that_does_not_exist_is_no_other_engine(search_server: Any) -> None:
    """The client would ask every engine it knows instead; here it is an error that names them."""
    with pytest.raises(ConfigError, match="duckduckgo"):
        await DdgsSearch(engine="altavista").search("x", k=1)
    assert search_server.queries == []


async def test_a_slow_engine_is_unavailable_after_one_more_try(
    search_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out is tried once more, then said, within about twice the time-out."""
    search_server.delay_s = 3
    begun = time.monotonic()
    with pytest.raises(WebUnavailable):
        await DdgsSearch(timeout_s=1).search("tide depth", k=3)
    assert time.monotonic() - begun < 8


async def test_a_refused_connection_is_unavailable(search_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server at the other end is a failure, never "nothing found"."""
    from ddgs.engines.duckduckgo import Duckduckgo

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
    monkeypatch.setattr(
        duckduckgo.importlib.util, "find_spec", lambda name: package if name == "duckduckgo_search" else None
    )
    return package


async def test_the_old_package_name_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only `duckduckgo_search` is installed, it is used."""
    install_old_package(monkeypatch, [{"title": "t", "href": "https://a.example/", "body": "b"}])
    assert [r.url for r in await DdgsSearch().search("x", k=1)] == ["https://a.example/"]


async def test_a_rate_limit_is_unavailable_after_one_more_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate limit on the first query is tried once more, then it is a failure the run can show."""
    package = install_old_package(monkeypatch, "RatelimitException")
    with pytest.raises(WebRateLimited, match="Ratelimit"):
        await DdgsSearch().search("x", k=1)
    assert package.calls == 2


async def test_without_a_client_the_hint_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither package: the web is unavailable and the message says what to install."""
    monkeypatch.setattr(duckduckgo.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WebUnavailable, match="pip install ddgs"):
        await DdgsSearch().search("x", k=1)


MARKUP = [*"<>&;\"'ab \n\t\u200b\x00\ud800/!-", "&lt;", "<img src=x onerror=alert(1)>", "<img", "script"]


@given(st.lists(st.sampled_from(MARKUP), max_size=30).map("".join))
def test_plain_text_has_no_tag_and_is_short(text: str) -> None:
    """Whatever a page says, no tag, control or zero-width sign is left."""
    clean = plain_text(text, 30)
    assert not re.search(r"<[a-z]", clean)
    assert "\x00" not in clean
    assert "\u200b" not in clean
    clean.encode()
    assert len(clean) <= 32
