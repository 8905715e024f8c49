"""Which passages of fetched pages are worth the reranker's time: the best by words, and the best by meaning.

Chosen so that nothing is missed: a passage is as good as its better rank, and what is best in one order is taken
whatever the other says. How good the chosen ones are is the reranker's to say.
"""

import json
from collections.abc import Sequence
from typing import Final

from leadline.analysis import Analyzer
from leadline.drafts import WebPassage, embedded_text
from leadline.models.base import Embedder
from leadline.stores.rank_bm25_model import Model

MAX_EMBEDDED: Final = 48
"""Passages that are embedded: the best by words, then those that stand first on the best pages."""


def best_passages(
    question: str, passages: Sequence[tuple[int, WebPassage]], embedder: Embedder, k: int
) -> list[WebPassage]:
    """The best `k`, best first, each once. With each passage is given the place of its page among the hits, from 0."""
    by_id = {passage.chunk_id: passage for _, passage in reversed(passages)}
    if len(by_id) <= 1:
        return list(by_id.values())[:k]
    pages: dict[str, int] = {}
    for place, passage in passages:
        pages.setdefault(passage.chunk_id, place)
    words = _by_words(question, by_id)
    order = sorted(by_id, key=lambda key: (pages[key], by_id[key].chunk_index))
    meaning = _by_meaning(question, by_id, list(dict.fromkeys([*words, *order]))[:MAX_EMBEDDED], embedder)
    ranks = [{key: rank for rank, key in enumerate(ranked)} for ranked in (words, meaning)]

    def quality(key: str) -> tuple[int, int, int, int]:
        mine = [ranked.get(key, len(by_id)) for ranked in ranks]
        return min(mine), sum(mine), pages[key], by_id[key].chunk_index

    return [by_id[key] for key in sorted(by_id, key=quality)[:k]]


def _by_words(question: str, passages: dict[str, WebPassage]) -> list[str]:
    analyzer = Analyzer()
    rows = [(key, json.dumps(analyzer.terms(_read(passage))), "{}") for key, passage in passages.items()]
    found = Model(rows).best(analyzer.query_terms(question), len(passages), None)
    return [key for _, key in found]


def _by_meaning(question: str, passages: dict[str, WebPassage], keys: Sequence[str], embedder: Embedder) -> list[str]:
    vectors = embedder.embed_passages([_read(passages[key]) for key in keys])
    cosines = (vectors @ embedder.embed_query(question)).tolist()
    return [key for _, key in sorted(zip(cosines, keys, strict=True), key=lambda pair: -pair[0])]


def _read(passage: WebPassage) -> str:
    """As an embedder and an analyser read it: the title and headings before the text."""
    headings = [passage.title, *(heading for heading in passage.headings if heading != passage.title)]
    return embedded_text(" > ".join(filter(None, headings)), passage.text)
