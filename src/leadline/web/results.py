"""What a web search gives: hits with plain text, and the contract of an engine.

What comes back is text from strangers: addresses are checked and markup is taken out.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

MAX_TITLE_CHARS = 300
MAX_SNIPPET_CHARS = 2000
MAX_URL_CHARS = 2000
_MAX_RAW_CHARS = 6_000
_UNSEEN = ("Cf", "Cs")  # format characters, and halves of characters
# A whole tag or comment, else what begins like one and never closes.
_TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z!?](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>|<[a-zA-Z/!?][^<>]*>?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WebResult:
    """One hit: `snippet` is the engine's excerpt of the page, `retrieved_at` ISO 8601 in UTC."""

    title: str
    url: str
    snippet: str
    retrieved_at: str


class WebSearch(Protocol):
    """A search of the web."""

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        """At most `k` results, best first; [] where there are none. Raises WebUnavailable."""
        ...


@runtime_checkable
class Resting(Protocol):
    """An engine that is left alone for a while once it says that it is asked too often."""

    def rest_s(self) -> float:
        """The seconds for which nothing is sent; 0.0: it can be asked."""
        ...


def results_of(rows: Sequence[Mapping[str, Any]], k: int) -> list[WebResult]:
    """At most `k` hits of rows with `title`, `href` and `body`: each address once, those that aren't pages left out."""
    return list(_results(rows))[:k]


def _results(rows: Sequence[Mapping[str, Any]]) -> Iterator[WebResult]:
    now = utc_now()
    seen: set[str] = set()
    for row in rows:
        url = str(row.get("href") or "").strip()
        if url in seen or not is_web_address(url):
            continue
        seen.add(url)
        title = plain_text(str(row.get("title") or ""), MAX_TITLE_CHARS)
        yield WebResult(title or url, url, plain_text(str(row.get("body") or ""), MAX_SNIPPET_CHARS), now)


def utc_now() -> str:
    """The time, as a hit and a page have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def plain_text(text: str, max_chars: int) -> str:
    """`text` without markup, control characters and runs of blanks, cut to `max_chars` at a word."""
    text = _seen(text[:_MAX_RAW_CHARS])
    for _ in range(2):  # what was escaped may be markup too
        text = _seen(html.unescape(_TAG.sub(" ", text)))
    text = _TAG.sub(" ", text)
    text = " ".join(text.split())
    return text if len(text) <= max_chars else text[:max_chars].rsplit(" ", 1)[0] + " …"


def _seen(text: str) -> str:
    categories = ((char, unicodedata.category(char)) for char in text)
    return "".join(" " if category == "Cc" else char for char, category in categories if category not in _UNSEEN)


def is_web_address(url: str) -> bool:
    """Whether it is a plain http or https address: no credentials, no white space or control characters, not endless.

    Says nothing of where it leads.
    """
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False
    plain = not any(c.isspace() or unicodedata.category(c).startswith("C") for c in url)
    return plain and named and parts.scheme in ("http", "https") and len(url) <= MAX_URL_CHARS
