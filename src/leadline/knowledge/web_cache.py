"""What the web said before: a search is answered from the catalog until it expires, and after a failure even then.

Knows what makes two queries the same, and time. Of a query only a hash is kept.
"""

import asyncio
import hashlib
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from leadline.drafts import WebPassage
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_web import drop_web, find_web_search, save_web_search

KEPT_AFTER_S: Final = 30 * 24 * 3600.0
"""Expired passages are kept so long, for a day when the engine can't be reached."""


@dataclass(frozen=True, slots=True)
class Cached:
    """Passages of an earlier search, best first. `fresh`: it has not expired."""

    passages: Sequence[WebPassage]
    fresh: bool


class WebCache:
    """Of one engine, which `provider` names. With `hours` 0 nothing is kept or found, and what was kept before goes."""

    def __init__(self, catalog: Catalog, provider: str, hours: float, clock: Callable[[], float] = time.time) -> None:
        self._catalog = catalog
        self._provider = provider
        self._seconds = hours * 3600.0
        self._clock = clock

    async def find(self, query: str) -> Cached | None:
        """What this query found the last time. Raises StoreError."""
        if not self._seconds:
            return None
        kept = await asyncio.to_thread(find_web_search, self._catalog, self._key(query))
        return None if kept is None else Cached(kept.passages, fresh=self._clock() < kept.expires)

    async def keep(self, query: str, passages: Sequence[WebPassage]) -> None:
        """Keeps what the query found now. Raises StoreError."""
        if not self._seconds:
            await asyncio.to_thread(drop_web, self._catalog)
            return
        now = self._clock()
        await asyncio.to_thread(
            save_web_search,
            self._catalog,
            self._key(query),
            passages,
            expires=now + self._seconds,
            forget_before=now - KEPT_AFTER_S,
        )

    def _key(self, query: str) -> str:
        """Case, blanks and a closing question mark make no other query."""
        words = " ".join(unicodedata.normalize("NFKC", query).casefold().split()).rstrip("?？¿ ")
        return hashlib.sha256(f"{self._provider}\x1f{words}".encode("utf-8", "surrogatepass")).hexdigest()
