"""Every ranking of one question, by the product's own legs, fusion and reranker.

Knows which ranking comes from which. Doesn't know datasets nor figures.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from leadline.models.base import Reranker
from leadline.nodes.reranker import passage_text
from leadline.ranking import apply_scores, fuse
from leadline.records import Document
from leadline.stores.base import Retriever


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one question, each list best first. `reranked` is the head of `fused`, with its logits."""

    legs: dict[str, list[Document]]
    fused: list[Document]
    reranked: list[Document]

    def rankings(self) -> dict[str, list[Document]]:
        """The legs' rankings and three made of them: `fused`, `reranked` (what wasn't scored follows in fused order),
        and `blended`: fused anew with the reranker as one more voter, which no run does.
        """
        reranked = [*self.reranked, *self.fused[len(self.reranked) :]]
        blended = fuse({**self.legs, "reranker": self.reranked})
        return {**self.legs, "fused": self.fused, "reranked": reranked, "blended": blended}


class Search:
    """Asks each leg for `k` chunks, fuses them and has the first `head` of the fused ones scored (None: all)."""

    def __init__(self, legs: Mapping[str, Retriever], reranker: Reranker, *, k: int, head: int | None = None) -> None:
        self.legs = legs
        self._reranker = reranker
        self._k = k
        self._head = head

    async def find(self, query: str) -> Found:
        """What a leg or the reranker raises is raised: what failed has no figure."""
        searches = (leg.search(query, k=self._k) for leg in self.legs.values())
        legs = dict(zip(self.legs, await asyncio.gather(*searches), strict=True))
        fused = fuse(legs)
        return Found(legs, fused, await self._scored(query, fused[: self._head]))

    async def _scored(self, query: str, head: list[Document]) -> list[Document]:
        if not head:
            return []
        scores = await asyncio.to_thread(self._reranker.score, query, [passage_text(document) for document in head])
        return apply_scores(head, scores)
