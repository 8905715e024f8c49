"""Web search through one engine of the `ddgs` package (or `duckduckgo_search`, its old name): DuckDuckGo.

Sends the query to that engine and nothing else to anybody. The package reports rate limits and captchas as "nothing
found"; here the engine's own response is looked at, so that "none" is said only where the engine said so.
"""

import asyncio
import html
import importlib
import importlib.util
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from leadline.errors import ConfigError, WebRateLimited, WebUnavailable
from leadline.web.patience import Patience
from leadline.web.results import WebResult, is_web_address, results_of

_OLD_PACKAGE: Final = "duckduckgo_search"
_NOTHING = re.compile(r"\bno\s+(?:more\s+)?results?\b|did not match any|there are no results", re.IGNORECASE)
# What pages that ask for a proof of being human have in their source.
_CHALLENGE = re.compile(
    r"anomaly(?:-modal|\.js)|bots use duckduckgo|[gh]-captcha|g-recaptcha|cf-challenge|/cdn-cgi/challenge"
    r"|unusual (?:traffic|activity) from your|are you a robot|confirm you are (?:a )?human",
    re.IGNORECASE,
)
_THROUGH = re.compile(r"(?:https?:)?//(?:www\.)?duckduckgo\.com/l/\?(?:\w+=[^&]*&)*uddg=(?P<target>.+?)(?:&rut=\w*)?$")
_LIMITED: Final = frozenset({202, 403, 418, 429, 503})


class DdgsSearch:
    """DuckDuckGo. `timeout_s` bounds one try; a failed try is repeated once after a short pause.

    `engine` is the engine of `ddgs` that is asked: never its "auto", which sends the query to half a dozen.
    """

    def __init__(self, *, timeout_s: float = 10, engine: str = "duckduckgo") -> None:
        self._timeout_s = timeout_s
        self._engine = engine
        self._patience = Patience()

    def rest_s(self) -> float:
        """The seconds for which nothing is sent, after a rate limit; else 0.0."""
        return self._patience.rest_s()

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """At most `k` results, best first; [] where there are none. Raises WebUnavailable."""
        return results_of(await self._patience.ask(lambda: self._one_try(query, k)), k)

    async def _one_try(self, query: str, k: int) -> Sequence[Mapping[str, Any]]:
        try:
            # The client's own time-out comes first, so that its thread ends too.
            return await asyncio.wait_for(asyncio.to_thread(self._ask, query, k), self._timeout_s + 1)
        except TimeoutError:
            raise WebUnavailable(f"The web search gave no answer within {self._timeout_s:g} s.") from None

    def _ask(self, query: str, k: int) -> Sequence[Mapping[str, Any]]:
        if importlib.util.find_spec("ddgs"):
            return self._ask_engine(query)
        if importlib.util.find_spec(_OLD_PACKAGE):
            return self._ask_old_package(query, k)
        raise WebUnavailable("No web search client is installed.", hint="Run `pip install ddgs`.")

    def _ask_engine(self, query: str) -> Sequence[Mapping[str, Any]]:
        engines = importlib.import_module("ddgs.engines").ENGINES["text"]
        failed = importlib.import_module("ddgs.exceptions").DDGSException
        if self._engine not in engines:
            raise ConfigError(f"There is no web search engine {self._engine}.", hint=f"There is: {', '.join(engines)}.")
        options = {"proxy": os.environ.get("DDGS_PROXY"), "timeout": math.ceil(self._timeout_s)}
        engine = engines[self._engine](**options)
        engine.http_client = watched = _Watched(engine.http_client)
        try:
            found = engine.search(query)
        except failed as error:
            raise WebUnavailable(f"The web search failed: {_first_line(error)}.") from error
        except Exception:  # noqa: BLE001 a page that its parser can't read, of whatever kind: it is looked at below
            found = None
        rows = [{"title": hit.title, "href": _target(hit.href), "body": hit.body} for hit in found or []]
        if not any(is_web_address(row["href"].strip()) for row in rows):
            watched.raise_unless_nothing(query)
        return rows

    def _ask_old_package(self, query: str, k: int) -> Sequence[Mapping[str, Any]]:
        failures = importlib.import_module(f"{_OLD_PACKAGE}.exceptions")
        client = importlib.import_module(_OLD_PACKAGE).DDGS(timeout=math.ceil(self._timeout_s))
        try:
            found: Sequence[Mapping[str, Any]] = client.text(query, max_results=k)
        except failures.RatelimitException as error:
            raise WebRateLimited(f"The web search is limited: {_first_line(error)}.") from error
        except failures.DuckDuckGoSearchException as error:
            if _NOTHING.search(str(error)):
                return []
            raise WebUnavailable(f"The web search failed: {_first_line(error)}.") from error
        return found or []


def _target(href: str) -> str:
    """Where a hit leads, also where the engine leads there by way of itself."""
    through = _THROUGH.match(href)
    if through is None:
        return href
    target = through["target"]
    return unquote(target) if "://" not in target else target


class _Watched:
    """The client of an engine, with a memory of its last response."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._status = 0
        self._text = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def request(self, *args: Any, **kwargs: Any) -> Any:
        response = self._client.request(*args, **kwargs)
        self._status, self._text = response.status_code, response.text
        return response

    def raise_unless_nothing(self, query: str) -> None:
        """Tells a refusal, a captcha and a page that nobody can read from an engine that says it found nothing."""
        # The page shows the query again, and that may be about captchas.
        said = html.unescape(self._text).replace(query, "")
        if self._status in _LIMITED or _CHALLENGE.search(said):
            raise WebRateLimited(f"The search engine refused to answer (status {self._status}): asked too often.")
        if self._status != 200:
            raise WebUnavailable(f"The search engine answered with status {self._status}.")
        if not _NOTHING.search(said):
            raise WebUnavailable("The search engine's page holds neither results nor the word that there are none.")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(".") if lines else type(error).__name__
