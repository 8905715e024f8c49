"""What the graph depends on, made from the settings and an open library.

Knows what stands in for what. Knows no node. Making the dependencies loads nothing: models load at their first use.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from leadline.citations import MeaningByLikeness, check_answer
from leadline.config import RunContext, Settings
from leadline.errors import LeadlineError, ModelUnavailable
from leadline.graph.build import Dependencies
from leadline.graph.person import Person
from leadline.ingest.web_pages import PageReader
from leadline.knowledge import Library
from leadline.knowledge.documents import still_being_indexed
from leadline.knowledge.lookup import refuse_unknown_fields
from leadline.knowledge.web_cache import WebCache
from leadline.models import open_reranker
from leadline.models.base import ChatModel, Reranker
from leadline.models.chat import open_chat
from leadline.models.likeness import TokenLikeness
from leadline.models.minilm import MiniLM
from leadline.models.remembered import Remembered
from leadline.models.watched import Watched
from leadline.nodes.extractive import SentenceScorer
from leadline.nodes.outcome import Facts
from leadline.nodes.record import retrieval_settings, without_folder
from leadline.nodes.web import AskConsent
from leadline.stores import filters
from leadline.web import PageFetcher, open_search


def dependencies(
    settings: Settings, library: Library, *, ask_consent: AskConsent | None = None, person: Person | None = None
) -> Dependencies:
    """The dependencies of the product: the library's legs, the models and the web that the settings name."""
    ranking, embedded = _rerankers(settings, library)
    encoder = library.embedder if isinstance(library.embedder, MiniLM) else MiniLM()
    quoting = _WithStandIn(ranking, embedded)

    async def reranker() -> Reranker:
        return ranking

    async def sentence_scorer() -> SentenceScorer:
        return quoting

    async def chat(model: str) -> ChatModel:
        opened = open_chat(model, settings)
        assert opened is not None, "nodes ask for an LLM only where the run names one"
        return opened

    return Dependencies(
        retrievers=library.retrievers,
        reranker=reranker,
        sentence_scorer=sentence_scorer,
        count_tokens=lambda text: len(library.embedder.token_spans(text)),
        chat=chat,
        facts=partial(_facts, settings, library, ranking),
        still_there=library.still_there,
        indexing=partial(still_being_indexed, library),
        refuse=partial(refuse_knobs, library),
        rerank_timeout_s=settings.rerank_timeout_s,
        zero_points=library.calibrations.zero,
        search=open_search(settings),
        read_pages=_page_reader(settings, library),
        web_before=WebCache(library.catalog, settings.web_provider, settings.web_cache_hours),
        ask_consent=ask_consent,
        person=person,
        check=partial(check_answer, meaning=MeaningByLikeness(TokenLikeness(encoder))),
    )


async def refuse_knobs(library: Library, context: RunContext) -> None:
    """Raises InvalidFilter for a run that would find nothing and never say why.

    Every run asks this at its beginning, and so does whoever has to know before one begins.
    """
    filters.check(context.filters)
    await refuse_unknown_fields(library, context.collection, context.filters)


async def _facts(settings: Settings, library: Library, ranking: Reranker) -> Facts:
    return Facts(
        models=await asyncio.to_thread(_names, library, ranking),
        generation=await library.generation(),
        settings=retrieval_settings(settings),
        library=await library.identity(),
    )


def _rerankers(settings: Settings, library: Library) -> tuple[Reranker, Reranker]:
    """The one that the settings name, and the embedded one, which may be the same."""
    embedded = Remembered(open_reranker("embedded", library.embedder))
    if settings.reranker_model == "embedded":
        return embedded, embedded
    named = Remembered(open_reranker(settings.reranker_model, library.embedder))
    return Watched(named, settings.rerank_timeout_s), embedded


def _page_reader(settings: Settings, library: Library) -> PageReader:
    fetcher = PageFetcher(timeout_s=settings.web_timeout_s)
    return PageReader(fetcher, library.embedder, pages=settings.web_pages, chunk_tokens=settings.chunk_tokens)


class _WithStandIn:
    """Scores sentences by the reranker, or by the embedded one while that can't be had: quoting needs a scorer."""

    def __init__(self, ranking: Reranker, embedded: Reranker) -> None:
        self._ranking = ranking
        self._embedded = embedded

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        try:
            return self._ranking.score_sentences(question, sentences)
        except ModelUnavailable:
            return self._embedded.score_sentences(question, sentences)


def _names(library: Library, ranking: Reranker) -> dict[str, str]:
    names = {"embedder": without_folder(library.embedder.name)}
    try:
        names["reranker"] = without_folder(ranking.name)
    except LeadlineError:  # the run is degraded already, and says why
        names["reranker"] = "unavailable"
    return names
