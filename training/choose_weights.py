"""Shows what the cross-encoder's weight in the evidence scorer, and the fused place, do to sets never trained on.

    python training/choose_weights.py --data DIR --keep FOLDER [--questions 50] SET...

For each weight: nDCG@10 of 30 fused chunks ordered by logit, and by logit less ln(1 + place), and the AUROC of the best
logit among the first eight on answerable against unanswerable questions, where the set has some. The indexes are kept
in FOLDER, so that a second run embeds nothing again.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from leadline.config import load_settings
from leadline.evaluation.datasets import Dataset, load_dataset
from leadline.evaluation.index import evaluation_library, take_in
from leadline.evaluation.metrics import ndcg
from leadline.evaluation.search import Search
from leadline.models.evidence import CROSS, EvidenceScorer, Fit, Layer
from leadline.models.minilm import MiniLM
from leadline.ranking import RANK_PRIOR

HEAD, CONTEXT = 30, 8
WEIGHTS = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6)


class Apart(EvidenceScorer):
    """The evidence scorer, which also tells the two parts of each logit: its own, and the cross-encoder's, each that of
    its best window."""

    parts: NDArray[np.float64]

    def _logits(self, fit: Fit, layer: Layer, question: str, passages: Sequence[str]) -> list[float]:
        if CROSS not in layer.names:
            return EvidenceScorer._logits(self, fit, layer, question, passages)
        own = Layer(layer.names[:-1], layer.weights[:-1], layer.intercept)
        cross = Layer(layer.names, np.eye(len(layer.names))[-1], 0.0)
        self.parts = np.array([EvidenceScorer._logits(self, fit, each, question, passages) for each in (own, cross)])
        joined: list[float] = (self.parts[0] + layer.weights[-1] * self.parts[1]).tolist()
        return joined


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the documents of its candidates in fused order, the parts of their logits, and its judgements."""

    documents: list[str]
    parts: NDArray[np.float64]
    grades: dict[str, int]


def document_of(found: Any) -> str:
    """The document's id in its set."""
    return str(found["metadata"]["doc_id"]).split("/", 1)[1]


async def ask(search: Search, scorer: Apart, dataset: Dataset) -> list[Asked]:
    """All questions, answerable or not."""
    asked = []
    for query, text in {**dataset.queries, **dataset.unanswerable}.items():
        found = await search.find(text)
        if found.fused:
            head = [document_of(one) for one in found.fused[:HEAD]]
            asked.append(Asked(head, scorer.parts, dataset.qrels.get(query, {})))
    return asked


def figures(asked: Sequence[Asked], weight: float) -> str:
    """One line."""
    plain, placed, best = [], [], []
    for one in asked:
        logits = one.parts[0] + weight * one.parts[1]
        best.append(logits[:CONTEXT].max())
        if one.grades:
            prior = RANK_PRIOR * np.log1p(np.arange(len(logits)))
            for ranked, scores in ((plain, logits), (placed, logits - prior)):
                order = dict.fromkeys(one.documents[at] for at in np.argsort(-scores, kind="stable"))
                ranked.append(ndcg([*order], one.grades, 10))
    line = f"  {weight:4}: nDCG@10 {np.mean(plain):.3f}, with places {np.mean(placed):.3f}"
    answerable = [bool(one.grades) for one in asked]
    return line if all(answerable) else f"{line}, AUROC {roc_auc_score(answerable, best):.3f}"


async def measure(data: Path, keep: Path, names: Sequence[str], questions: int) -> None:
    """Prints the figures of each set."""
    async with evaluation_library(load_settings(data_dir=keep)) as (library, settings):
        scorer = Apart(MiniLM())
        for name in names:
            dataset = load_dataset(data / name)
            collection = await library.collection(name, create=True)
            await take_in(collection, dataset, library.embedder, settings.chunk_tokens, lambda *_: None)
            search = Search(await library.retrievers(name), scorer, k=100, head=HEAD)
            asked = await ask(search, scorer, dataset.sampled(questions, seed=13))
            fused = [ndcg([*dict.fromkeys(one.documents)], one.grades, 10) for one in asked if one.grades]
            print(f"{name}: {len(asked)} questions, fused {np.mean(fused):.3f}")
            for weight in WEIGHTS:
                print(figures(asked, weight), flush=True)


def main() -> None:
    """Measures each set named."""
    parser = argparse.ArgumentParser(description="Measures weights of the cross-encoder.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=50, help="questions a set, of each sort")
    parser.add_argument("sets", nargs="+")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.data, arguments.keep, arguments.sets, arguments.questions))


if __name__ == "__main__":
    main()
