"""The embedded stores side by side, as the product opens them: vectors in one group, words in the other.

    python benchmarks/engines.py [--vectors 20000] [--texts 20000] [--rounds 3]

Texts and vectors are those of `made_up.py`; a question is a vector near those stored, or 8 words. Each engine fills a
folder in one process and answers from it in another; every round runs all of them. Prints JSON: for each engine the
medians of its figures, and `ratio`, the medians of the figures over the same round's for the first engine of the group
(`faiss`, exact, for vectors and `rank-bm25` for words).

`build_s` is all chunks in upserts of 1,000, until the first answer; `open_s` from nothing to the first answer in a new
process, with the engine's import; `update_ms` replacing 10 chunks, deleting 10, and the first answer after that;
`memory_mb` the resident set of the process that answers, after its questions; `disk_mb` what the folder takes up;
`recall` how many of the exact 10 nearest (by numpy) are among the 10 found. Linux only.
"""

import argparse
import asyncio
import itertools
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import made_up
from leadline.analysis import Analyzer
from leadline.drafts import FieldValue
from leadline.stores import open_lexical_store, open_vector_store
from leadline.stores.base import ChunkRecord, Hit, LexicalStore, VectorStore

HITS, QUESTIONS, QUESTION_WORDS = 10, 200, 8
CHUNKS_A_DOCUMENT = 10
PAGE = 1000  # chunks an upsert, as the product gives them
UPDATES, CHANGED = 5, 10
# Name → backend and options. The first of each group is what the others are held against.
VECTOR_ENGINES: dict[str, tuple[str, dict[str, str]]] = {
    "faiss": ("faiss", {}),
    "faiss-hnsw": ("faiss", {"index_type": "hnsw"}),
    "chroma": ("chroma", {}),
    "qdrant": ("qdrant", {}),
}
WORD_ENGINES = ("rank-bm25", "tantivy")
EXTRAS = {"qdrant": "qdrant_edge"}
Figures = dict[str, Any]
Content = Any  # a text or a vector
Ask = Callable[[Content], Awaitable[list[Hit]]]


def record(number: int, content: Content) -> ChunkRecord:
    """The chunk of this number with a text or a vector, and fields as every chunk has them."""
    document, index = divmod(number, CHUNKS_A_DOCUMENT)
    source = f"{document:08}"
    fields: dict[str, FieldValue] = {"doc_id": source, "file_name": f"{source}.md", "chunk_index": index}
    text, vectors = (content, ()) if isinstance(content, str) else ("", (content,))
    return ChunkRecord(chunk_id(number), source, text, vectors, fields)


def chunk_id(number: int) -> str:
    """The id of the chunk of this number."""
    return f"c{number:015}"


def is_lexical(engine: str) -> bool:
    """Whether it searches words."""
    return engine in WORD_ENGINES


def opened(engine: str, folder: Path) -> VectorStore | LexicalStore:
    """The store, to be entered."""
    if is_lexical(engine):
        return open_lexical_store(engine, path=folder, analyzer=Analyzer())
    backend, options = VECTOR_ENGINES[engine]
    return open_vector_store(backend, path=folder, options=options)


def asking(store: Any, engine: str) -> Ask:
    """Asks the store for the best 10."""
    return lambda question: (store.lexical_search if is_lexical(engine) else store.search)(question, k=HITS)


def contents(engine: str, chunks: int) -> list[Content]:
    """What the engine is filled with."""
    return list(made_up.texts(chunks) if is_lexical(engine) else made_up.vectors(chunks))


def questions(engine: str, chunks: int) -> list[Content]:
    """What it is asked: words of a text like those stored, or vectors near them."""
    if not is_lexical(engine):
        return list(made_up.vectors(QUESTIONS, seed=8, of=chunks))
    draw = random.Random(8)
    return [" ".join(draw.sample(text.split(), QUESTION_WORDS)) for text in made_up.texts(QUESTIONS, seed=8)]


async def fill(engine: str, folder: Path, chunks: int) -> Figures:
    """Builds the index of all chunks."""
    content, first = contents(engine, chunks), questions(engine, chunks)[0]
    begun = time.perf_counter()
    async with opened(engine, folder) as store:
        for start in range(0, len(content), PAGE):
            await store.upsert([record(start + n, each) for n, each in enumerate(content[start : start + PAGE])])
        await asking(store, engine)(first)
        build_s = time.perf_counter() - begun
    return {"build_s": build_s, "disk_mb": disk_mb(folder)}


async def answer(engine: str, folder: Path, chunks: int) -> Figures:
    """Opens the index, asks it, then changes it."""
    asked = questions(engine, chunks)
    begun = time.perf_counter()
    async with opened(engine, folder) as store:
        ask = asking(store, engine)
        await ask(asked[0])
        open_s = time.perf_counter() - begun
        took, found = [], []
        for question in asked:
            begun = time.perf_counter()
            found.append([hit.chunk_id for hit in await ask(question)])
            took.append((time.perf_counter() - begun) * 1000)
        memory_mb = resident_mb()
        content = contents(engine, chunks)
        updates = [await update(store, ask, content, asked[turn], turn * 2 * CHANGED) for turn in range(UPDATES)]
        assert await store.count() == len(content) - UPDATES * CHANGED
    return {
        "open_s": open_s,
        "p50_ms": statistics.median(took),
        "p95_ms": statistics.quantiles(took, n=20)[-1],
        "update_ms": statistics.median(updates),
        "memory_mb": memory_mb,
        "found": found,
    }


async def update(store: Any, ask: Ask, content: Sequence[Content], question: Content, at: int) -> float:
    """Milliseconds for replacing 10 chunks, deleting the next 10, and the first answer after that."""
    replaced = [record(at + n, content[-1 - n]) for n in range(CHANGED)]
    deleted = [chunk_id(at + CHANGED + n) for n in range(CHANGED)]
    begun = time.perf_counter()
    await store.upsert(replaced)
    await store.delete(deleted)
    hits = await ask(question)
    took = (time.perf_counter() - begun) * 1000
    assert not {hit.chunk_id for hit in hits} & set(deleted)
    return took


def disk_mb(folder: Path) -> float:
    """What the files take up, which is less than their length where they have holes."""
    return sum(path.stat().st_blocks for path in folder.rglob("*")) * 512 / 1e6


def resident_mb() -> float:
    """The resident set of this process."""
    return int(re.findall(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))[0]) * 1024 / 1e6


def exact(chunks: int) -> list[set[str]]:
    """The ids of the nearest to each question."""
    scores = np.array(questions("faiss", chunks)) @ np.array(contents("faiss", chunks)).T
    nearest = np.argpartition(-scores, HITS, axis=1)[:, :HITS]
    return [set(map(chunk_id, row)) for row in nearest.tolist()]


def measured(engine: str, chunks: int) -> Figures:
    """The figures of one engine, from processes of its own."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as place:
        for step in ("fill", "answer"):
            command = [sys.executable, __file__, "--step", step, engine, f"{place}/index", str(chunks)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            figures |= json.loads(done.stdout)
    found = figures.pop("found")
    if not is_lexical(engine):
        figures["recall"] = statistics.mean(len(a & set(b)) / HITS for a, b in zip(exact(chunks), found, strict=True))
    return figures


def compared(engines: Sequence[str], chunks: int, rounds: int) -> Figures:
    """The medians of each engine's figures, and of their ratios to those of the first engine."""
    every = [{engine: measured(engine, chunks) for engine in engines} for _ in range(rounds)]
    result: Figures = {"chunks": chunks}
    for engine, name in itertools.product(engines, every[0][engines[0]]):
        figures = result.setdefault(engine, {"ratio": {}})
        figures[name] = round(statistics.median(one[engine][name] for one in every), 3)
        ratios = [one[engine][name] / one[engines[0]][name] for one in every]
        figures["ratio"][name] = round(statistics.median(ratios), 3)
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--vectors", type=int, default=20_000)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        step, engine, folder, chunks = chosen.step
        work = fill if step == "fill" else answer
        print(json.dumps(asyncio.run(work(engine, Path(folder), int(chunks)))))
        return
    there = [engine for engine in VECTOR_ENGINES if find_spec(EXTRAS.get(engine, "leadline"))]
    result = {
        "vectors": compared(there, chosen.vectors, chosen.rounds),
        "words": compared(WORD_ENGINES, chosen.texts, chosen.rounds),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
