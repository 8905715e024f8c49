"""How the reranker's best logit of a question goes with whether the documents can answer it.

Knows which question is answerable and which passage was right. Doesn't know thresholds nor figures.
"""

from dataclasses import dataclass

from leadline.evaluation.datasets import Dataset
from leadline.evaluation.index import Progress, source_id
from leadline.evaluation.scoring import sources_of
from leadline.evaluation.search import Search
from leadline.knowledge import KnowledgeBase
from leadline.models.base import Reranker
from leadline.ranking import is_scored
from leadline.records import Document

TOP_K = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """One question, asked.

    `logit` is the best of its context, None where nothing was found or scored; above 0 a run goes on to answer.
    `right`: the best passage is of a source that is judged relevant for the question; never for an unanswerable one.
    """

    query: str
    answerable: bool
    logit: float | None
    right: bool


async def judge(
    collection: KnowledgeBase,
    reranker: Reranker,
    dataset: Dataset,
    *,
    top_k: int = TOP_K,
    progress: Progress = lambda _task, _done, _total: None,
) -> list[Judged]:
    """Asks every question of `dataset`, the answerable ones first, and looks at the best passage of each.

    It searches as the first pass of a run does: `top_k` chunks a leg, fused, all of them scored. The context is the
    first few of those by logit, so its best logit is that of the first. The dataset's documents must be in the
    collection as `index.take_in` puts them there. What a leg or the reranker raises is raised. Cost: up to `top_k`
    pairs a leg and question are scored.
    """
    search = Search(collection.retrievers(), reranker, k=top_k)
    asked = [*((query, text, True) for query, text in dataset.queries.items())]
    asked += [(query, text, False) for query, text in dataset.unanswerable.items()]
    judged = []
    for done, (query, text, answerable) in enumerate(asked, 1):
        best = next(iter((await search.find(text)).reranked), None)
        relevant = {source_id(collection.name, dataset.name, document) for document in dataset.qrels.get(query, {})}
        judged.append(_judged(query, answerable, best, relevant))
        progress(f"{dataset.name}: questions", done, len(asked))
    return judged


def _judged(query: str, answerable: bool, best: Document | None, relevant: set[str]) -> Judged:
    if best is None or not is_scored(best["rerank_score"]):
        return Judged(query, answerable, None, right=False)
    return Judged(query, answerable, best["rerank_score"], not relevant.isdisjoint(sources_of(best)))
