"""Shows what the cross-encoder's weight in the evidence scorer, and the fused place, do to sets never trained on.

    python training/choose_weights.py --data DIR --keep FOLDER [--questions 50] [--joint] SET...

For each weight: nDCG@10 of 30 fused chunks ordered by logit less some multiple of ln(1 + place), and the AUROC of the
best logit among the first eight on answerable against unanswerable questions, where the set has some. With --joint all
sets are in one index, and the last figures are those of all their questions. The indexes are kept in FOLDER, as
`leadline eval` keeps them in its --data-dir, so that a second run embeds nothing again.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from leadline.config import load_settings
from leadline.evaluation.datasets import Dataset, load_dataset
from leadline.evaluation.index import evaluation_library
from leadline.evaluation.metrics import ndcg
from leadline.evaluation.runner import collection_of
from leadline.evaluation.search import Search
from leadline.models.evidence import CROSS, EvidenceScorer, Fit, Layer
from leadline.models.minilm import MiniLM

DEPTH, HEAD, CONTEXT = 300, 30, 8  # chunks: asked of each leg, scored, and looked at for the sign
WEIGHTS = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6)
PRIORS = (0.0, 0.25, 0.5, 0.75, 1.0)


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


async def ask(search: Search, scorer: Apart, dataset: Dataset, prefix: str) -> list[Asked]:
    """All questions, answerable or not. `prefix` stands before the documents' ids in this collection."""
    asked = []
    for query, text in {**dataset.queries, **dataset.unanswerable}.items():
        found = await search.find(text)
        if found.fused:
            head = [str(one["metadata"]["doc_id"]) for one in found.fused[:HEAD]]
            grades = {prefix + document: grade for document, grade in dataset.qrels.get(query, {}).items()}
            asked.append(Asked(head, scorer.parts, grades))
    return asked


def figures(asked: Sequence[Asked], weight: float) -> str:
    """One line."""
    ranked: dict[float, list[float]] = {prior: [] for prior in PRIORS}
    best = []
    for one in asked:
        logits = one.parts[0] + weight * one.parts[1]
        best.append(logits[:CONTEXT].max())
        for prior, found in ranked.items():
            if one.grades:
                placed = prior * np.log1p(np.arange(len(logits))) - logits
                order = dict.fromkeys(one.documents[at] for at in np.argsort(placed, kind="stable"))
                found.append(ndcg([*order], one.grades, 10))
    shown = "  ".join(f"{prior}: {np.mean(found):.3f}" for prior, found in ranked.items())
    answerable = [bool(one.grades) for one in asked]
    line = f"  {weight:4}:  {shown}"
    return line if all(answerable) else f"{line}, AUROC {roc_auc_score(answerable, best):.3f}"


def show(name: str, asked: Sequence[Asked]) -> None:
    """A table: a line a weight, nDCG@10 by prior."""
    fused = [ndcg([*dict.fromkeys(one.documents)], one.grades, 10) for one in asked if one.grades]
    print(f"{name}: {len(asked)} questions, fused {np.mean(fused):.3f}")
    for weight in WEIGHTS:
        print(figures(asked, weight), flush=True)


async def measure(folders: Sequence[Path], keep: Path, questions: int, joint: bool) -> None:
    """Prints the figures of each set."""
    datasets = [load_dataset(folder) for folder in folders]
    everything: list[Asked] = []
    async with evaluation_library(load_settings(data_dir=keep)) as (library, settings):
        scorer = Apart(MiniLM())
        for group in [datasets] if joint else [[dataset] for dataset in datasets]:
            collection = await collection_of(library, group, settings.chunk_tokens, lambda *_: None)
            search = Search(collection.retrievers(), scorer, k=DEPTH, head=HEAD)
            for dataset in group:
                prefix = f"{collection.name}/{dataset.name}/" if joint else f"{dataset.name}/"
                asked = await ask(search, scorer, dataset.sampled(questions, seed=13), prefix)
                show(dataset.name, asked)
                everything += asked
    if joint:
        show("joint", everything)


def main() -> None:
    """Measures each set named."""
    parser = argparse.ArgumentParser(description="Measures weights of the cross-encoder.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=50, help="questions a set, of each sort")
    parser.add_argument("--joint", action="store_true", help="all sets in one index")
    parser.add_argument("sets", nargs="+")
    arguments = parser.parse_args()
    folders = [arguments.data / name for name in arguments.sets]
    asyncio.run(measure(folders, arguments.keep, arguments.questions, arguments.joint))


if __name__ == "__main__":
    main()
