"""The graph as LangGraph's server loads it: without a checkpointer, its stores opened by the first run and shared.

Importing this module reads nothing: settings, library and models come with the first question. Nobody can be asked
for consent here, so the web is searched only where `web_consent` is `yes`.
"""

import asyncio
from collections.abc import Mapping, Sequence, Set
from contextlib import AsyncExitStack

from leadline.calibration import Zero
from leadline.config import load_settings
from leadline.drafts import WebPassage
from leadline.graph.build import Dependencies, build_graph
from leadline.graph.opening import dependencies
from leadline.ingest.web_pages import PagesRead
from leadline.knowledge import open_library
from leadline.knowledge.web_cache import Cached
from leadline.models.base import ChatModel, Reranker
from leadline.nodes.extractive import SentenceScorer
from leadline.nodes.outcome import Facts
from leadline.state import Origin
from leadline.stores.base import Retriever
from leadline.web import WebResult


class _Installation:
    """The product's dependencies, opened at the first use and kept for the life of the process.

    The server enters a graph's context manager again for every run, so the opening can't be one.
    """

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._deps: Dependencies | None = None

    async def _opened(self) -> Dependencies:
        async with self._lock:
            if self._deps is None:
                settings = await asyncio.to_thread(load_settings)
                library = await self._stack.enter_async_context(open_library(settings))
                self._deps = dependencies(settings, library)
            return self._deps

    async def retrievers(self, collection: str) -> Mapping[str, Retriever]:
        return await (await self._opened()).retrievers(collection)

    async def reranker(self) -> Reranker:
        return await (await self._opened()).reranker()

    async def sentence_scorer(self) -> SentenceScorer:
        return await (await self._opened()).sentence_scorer()

    def count_tokens(self, text: str) -> int:
        assert self._deps is not None, "the compressor runs after a search, which opens the library"
        return self._deps.count_tokens(text)

    async def chat(self, model: str) -> ChatModel:
        return await (await self._opened()).chat(model)

    async def facts(self) -> Facts:
        return await (await self._opened()).facts()

    async def still_there(self, origins: Sequence[Origin]) -> Set[str]:
        return await (await self._opened()).still_there(origins)

    async def zero_point(self, collection: str, reranker: str) -> Zero:
        zero_points = (await self._opened()).zero_points
        return await zero_points(collection, reranker) if zero_points else Zero(0.0, "none")

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        client = (await self._opened()).search
        return await client.search(query, k=k) if client else []

    async def read_pages(self, question: str, results: Sequence[WebResult], *, k: int) -> PagesRead:
        reader = (await self._opened()).read_pages
        return await reader(question, results, k=k) if reader else PagesRead(())

    async def find(self, query: str) -> Cached | None:
        before = (await self._opened()).web_before
        return await before.find(query) if before else None

    async def keep(self, query: str, passages: Sequence[WebPassage]) -> None:
        if before := (await self._opened()).web_before:
            await before.keep(query, passages)


_installation = _Installation()

graph = build_graph(
    Dependencies(
        retrievers=_installation.retrievers,
        reranker=_installation.reranker,
        sentence_scorer=_installation.sentence_scorer,
        count_tokens=_installation.count_tokens,
        chat=_installation.chat,
        facts=_installation.facts,
        still_there=_installation.still_there,
        zero_points=_installation.zero_point,
        search=_installation,
        read_pages=_installation.read_pages,
        web_before=_installation,
    )
).compile()
