"""A BM25+ model over term lists, and which chunks it may speak of."""

import json
from collections.abc import Iterable, Sequence

from leadline.stores import filters
from leadline.stores.base import Where


class Model:
    """Built from rows of (chunk id, terms as JSON, fields as JSON). Doesn't change."""

    def __init__(self, rows: Iterable[Sequence[str]]) -> None:
        from rank_bm25 import BM25Plus  # numpy comes with it

        kept = [(chunk_id, json.loads(terms), fields) for chunk_id, terms, fields in rows]
        self._ids = [chunk_id for chunk_id, _, _ in kept]
        self._fields = [fields for _, _, fields in kept]
        self._holders: dict[str, list[int]] = {}
        for position, (_, terms, _) in enumerate(kept):
            for term in dict.fromkeys(terms):
                self._holders.setdefault(term, []).append(position)
        # rank_bm25 divides by the number of documents.
        self._model = BM25Plus([terms for _, terms, _ in kept]) if kept else None

    def best(self, query_terms: Sequence[str], k: int, where: Where | None) -> list[tuple[float, str]]:
        """(score, chunk id) of the best `k` chunks that hold one of the terms and pass the filter."""
        terms = [term for term in dict.fromkeys(query_terms) if term in self._holders]
        sharing = sorted({position for term in terms for position in self._holders[term]})
        if where:
            sharing = [position for position in sharing if filters.matches(where, json.loads(self._fields[position]))]
        if not sharing or self._model is None:
            return []
        scores = self._model.get_batch_scores(terms, sharing)
        pairs = ((float(score), self._ids[position]) for score, position in zip(scores, sharing, strict=True))
        return sorted(pairs, key=lambda pair: (-pair[0], pair[1]))[:k]
