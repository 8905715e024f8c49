"""Measures the shipped evidence scorer on evaluation sets that it was not fitted on.

    python training/measure_evidence.py --data DIR [--questions 50] SET...

Prints for each set nDCG@10 of 20 BM25 candidates, of the same reranked, and how well the best logit among the first
five tells questions that have a judged passage from those that have none. Needs the training packages.
"""

import argparse
import json
import math
import random
from pathlib import Path

import bm25s
import numpy as np
from sklearn.metrics import roc_auc_score

from leadline.analysis import Analyzer
from leadline.models.evidence import EvidenceScorer
from leadline.models.minilm import MiniLM

CANDIDATES, CONTEXT = 20, 5

analyzer = Analyzer("english")


class Corpus:
    """One set: its passages, its questions, its judgements, and BM25 over it."""

    def __init__(self, folder: Path) -> None:
        rows = lines(folder / "corpus.jsonl")
        self.ids = [row["_id"] for row in rows]
        self.texts = [f"{row.get('title') or ''}\n{row['text']}".strip() for row in rows]
        self.questions = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
        self.judged: dict[str, dict[str, float]] = {}
        for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            question, passage, score = line.split("\t")
            if float(score) > 0:
                self.judged.setdefault(question, {})[passage] = float(score)
        self.index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        self.index.index([analyzer.terms(text) for text in self.texts], show_progress=False)

    def candidates(self, question: str) -> list[int]:
        """Places of the best passages by BM25, best first."""
        terms = [term for term in analyzer.query_terms(self.questions[question]) if term in self.index.vocab_dict]
        scores = self.index.get_scores(terms) if terms else np.zeros(len(self.ids))
        return [int(place) for place in np.argsort(-scores, kind="stable")[:CANDIDATES]]


def lines(path: Path) -> list[dict]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ndcg(ranked: list[str], judged: dict[str, float]) -> float:
    """nDCG@10 with linear gain."""
    gained = sum(judged.get(name, 0.0) / math.log2(place + 2) for place, name in enumerate(ranked[:10]))
    best = sorted(judged.values(), reverse=True)[:10]
    return gained / sum(value / math.log2(place + 2) for place, value in enumerate(best))


def measure(folder: Path, count: int, scorer: EvidenceScorer) -> None:
    """Prints the figures of one set."""
    corpus = Corpus(folder)
    chance = random.Random(3)
    answerable = sorted(set(corpus.questions) & set(corpus.judged))
    others = sorted(set(corpus.questions) - set(corpus.judged))
    before, after, best = [], [], []
    for question in chance.sample(answerable, min(count, len(answerable))):
        places = corpus.candidates(question)
        logits = scorer.score(corpus.questions[question], [corpus.texts[place] for place in places])
        ranked = [places[row] for row in np.argsort(-np.array(logits), kind="stable")]
        before.append(ndcg([corpus.ids[place] for place in places], corpus.judged[question]))
        after.append(ndcg([corpus.ids[place] for place in ranked], corpus.judged[question]))
        best.append(max(logits[:CONTEXT]))
    print(f"{folder.name}: nDCG@10 {np.mean(before):.3f}, reranked {np.mean(after):.3f}", end="")
    print(f"; answerable above zero {np.mean(np.array(best) > 0):.2f}", end="")
    if others:
        none = [
            max(scorer.score(corpus.questions[name], [corpus.texts[p] for p in corpus.candidates(name)[:CONTEXT]]))
            for name in chance.sample(others, min(count, len(others)))
        ]
        area = roc_auc_score([1] * len(best) + [0] * len(none), best + none)
        print(f", unanswerable below zero {np.mean(np.array(none) < 0):.2f}, AUROC {area:.3f}", end="")
    print(flush=True)


def main() -> None:
    """Measures each set named."""
    parser = argparse.ArgumentParser(description="Measures the evidence scorer.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=50, help="questions a set, of each sort")
    parser.add_argument("sets", nargs="+")
    arguments = parser.parse_args()
    scorer = EvidenceScorer(MiniLM())
    for name in arguments.sets:
        measure(arguments.data / name, arguments.questions, scorer)


if __name__ == "__main__":
    main()
