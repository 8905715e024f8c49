"""Mines what the cross-encoder learns from: questions, a passage that answers each, and passages that don't.

    python training/mine.py --train DIR --data DIR [--scale 1.0]

The negatives are passages that the sets themselves name (of the same article, disease, story), passages that our own
keyword and dense legs find in the set, and the positive passage held against the question altered by rule. Writes
`training/scratch/questions.jsonl`, the same file every time; about ten minutes on two cores, mostly for the vectors.
Evaluation questions are never read.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alterations import WORD, altered, names
from leadline.analysis import STOP_WORDS, Analyzer
from leadline.models.minilm import MiniLM
from leadline.stores import open_lexical_store, open_vector_store
from leadline.stores.base import ChunkRecord

TARGET = Path(__file__).parent / "scratch" / "questions.jsonl"
# Questions drawn a set. Left out for want of a stated licence: squad_train_kou, conditionalqa_train, mediqa2019.
COUNTS = {
    "squad_train_part": 4500,
    "squad_train_flan": 2200,
    "fairytaleqa": 1200,
    "selqa": 1500,
    "medquad": 1200,
    "lfrqa": 1000,
    "nq_open_oracle": 1400,
    "policyqa": 300,
    "ares_synth_nq": 600,
    "ares_synth_hotpotqa": 600,
    "ares_synth_wow": 600,
    "ares_synth_fever": 400,
    "scifact_train": 500,
}
# Its questions name no company: the policy of another company may well answer them.
NOT_MINED = frozenset({"policyqa"})
EACH_WORDING = 5  # questions of one wording, at most
MIN_WORDS, MAX_WORDS = 12, 150
POOL = 2500  # passages of a set that are searched
FOUND, KEPT = 12, 2
SAME = 0.6  # share of common terms from which a found passage may be the positive in other words
HELD = 10  # one in so many passages, with all of its questions, is kept out of training
SEED = 11

Row = dict[str, Any]

analyzer = Analyzer("english")


def rows(train: Path, data: Path, name: str) -> Iterator[Row]:
    """The questions of a set: `q`, `pos`, `neg`."""
    if name == "scifact_train":
        yield from claims(data / "scifact")
        return
    with gzip.open(train / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def claims(folder: Path) -> Iterator[Row]:
    """The training claims of SciFact, each with an abstract that bears on it."""
    texts = {row["_id"]: f"{row['title']}. {row['text']}" for row in lines(folder / "corpus.jsonl")}
    asked = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
    for line in (folder / "qrels.train.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, passage, _ = line.split("\t")
        yield {"q": asked[question], "pos": [texts[passage]], "neg": []}


def lines(path: Path) -> Iterator[Row]:
    """The objects of a file of JSON lines."""
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def cut(text: str) -> str:
    """The first words of a passage, as many as are read at once."""
    found = text.split()
    return text if len(found) <= MAX_WORDS else " ".join(found[:MAX_WORDS])


def drawn(train: Path, data: Path, name: str, count: int) -> list[Row]:
    """`count` questions whose positive is read whole."""
    chance = random.Random(f"{SEED} {name}")
    found = list(rows(train, data, name))
    chance.shuffle(found)
    asked: dict[str, int] = {}
    kept: list[Row] = []
    longest = 400 if name == "scifact_train" else MAX_WORDS  # abstracts say what they found at both ends
    for row in found:
        wording = row["q"].strip()
        asked[wording] = asked.get(wording, 0) + 1
        if asked[wording] <= EACH_WORDING and MIN_WORDS <= len(row["pos"][0].split()) <= longest:
            near = [cut(text) for text in row["neg"] if len(text.split()) >= MIN_WORDS and text not in row["pos"]]
            chance.shuffle(near)
            kept.append({"q": wording, "pos": row["pos"][0], "near": near[:KEPT], "known": row["pos"]})
    return kept[:count]


async def search(found: list[Row], passages: list[str]) -> list[list[str]]:
    """For each question the passages that the keyword and the dense leg put first, by turns."""
    model = MiniLM()
    vectors = await asyncio.to_thread(model.embed_passages, passages)
    records = [
        ChunkRecord(str(n), "d", text, (vector,))
        for n, (text, vector) in enumerate(zip(passages, vectors, strict=True))
    ]
    ranked = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_lexical_store("tantivy", path=Path(folder) / "bm25", analyzer=analyzer) as words,
            open_vector_store("faiss", path=Path(folder) / "vector") as dense,
        ):
            await words.upsert(records)
            await dense.upsert(records)
            asked = await asyncio.to_thread(model.embed_passages, [row["q"] for row in found])
            for row, vector in zip(found, asked, strict=True):
                first = await words.lexical_search(row["q"], k=FOUND)
                second = await dense.search(vector, k=FOUND)
                turns = [hit.chunk_id for pair in zip(first, second, strict=False) for hit in pair]
                ranked.append([passages[int(chunk_id)] for chunk_id in dict.fromkeys(turns)])
    return ranked


def mined(row: Row, ranked: list[str], terms: dict[str, set[str]], chance: random.Random) -> list[str]:
    """Found passages that aren't the positive in other words, one of the first and one of the rest."""
    known = set().union(*(terms.get(text, set()) for text in row["known"]))
    fresh = [
        text
        for text in ranked
        if text not in row["known"] and len(known & terms[text]) < SAME * max(min(len(known), len(terms[text])), 1)
    ]
    first, rest = fresh[:4], fresh[4:]
    return [cut(chance.choice(part)) for part in (first, rest) if part]


def mine(name: str, found: list[Row]) -> Iterator[Row]:
    """The questions of a set with all of their negatives."""
    chance = random.Random(f"{SEED} mining {name}")
    passages = list(dict.fromkeys(row["pos"] for row in found))
    passages += list(dict.fromkeys(text for row in found for text in row["near"] if text not in set(passages)))
    passages = passages[:POOL]
    ranked = [[] for _ in found] if name in NOT_MINED else asyncio.run(search(found, passages))
    terms = {text: set(analyzer.terms(text)) for text in {*passages, *(row["pos"] for row in found)}}
    others = [word for row in found for word in [*names(row["q"]), *names(row["pos"])[:2], *content_words(row["q"])]]
    for row, texts in zip(found, ranked, strict=True):
        pool = chance.sample(others, min(40, len(others)))
        yield {
            "set": name,
            "held": is_held(row["pos"]),
            "q": row["q"],
            "pos": row["pos"],
            "near": row["near"],
            "mined": mined(row, texts, terms, chance),
            "altered": altered(row["q"], row["pos"], pool, chance, KEPT),
        }


def is_held(passage: str) -> bool:
    """Whether questions that this passage answers are kept out of training."""
    return int(hashlib.sha256(passage.encode()).hexdigest(), 16) % HELD == 0


def content_words(text: str) -> list[str]:
    """Words in small letters that aren't of the grammar."""
    return [word for word in WORD.findall(text) if word.islower() and len(word) > 3 and word not in STOP_WORDS]


def main() -> None:
    """Mines every set."""
    parser = argparse.ArgumentParser(description="Mines the training questions of the cross-encoder.")
    parser.add_argument("--train", type=Path, required=True, help="the folder of training sets")
    parser.add_argument("--data", type=Path, required=True, help="the folder with SciFact and its training part")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the questions")
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    arguments.target.parent.mkdir(exist_ok=True)
    unfinished = arguments.target.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as file:
        for name, count in COUNTS.items():
            found = drawn(arguments.train, arguments.data, name, round(count * arguments.scale))
            made = list(mine(name, found))
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in made)
            print(f"{name}: {len(made):,} questions", flush=True)
    unfinished.replace(arguments.target)


if __name__ == "__main__":
    main()
