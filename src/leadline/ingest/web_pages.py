"""From the hits of a web search to passages: the best pages fetched, their main text cut as documents are, and the
passages that have to do with the question chosen.

Knows the fetcher, the HTML loader and the chunker. Doesn't know whether anything may be fetched: callers do. Fetches
the addresses of hits only, never one that stands in a text.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from leadline.drafts import WebPassage
from leadline.errors import LeadlineError, PageUnavailable
from leadline.ingest.chunking import chunk
from leadline.ingest.extracted import Extracted
from leadline.ingest.prepare import detect_language
from leadline.ingest.web_choice import best_passages
from leadline.ingest.web_text import text_apart
from leadline.models.base import Embedder, Tokenizer
from leadline.web import PageFetcher, WebPage, WebResult
from leadline.web.pages import HTML

log = logging.getLogger(__name__)

PARSING_S: Final = 10.0
"""For the text of one page."""


@dataclass(frozen=True, slots=True)
class PagesRead:
    """`passages`, the best first; `problems` says of each page that could not be read, why."""

    passages: tuple[WebPassage, ...]
    problems: tuple[str, ...] = ()
    read: int = 0


class PageReader:
    """Reads `pages` of the best hits; 0 fetches nothing. A page that can't be had is replaced by the next hit's."""

    def __init__(self, fetcher: PageFetcher, embedder: Embedder, *, pages: int, chunk_tokens: int) -> None:
        self._fetcher = fetcher
        self._embedder = embedder
        self._pages = pages
        self._chunk_tokens = chunk_tokens

    async def __call__(self, question: str, results: Sequence[WebResult], *, k: int) -> PagesRead:
        """At most `k` passages of the hits: of pages where they could be read, else the engine's excerpts.

        `question` chooses among the passages; it goes nowhere.
        """
        found: dict[int, list[WebPassage]] = {}
        problems: list[str] = []
        waiting = list(enumerate(results))
        for _ in range(2):  # the best hits, then as many of the next ones as could not be read
            missing = self._pages - len(found)
            batch, waiting = waiting[:missing], waiting[missing:]
            for place, outcome in await self._read_all(batch):
                if isinstance(outcome, str):
                    problems.append(outcome)
                else:
                    found[place] = outcome
        passages = await asyncio.to_thread(_in_order, results, found)
        best = await asyncio.to_thread(best_passages, question, passages, self._embedder, k)
        return PagesRead(tuple(best), tuple(problems), len(found))

    async def _read_all(self, hits: Sequence[tuple[int, WebResult]]) -> list[tuple[int, list[WebPassage] | str]]:
        """Of each hit its passages, or why there are none."""
        outcomes = await asyncio.gather(*(self._read_one(result) for _, result in hits))
        return [(place, outcome) for (place, _), outcome in zip(hits, outcomes, strict=True)]

    async def _read_one(self, result: WebResult) -> list[WebPassage] | str:
        try:
            page = await self._fetcher.fetch(result.url)
            passages = await asyncio.to_thread(self._passages, page, result.title)
            if not passages:
                raise PageUnavailable("It holds no text.")
        except Exception as error:  # noqa: BLE001 a named degrade point: a page may break any parser, the others go on
            why = error.message if isinstance(error, LeadlineError) else f"{type(error).__name__}: {error}"
            log.info("The page %s was not read: %s", result.url, why)
            return f"{result.url}: {why}"
        return passages

    def _passages(self, page: WebPage, title: str) -> list[WebPassage]:
        kind = "html" if page.media_type in HTML else "plain"
        extracted = text_apart(page.body, kind, page.charset, timeout_s=PARSING_S)
        return page_passages(page, extracted, title, self._embedder, chunk_tokens=self._chunk_tokens)


def _in_order(results: Sequence[WebResult], found: Mapping[int, Sequence[WebPassage]]) -> list[tuple[int, WebPassage]]:
    """The passages of each hit, with its place: what was read, else what the engine quotes."""
    return [
        (place, passage) for place, result in enumerate(results) for passage in found.get(place) or excerpts(result)
    ]


def page_passages(
    page: WebPage, extracted: Extracted, title: str, tokenizer: Tokenizer, *, chunk_tokens: int = 200
) -> list[WebPassage]:
    """The passages of one page in order, each text once. `title` is used where the page has none."""
    language = detect_language(extracted.text)
    chunks, _ = chunk(extracted, tokenizer, chunk_tokens=chunk_tokens, language=language or "en")
    title = str(extracted.metadata.get("title", "")) or title
    first = WebPassage(
        page.url,
        title,
        "",
        page.retrieved_at,
        0,
        0,
        total_chunks=len(chunks),
        language=language,
        file_hash=hashlib.sha256(page.body).hexdigest(),
    )
    passages = (
        replace(
            first,
            text=draft.text,
            start_char=draft.start_char,
            end_char=draft.end_char,
            headings=draft.headings,
            chunk_index=index,
        )
        for index, draft in enumerate(chunks)
    )
    each_once: dict[str, WebPassage] = {}
    for passage in passages:
        each_once.setdefault(passage.chunk_id, passage)
    return list(each_once.values())


def excerpts(result: WebResult) -> list[WebPassage]:
    """What the search engine quotes of the page, where it quotes something: a passage, in a list."""
    text = result.snippet.strip()
    if not text:
        return []
    language = detect_language(text)
    return [
        WebPassage(result.url, result.title, text, result.retrieved_at, 0, len(text), language=language, excerpt=True)
    ]
