"""Web search through a SearXNG server of one's own, by its JSON interface.

The server's address is a setting, so it may be on this machine or in the house. The query goes in the body, not in the
address, so that no access log on the way has it.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpcore

from leadline.errors import ConfigError, WebRateLimited, WebUnavailable
from leadline.web.bodies import USER_AGENT, Answer, exchange
from leadline.web.patience import Patience
from leadline.web.results import WebResult, is_web_address, results_of

_MAX_BYTES: Final = 5_000_000


class SearxngSearch:
    """The server at `url`. `timeout_s` bounds one try; a failed try is repeated once after a short pause.

    Raises ConfigError for a `url` that is none.
    """

    def __init__(self, url: str, *, timeout_s: float = 10) -> None:
        if not is_web_address(url) or not url.isascii():
            raise ConfigError(
                f"{url!r} can't be the address of a SearXNG server.", hint="Such as http://localhost:8888, in ASCII."
            )
        self._url = url.rstrip("/").removesuffix("/search") + "/search"
        self._tls: ssl.SSLContext | None = None
        self._timeout_s = timeout_s
        self._patience = Patience()

    def rest_s(self) -> float:
        """The seconds for which nothing is sent, after a rate limit; else 0.0."""
        return self._patience.rest_s()

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """At most `k` results, best first; [] where there are none. Raises WebUnavailable."""
        found = await self._patience.ask(lambda: self._one_try(query))
        hits = [hit for hit in found.get("results") or [] if isinstance(hit, Mapping)]
        rows = [{"title": hit.get("title"), "href": hit.get("url"), "body": hit.get("content")} for hit in hits]
        return results_of(rows, k)

    async def _one_try(self, query: str) -> Mapping[str, Any]:
        if self._tls is None and self._url.startswith("https:"):
            self._tls = await asyncio.to_thread(httpcore.default_ssl_context)
        try:
            async with asyncio.timeout(self._timeout_s), httpcore.AsyncConnectionPool(self._tls) as pool:
                answer = await exchange(pool, self._request(query), max_bytes=_MAX_BYTES)
        except TimeoutError:
            raise WebUnavailable(f"The SearXNG server gave no answer within {self._timeout_s:g} s.") from None
        return _found(answer)

    def _request(self, query: str) -> httpcore.Request:
        content = urlencode({"q": query, "format": "json"}).encode()
        headers = {
            "Host": urlsplit(self._url).netloc,
            "User-Agent": USER_AGENT,
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
            "Content-Length": str(len(content)),
            "Connection": "close",
        }
        return httpcore.Request("POST", self._url, headers=list(headers.items()), content=content)


def _found(answer: Answer) -> Mapping[str, Any]:
    if answer.status in (429, 503):
        stated = answer.headers.get("retry-after", "")
        retry_after = float(stated[:6]) if stated.isascii() and stated.isdecimal() else None
        raise WebRateLimited("The SearXNG server is asked too often.", retry_after_s=retry_after)
    if answer.status == 403:
        raise WebUnavailable("The SearXNG server refuses.", hint="Its settings.yml needs `json` among search.formats.")
    if answer.status != 200:
        raise WebUnavailable(f"The SearXNG server answered with status {answer.status}.")
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping) or not isinstance(found.get("results", []), list):
        raise WebUnavailable("The SearXNG server gave something other than results.")
    if not found.get("results") and (lost := found.get("unresponsive_engines")):
        raise WebUnavailable(f"None of the engines behind the SearXNG server answered: {str(lost)[:200]}.")
    return found
