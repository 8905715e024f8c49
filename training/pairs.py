"""Question–passage and question–sentence pairs for the evidence scorer's fit, and what is measured of each.

Similarities take minutes to compute and are kept under `training/scratch`.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import judged
from leadline.models import features
from leadline.models.cross_encoder import CrossEncoder
from leadline.models.features import TermWeights
from leadline.models.minilm import MiniLM

WORK = Path(__file__).parent / "scratch"

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """A question held against one passage or sentence. `bag` joins the sentences of one passage."""

    name: str
    bag: int
    kind: str
    question: str
    passage: str


def passage_pairs(rows: Iterable[judged.Judged]) -> list[Pair]:
    """Every passage of every question, each in its own bag."""
    found: list[Pair] = []
    for row in rows:
        kinds = [("positive", (row.positive,)), ("near", row.near), ("mined", row.mined), ("far", row.far)]
        for kind, passages in kinds:
            for passage in passages:
                found.append(Pair(row.name, len(found), kind, row.question, passage))
    return found


def sentence_pairs(rows: Iterable[judged.Judged]) -> list[Pair]:
    """The sentences of the positive and of one near or mined negative, a bag for each passage."""
    found: list[Pair] = []
    bag = 0
    for row in rows:
        near = (row.near + row.mined)[:1]
        for kind, passages in (("positive", (row.positive,)), ("near", near), ("far", row.far)):
            for passage in passages:
                bag += 1
                found.extend(Pair(row.name, bag, kind, row.question, text) for text in judged.sentences(passage))
    return found


def altered_pairs(rows: list[judged.Judged], *, by_sentence: bool) -> list[Pair]:
    """Near misses, whole or by sentence, with bags of their own."""
    found: list[Pair] = []
    for place, row in enumerate(judged.altered(rows)):
        texts = judged.sentences(row.positive) if by_sentence else [row.positive]
        found.extend(Pair(row.name, -1 - place, "altered", row.question, text) for text in texts)
    return found


def read_together(pairs: list[Pair]) -> NDArray[np.float64]:
    """The cross-encoder's logit of every pair; computed once, then read from a file."""
    key = hashlib.sha256(json.dumps([CrossEncoder.name, [(p.question, p.passage) for p in pairs]]).encode())
    path = WORK / f"cross-{key.hexdigest()[:16]}.npy"
    if not path.exists():
        model = CrossEncoder(MiniLM())
        asked: dict[str, list[int]] = {}
        for place, pair in enumerate(pairs):
            asked.setdefault(pair.question, []).append(place)
        found = np.zeros(len(pairs))
        for done, (question, places) in enumerate(asked.items()):
            found[places] = model.logits(question, [pairs[place].passage for place in places])
            if done % 500 == 0:
                print(f"  {done:,} of {len(asked):,} questions read", flush=True)
        np.save(path, found)
    logits: NDArray[np.float64] = np.load(path, allow_pickle=False)
    return logits


def measured(pairs: list[Pair], weights: TermWeights, *, read: bool) -> Matrix:
    """The features of every pair, a row each; with `read` the cross-encoder's logit after them."""
    cosines, similarities, question_ids = similar(pairs)
    rows = []
    for place, pair in enumerate(pairs):
        rows.append(
            features.measure(
                features.asked_terms(pair.question, weights),
                pair.passage,
                cosine=cosines[place],
                similarities=similarities[place].astype(np.float32),
                token_weights=weights.token_ids[question_ids[place]],
            )
        )
    matrix = np.array(rows)
    return np.column_stack([matrix, read_together(pairs)]) if read else matrix


def similar(pairs: list[Pair]) -> tuple[list[float], list[NDArray[np.float16]], list[NDArray[np.int64]]]:
    """Cosine, token similarities and question token ids of every pair; computed once, then read from a file."""
    key = hashlib.sha256(json.dumps([(p.question, p.passage) for p in pairs]).encode()).hexdigest()[:16]
    path = WORK / f"similar-{key}.npz"
    if not path.exists():
        WORK.mkdir(exist_ok=True)
        cosines, flat, shapes, ids = [], [], [], []
        model = MiniLM()
        for start in range(0, len(pairs), 256):
            part = pairs[start : start + 256]
            texts = list(dict.fromkeys([p.question for p in part] + [p.passage for p in part]))
            encoded = dict(zip(texts, model.encode(texts), strict=True))
            for pair in part:
                question, passage = encoded[pair.question], encoded[pair.passage]
                cosines.append(float(question.sentence @ passage.sentence))
                matrix = question.tokens @ passage.tokens.T
                shapes.append(matrix.shape)
                flat.append(matrix.astype(np.float16).ravel())
                ids.append(question.token_ids)
            if start % 2560 == 0:
                print(f"  {start:,} of {len(pairs):,} pairs", flush=True)
        np.savez(path, cosines=cosines, flat=np.concatenate(flat), shapes=shapes, ids=np.concatenate(ids))
    stored = np.load(path, allow_pickle=False)
    shapes, cosines = stored["shapes"], stored["cosines"]
    matrices = np.split(stored["flat"], np.cumsum(shapes[:, 0] * shapes[:, 1])[:-1])
    ids = np.split(stored["ids"], np.cumsum(shapes[:, 0])[:-1])
    return list(cosines), [m.reshape(s) for m, s in zip(matrices, shapes, strict=True)], ids
