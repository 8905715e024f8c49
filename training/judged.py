"""Reads the judged question–passage sets and makes the pairs that the evidence scorer learns from.

A set is a gzipped file of lines `{"q", "pos": [...], "neg": [...], "src"}`. Sets without a stated licence are left out.
"""

import gzip
import json
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

import bm25s
import numpy as np
import sentencex

from leadline.analysis import STOP_WORDS, Analyzer
from mine import is_held
from train import UNSEEN

# The intercept is set on sets that the weights never saw.
FITTED = ("medquad", "lfrqa", "squad_train_part", "fairytaleqa", "policyqa", "selqa")
CALIBRATED = ("squad_train_flan", "nq_open_oracle", "ares_synth_nq", "ares_synth_hotpotqa", "ares_synth_wow")
# Its questions name no company, so that the policy of another company may well answer them.
NOT_MINED = frozenset({"policyqa"})
MIN_WORDS, MAX_WORDS = 8, 190  # longer passages may not fit one window of the embedder
SAME = 0.6  # share of common terms from which a mined passage may be the positive in other words

WORD = re.compile(r"[^\W_][\w'-]*")

analyzer = Analyzer("english")


@dataclass(frozen=True, slots=True)
class Judged:
    """One question of a set with a passage that answers it and passages that don't.

    `near` are about the same thing, `mined` share words with the question, `far` come from elsewhere.
    """

    name: str
    question: str
    positive: str
    near: tuple[str, ...]
    mined: tuple[str, ...]
    far: tuple[str, ...]


def read(folder: Path, name: str, count: int, *, unseen: bool, seed: int = 7) -> list[Judged]:
    """A sample of `count` questions of a set, at most five of each wording, with mined and far negatives.

    With `unseen`, of a set that the cross-encoder was trained on only questions whose passage it wasn't trained on.
    """
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(seed).shuffle(rows)
    asked: dict[str, int] = {}
    kept = []
    for row in rows:
        asked[row["q"]] = asked.get(row["q"], 0) + 1
        if asked[row["q"]] <= 5 and MIN_WORDS <= len(row["pos"][0].split()) <= MAX_WORDS:
            kept.append(row)
    pool = kept[: max(3000, count)]
    if unseen and name not in UNSEEN:
        kept = [row for row in kept if is_held(row["pos"][0])]
    return with_mined(name, pool, kept[:count], seed)


def with_mined(name: str, pool: list[dict], kept: list[dict], seed: int) -> list[Judged]:
    """Adds to each question two passages of other questions that BM25 ranks third to tenth, and one at random."""
    chance = random.Random(seed + 1)
    passages = list(dict.fromkeys(row["pos"][0] for row in pool))
    terms = [analyzer.terms(passage) for passage in passages]
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    index.index(terms, show_progress=False)
    found = []
    for row in kept:
        positive = row["pos"][0]
        known = set(analyzer.terms(positive))
        query = [term for term in analyzer.query_terms(row["q"]) if term in index.vocab_dict]
        scores = index.get_scores(query) if query else np.zeros(len(passages))
        ranked = [int(place) for place in np.argsort(-scores, kind="stable")[:20]]
        fresh = [place for place in ranked if len(known & set(terms[place])) / max(len(known), 1) < SAME]
        mined = [passages[place] for place in chance.sample(fresh[1:9], k=min(2, len(fresh[1:9])))]
        near = [text for text in row["neg"] if MIN_WORDS <= len(text.split()) <= MAX_WORDS and text != positive]
        chance.shuffle(near)
        far = chance.choice(passages)
        if name in NOT_MINED:
            mined, far = [], positive
        found.append(Judged(name, row["q"], positive, tuple(near[:2]), tuple(mined), () if far == positive else (far,)))
    return found


def sentences(passage: str) -> list[str]:
    """The sentences of a passage that have at least three words."""
    parts = (part.strip() for part in sentencex.segment("en", passage))
    return [part for part in parts if len(part.split()) >= 3]


def altered(rows: list[Judged], seed: int = 5) -> list[Judged]:
    """Near misses: each question with one number, name or other content word exchanged for one of another question.

    The passage that answered the question speaks of nearly the same thing and no longer answers it. A question for
    which no exchange is found that isn't in its passage is left out.
    """
    chance = random.Random(seed)
    pools: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for match, kind in exchangeable(row.question):
            pools.setdefault((row.name, kind), []).append(match.group())
    found = []
    for row in rows:
        words = exchangeable(row.question)
        chance.shuffle(words)
        words.sort(key=lambda word: word[1] == "word" and chance.random() < 0.5)  # names and numbers rather first
        passage = row.positive.lower()
        for match, kind in words:
            other = chance.choice(pools[row.name, kind])
            if other.lower() not in passage and other.lower() != match.group().lower():
                found.append(replace(row, question=row.question[: match.start()] + other + row.question[match.end() :]))
                break
    return found


def exchangeable(question: str) -> list[tuple[re.Match[str], str]]:
    """The words of a question that carry its meaning, as number, name or word; never the first one."""
    found = []
    for match in list(WORD.finditer(question))[1:]:
        word = match.group()
        if any(sign.isdigit() for sign in word):
            found.append((match, "number"))
        elif word[0].isupper():
            found.append((match, "name"))
        elif len(word) > 2 and word.lower() not in STOP_WORDS:
            found.append((match, "word"))
    return found
