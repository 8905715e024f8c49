"""What the graph depends on, made from the settings and an open library.

Knows which loader is slow and so runs in a thread, once. Knows no node.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from leadline.config import Settings
from leadline.errors import ModelUnavailable
from leadline.graph.build import Dependencies
from leadline.knowledge import Library
from leadline.models import open_reranker
from leadline.models.base import ChatModel, Reranker
from leadline.models.chat import open_chat
from leadline.nodes.outcome import Facts
from leadline.nodes.web import AskConsent
from leadline.web import DdgsSearch

T = TypeVar("T")


def dependencies(settings: Settings, library: Library, *, ask_consent: AskConsent | None = None) -> Dependencies:
    """The dependencies of the product: the library's legs, the models that the settings name, DuckDuckGo."""
    reranker = once(lambda: open_reranker(settings.reranker_model, library.embedder))
    embedded = once(lambda: open_reranker("embedded", library.embedder))

    async def sentence_scorer() -> Reranker:
        """The reranker, or the embedded one while that can't be had: quoting needs a scorer, not this very one."""
        try:
            return await reranker()
        except ModelUnavailable:
            return await embedded()

    async def chat(model: str) -> ChatModel:
        return await asyncio.to_thread(open_chat, model, settings)

    async def facts() -> Facts:
        embedder = await asyncio.to_thread(lambda: library.embedder.name)
        models = {"embedder": embedder, "reranker": settings.reranker_model}
        return Facts(models=models, generation=await library.generation())

    return Dependencies(
        retrievers=library.retrievers,
        reranker=reranker,
        sentence_scorer=sentence_scorer,
        count_tokens=lambda text: len(library.embedder.token_spans(text)),
        chat=chat,
        facts=facts,
        search=DdgsSearch(timeout_s=settings.web_timeout_s),
        ask_consent=ask_consent,
    )


def once(load: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """Loads in a thread at the first call and answers from memory after; a load that failed is tried again.

    A caller that gives up (time-out, cancelled) leaves the load going, for the next one to find done.
    """
    loaded: list[T] = []
    lock = threading.Lock()

    def load_once() -> T:
        with lock:
            if not loaded:
                loaded.append(load())
            return loaded[0]

    async def get() -> T:
        return loaded[0] if loaded else await asyncio.to_thread(load_once)

    return get
