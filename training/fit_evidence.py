"""Fits the evidence scorer: its tables of term weights, its two logistic layers, and the zero point of each.

    python training/fit_evidence.py --data DIR [--questions 400]

DIR holds the judged sets that `judged.py` names. Needs the training packages: bm25s, scikit-learn. Writes
`src/leadline/models/weights/evidence` and prints what the code that loads the files has to pin. Similarities are kept
under `training/scratch`, so that a second run is quick.
"""

import argparse
import gzip
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import judged
from leadline.models import features
from leadline.models.evidence import CROSS
from leadline.models.features import TermWeights
from leadline.models.minilm import MiniLM
from pairs import Matrix, Pair, altered_pairs, measured, passage_pairs, sentence_pairs

TARGET = Path(__file__).parent.parent / "src/leadline/models/weights/evidence"
VOCABULARY = 30522
RARE = 3  # terms of fewer passages get the weight of an unknown term

SENTENCE_QUESTIONS, HELD_SENTENCE_QUESTIONS = 250, 100
SENTENCE_SETS = ("squad_train_part", "fairytaleqa", "selqa", "medquad")
# What the negatives of a set weigh together is 1, shared like this. Mined ones were chosen for their shared terms, so
# that much of them teaches to distrust shared terms.
SHARES = {"near": 1.0, "far": 0.5, "mined": 0.2, "altered": 0.6, "beside": 1.0}
CROSS_WEIGHT = 0.25
# The share of answerable questions whose answer must stay above zero.
KEPT = 0.9


def count_weights(passages: Iterable[str]) -> TermWeights:
    """Inverse document frequencies of terms and of the embedder's tokens over `passages`."""
    texts = list(dict.fromkeys(passages))
    terms: Counter[str] = Counter()
    token_ids: Counter[int] = Counter()
    for text, ids in zip(texts, MiniLM().token_ids(texts), strict=True):
        terms.update(set(features.analyzer.terms(text)))
        token_ids.update(set(ids.tolist()))
    table = np.array([math.log(len(texts) / (1 + token_ids[place])) for place in range(VOCABULARY)])
    return TermWeights(
        terms={t: round(math.log(len(texts) / n), 2) for t, n in sorted(terms.items()) if n >= RARE},
        unknown=round(math.log(len(texts)), 2),
        token_ids=np.maximum(table, 0.0).astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """A logistic layer over some of the features, its zero where the judged questions put it."""

    names: tuple[str, ...]
    weights: NDArray[np.float64]
    intercept: float

    def logits(self, matrix: Matrix) -> NDArray[np.float64]:
        """One logit a row."""
        found: NDArray[np.float64] = matrix @ self.weights + self.intercept
        return found


def best_of_bag(pairs: list[Pair], logits: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Marks the pair with the highest logit in each bag."""
    bags = np.array([pair.bag for pair in pairs])
    order = np.lexsort((-logits, bags))
    first = np.r_[True, bags[order][1:] != bags[order][:-1]]
    marked = np.zeros(len(pairs), dtype=bool)
    marked[order[first]] = True
    return marked


def fit_layer(names: tuple[str, ...], pairs: list[Pair], matrix: Matrix) -> Layer:
    """A logistic regression in which each set, and its positives and negatives, weigh the same.

    Which sentence of a positive passage answers isn't judged: it is taken to be the one that the last fit puts first,
    starting from plain likeness, and its neighbours (`beside`) are negatives. Passages are alone in their bag, so for
    them the rounds change nothing.
    """
    scaler = StandardScaler().fit(matrix)
    layer = Layer(names, np.ones(len(names)), 0.0)
    for _ in range(4):
        best = best_of_bag(pairs, layer.logits(matrix))
        kinds = np.array(
            ["beside" if p.kind == "positive" and not b else p.kind for p, b in zip(pairs, best, strict=True)]
        )
        model = LogisticRegression(max_iter=2000)
        model.fit(scaler.transform(matrix), kinds == "positive", sample_weight=balanced(pairs, kinds))
        weights = model.coef_[0] / scaler.scale_
        layer = Layer(names, weights, float(model.intercept_[0] - weights @ scaler.mean_))
    return layer


def balanced(pairs: list[Pair], kinds: NDArray[np.str_]) -> NDArray[np.float64]:
    """Sample weights: each set the same, half to its positives, half to its negatives by SHARES."""
    names = np.array([pair.name for pair in pairs])
    weights = np.zeros(len(pairs))
    for name in set(names):
        there = [kind for kind in SHARES if ((names == name) & (kinds == kind)).any()]
        for kind in [*there, "positive"]:
            chosen = (names == name) & (kinds == kind)
            portion = 1.0 if kind == "positive" else SHARES[kind] / sum(SHARES[other] for other in there)
            weights[chosen] = portion / max(chosen.sum(), 1)
    return weights * len(pairs) / weights.sum()


def zeroed(layer: Layer, pairs: list[Pair], matrix: Matrix) -> Layer:
    """The layer with its zero where KEPT of the answers stay above it, on the mean over the sets."""
    logits = layer.logits(matrix)
    answers = best_of_bag(pairs, logits) & np.array([pair.kind == "positive" for pair in pairs])
    names = np.array([pair.name for pair in pairs])
    zero = np.mean([np.quantile(logits[answers & (names == name)], 1.0 - KEPT) for name in set(names)])
    return Layer(layer.names, layer.weights, layer.intercept - float(zero))


def report(title: str, layer: Layer, pairs: list[Pair], matrix: Matrix) -> dict[str, dict[str, float]]:
    """Prints and returns, for each set, AUROC and the share of each kind on its right side of zero, best of a bag."""
    logits = layer.logits(matrix)
    best = best_of_bag(pairs, logits)
    names, kinds = np.array([p.name for p in pairs]), np.array([p.kind for p in pairs])
    found: dict[str, dict[str, float]] = {}
    print(title)
    for name in sorted(set(names)):
        chosen = best & (names == name)
        row = {"auroc": float(roc_auc_score(kinds[chosen] == "positive", logits[chosen]))}
        for kind in sorted(set(kinds[chosen])):
            side = logits[chosen & (kinds == kind)] > 0
            row[kind] = float(side.mean() if kind == "positive" else 1.0 - side.mean())
        found[name] = {key: round(value, 3) for key, value in row.items()}
        print(f"  {name:22}", "  ".join(f"{key} {value:.3f}" for key, value in row.items()))
    return found


def all_passages(folder: Path) -> list[str]:
    """At most 4,000 passages of each set, for the term weights."""
    found: list[str] = []
    for name in judged.FITTED + judged.CALIBRATED:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            found.extend([json.loads(line)["pos"][0] for line in lines][:4000])
    return found


def write(layers: dict[str, Layer], weights: TermWeights, figures: dict[str, object]) -> None:
    """Writes the two files and prints their hashes."""
    TARGET.mkdir(parents=True, exist_ok=True)
    content = {
        "unknown_term": weights.unknown,
        "figures": figures,
        **{
            name: {
                "features": layer.names,
                "weights": [round(float(w), 5) for w in layer.weights],
                "intercept": round(layer.intercept, 5),
            }
            for name, layer in layers.items()
        },
    }
    (TARGET / "layers.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    np.savez_compressed(
        TARGET / "terms.npz",
        terms=np.frombuffer("\n".join(weights.terms).encode(), dtype=np.uint8),
        weights=np.array(list(weights.terms.values()), dtype=np.float16),
        tokens=weights.token_ids.astype(np.float16),
    )
    for name in ("layers.json", "terms.npz"):
        print(f'    "{name}": "{hashlib.sha256((TARGET / name).read_bytes()).hexdigest()}",')


def rows_of(folder: Path, names: Sequence[str], count: int, first: int, *, unseen: bool) -> list[judged.Judged]:
    """The first `first` of a sample of `count` questions of each set."""
    return [row for name in names for row in judged.read(folder, name, count, unseen=unseen)[:first]]


def jobs(folder: Path, count: int) -> dict[str, tuple[list[list[Pair]], list[list[Pair]]]]:
    """For each layer the pairs that fit it and those that set its zero."""
    asked = rows_of(folder, judged.FITTED, count, count, unseen=False)
    held = rows_of(folder, judged.CALIBRATED, count // 2, count // 2, unseen=True)
    few = rows_of(folder, SENTENCE_SETS, count, SENTENCE_QUESTIONS, unseen=False)
    held_few = rows_of(folder, judged.CALIBRATED, count // 2, HELD_SENTENCE_QUESTIONS, unseen=False)
    specific = [row for row in asked if row.name not in judged.NOT_MINED]
    return {
        "passages": (
            [passage_pairs(asked), altered_pairs(specific, by_sentence=False)],
            [passage_pairs(held), altered_pairs(held, by_sentence=False)],
        ),
        "sentences": (
            [sentence_pairs(few), altered_pairs(few, by_sentence=True)],
            [sentence_pairs(held_few), altered_pairs(held_few, by_sentence=True)],
        ),
    }


def joined(layer: Layer) -> Layer:
    """The layer with the cross-encoder's logit beside its own.

    Both are log odds of relevance, which are added (Genest & Zidek 1986). Fitted on held-out questions of the sets that
    it was trained on, the cross-encoder would weigh 0.6 to 1.4 of the layer, and rank strange sets worse than BM25
    does; CROSS_WEIGHT was chosen on small samples of eight of those.
    """
    return Layer((*layer.names, CROSS), np.append(layer.weights, CROSS_WEIGHT), layer.intercept)


def main() -> None:
    """Fits both layers, sets their zeros on other sets, and writes all."""
    parser = argparse.ArgumentParser(description="Fits the evidence scorer.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=400, help="questions a set")
    arguments = parser.parse_args()
    weights = count_weights(all_passages(arguments.data))
    layers: dict[str, Layer] = {}
    figures: dict[str, object] = {}
    for name, (parts, held_parts) in jobs(arguments.data, arguments.questions).items():
        pairs, held = list(chain(*parts)), list(chain(*held_parts))
        read = name == "passages"
        matrix = np.vstack([measured(part, weights, read=False) for part in parts])
        held_matrix = np.vstack([measured(part, weights, read=read) for part in held_parts])
        layer = fit_layer(features.NAMES, pairs, matrix)
        layers[name] = zeroed(joined(layer) if read else layer, held, held_matrix)
        print(dict(zip(layers[name].names, np.round(layers[name].weights, 2), strict=True)), layers[name].intercept)
        figures[name] = {
            "fitted, alone": report(f"{name}, sets of the fit", layer, pairs, matrix),
            "held out": report(f"{name}, held-out sets", layers[name], held, held_matrix),
        }
    write(layers, weights, figures)


if __name__ == "__main__":
    main()
