"""Fetches the text of single pages from the public web.

Knows limits of time, bytes, redirects and kinds of content, and who may be asked. Sends a request line, the host, an
honest name and what it can read: no cookie, no referrer, no credentials, nothing of the question. Reads no robots.txt:
a fetch is one page that a person's question led to. Doesn't look inside a page.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, urljoin

import httpcore

from leadline.errors import PageUnavailable, WebUnavailable
from leadline.web.addresses import IP, MAX_ADDRESSES, GuardedBackend, Resolve, checked_url, is_public, resolve
from leadline.web.bodies import USER_AGENT, Answer, exchange
from leadline.web.results import utc_now

HTML: Final = ("text/html", "application/xhtml+xml")
PLAIN: Final = ("text/plain", "text/markdown")
MAX_BYTES: Final = 5_000_000
MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ACCEPT: Final = f"{', '.join(HTML)}, text/plain;q=0.8"


@dataclass(frozen=True, slots=True)
class WebPage:
    """One page as it came, unpacked. `url` is where it was found in the end; `charset` is what the server says."""

    url: str
    media_type: str
    charset: str | None
    body: bytes
    retrieved_at: str


class PageFetcher:
    """`timeout_s` bounds a whole fetch, redirects and all.

    `permitted` and `resolver` are for tests, whose servers are on this machine: nothing that a question, a page or a
    setting says can reach them.
    """

    def __init__(
        self,
        *,
        timeout_s: float = 10,
        max_bytes: int = MAX_BYTES,
        permitted: Callable[[IP], bool] = is_public,
        resolver: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._backend = GuardedBackend(permitted, resolver)
        self._tls = tls

    async def fetch(self, url: str) -> WebPage:
        """The page at `url`, or where it redirects to: every step is checked anew. Raises PageUnavailable."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._follow(url)
        except TimeoutError:
            raise PageUnavailable(f"It did not come within {self._timeout_s:g} s.") from None
        except PageUnavailable:
            raise
        except WebUnavailable as error:
            raise PageUnavailable(error.message) from error

    async def _follow(self, url: str) -> WebPage:
        for _ in range(MAX_REDIRECTS + 1):
            parts = checked_url(url)
            answer = await self._get(parts)
            location = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not location:
                return _page(parts, answer)
            try:
                url = urljoin(parts.geturl(), location.strip())
            except ValueError:
                raise PageUnavailable("It redirects to what is no address.") from None
        raise PageUnavailable(f"It redirects more than {MAX_REDIRECTS} times.")

    async def _get(self, parts: SplitResult) -> Answer:
        if parts.scheme == "https" and self._tls is None:
            self._tls = await asyncio.to_thread(httpcore.default_ssl_context)
        # Part of the time for each address of the name, so that one that is silent doesn't take all of it.
        limits = {"timeout": {"connect": self._timeout_s / MAX_ADDRESSES}}
        request = httpcore.Request("GET", _address(parts), headers=_request_headers(parts), extensions=limits)
        # A pool for one request: no connection, and no name looked up, is used for another.
        async with httpcore.AsyncConnectionPool(self._tls, network_backend=self._backend) as pool:
            return await exchange(pool, request, max_bytes=self._max_bytes, wanted=_is_wanted)


def _address(parts: SplitResult) -> httpcore.URL:
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/?%:@!$&'()*+,;=~")
    host = str(parts.hostname).encode("ascii")
    return httpcore.URL(scheme=parts.scheme.encode(), host=host, port=parts.port, target=target.encode("ascii"))


def _request_headers(parts: SplitResult) -> list[tuple[bytes, bytes]]:
    return [
        (b"Host", parts.netloc.encode("ascii")),
        (b"User-Agent", USER_AGENT.encode("ascii")),
        (b"Accept", _ACCEPT.encode("ascii")),
        (b"Accept-Encoding", b"gzip"),
        (b"Connection", b"close"),
    ]


def _is_wanted(head: Answer) -> bool:
    return head.status == 200 and _media_type(head) in (*HTML, *PLAIN)


def _media_type(head: Answer) -> str:
    return head.headers.get("content-type", "").partition(";")[0].strip().lower()


def _page(parts: SplitResult, answer: Answer) -> WebPage:
    if answer.status != 200:
        raise PageUnavailable(f"The server answered with status {answer.status}.")
    media_type = _media_type(answer)
    if media_type not in (*HTML, *PLAIN):
        raise PageUnavailable(f"It is {media_type[:60] or 'of no stated kind'}, not a page of text.")
    _, _, charset = answer.headers["content-type"].lower().partition("charset=")
    charset = charset.partition(";")[0].strip(" \"'")
    return WebPage(parts.geturl(), media_type, charset or None, answer.body, utc_now())
