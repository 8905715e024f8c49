"""Web search through DuckDuckGo (the `ddgs` package, or `duckduckgo_search`, its old name).

Sends the query to one search engine and nothing else to anybody; fetches no page. What comes back is text from
strangers: addresses are checked and markup is taken out. Whether a search is allowed is decided by the caller.
"""

import asyncio
import html
import importlib
import importlib.util
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from leadline.errors import WebUnavailable

BACKOFF_S = 0.5
MAX_TITLE_CHARS = 300
MAX_SNIPPET_CHARS = 2000
_PACKAGES = ("ddgs", "duckduckgo_search")
_NOTHING = re.compile(r"\bno results?\b", re.IGNORECASE)
# A whole tag or comment, else what begins like one and never closes.
_TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z!?](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>|<[a-zA-Z/!?][^<>]*>?", re.DOTALL)
_MAX_RAW_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class WebResult:
    """One hit. `text` is the page's own text where it was fetched; `retrieved_at` is ISO 8601 in UTC."""

    title: str
    url: str
    snippet: str
    retrieved_at: str
    text: str | None = None


class WebSearch(Protocol):
    """A search of the web."""

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """At most `k` results, best first; [] where there are none. Raises WebUnavailable."""
        ...


class DdgsSearch:
    """DuckDuckGo. `timeout_s` bounds one try; a failed try is repeated once after a short pause.

    `engine` is the engine of `ddgs` that is asked: never its "auto", which sends the query to half a dozen.
    """

    def __init__(self, *, timeout_s: float = 10, engine: str = "duckduckgo") -> None:
        self._timeout_s = timeout_s
        self._engine = engine

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """At most `k` results, best first; [] where there are none. Raises WebUnavailable."""
        try:
            rows = await self._one_try(query, k)
        except WebUnavailable:
            await asyncio.sleep(BACKOFF_S)
            rows = await self._one_try(query, k)
        return list(_results(rows))[:k]

    async def _one_try(self, query: str, k: int) -> Sequence[Mapping[str, Any]]:
        try:
            # The client's own time-out comes first, so that its thread ends too.
            return await asyncio.wait_for(asyncio.to_thread(self._ask, query, k), self._timeout_s + 1)
        except TimeoutError:
            raise WebUnavailable(f"The web search gave no answer within {self._timeout_s:g} s.") from None

    def _ask(self, query: str, k: int) -> Sequence[Mapping[str, Any]]:
        package = next((name for name in _PACKAGES if importlib.util.find_spec(name)), None)
        if package is None:
            raise WebUnavailable("No web search client is installed.", hint="Run `pip install ddgs`.")
        client = importlib.import_module(package)
        failures = importlib.import_module(f"{package}.exceptions")
        failed = getattr(failures, "DDGSException", None) or failures.DuckDuckGoSearchException
        options = {"backend": self._engine} if package == "ddgs" else {}
        try:
            search = client.DDGS(timeout=math.ceil(self._timeout_s))
            found: Sequence[Mapping[str, Any]] = search.text(query, max_results=k, **options)
        except failed as error:
            if _NOTHING.search(str(error)):
                return []
            raise WebUnavailable(f"The web search failed: {_first_line(error)}.") from error
        return found or []


def _results(rows: Sequence[Mapping[str, Any]]) -> Iterator[WebResult]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    seen: set[str] = set()
    for row in rows:
        url = str(row.get("href") or "").strip()
        if url in seen or not _is_web_address(url):
            continue
        seen.add(url)
        title = plain_text(str(row.get("title") or ""), MAX_TITLE_CHARS)
        yield WebResult(title or url, url, plain_text(str(row.get("body") or ""), MAX_SNIPPET_CHARS), now)


def plain_text(text: str, max_chars: int) -> str:
    """`text` without markup, control characters and runs of blanks, cut to `max_chars` at a word."""
    text = html.unescape(_TAG.sub(" ", text[:_MAX_RAW_CHARS]))
    # Once more: what was escaped may be markup too.
    text = _TAG.sub(" ", text)
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text if unicodedata.category(c) != "Cf")
    text = " ".join(text.split())
    return text if len(text) <= max_chars else text[:max_chars].rsplit(" ", 1)[0] + " …"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    plain = not any(c.isspace() or unicodedata.category(c).startswith("C") for c in url)
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(".") if lines else type(error).__name__
