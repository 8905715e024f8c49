"""How retrieval grows with the collection, beside LangChain's EnsembleRetriever over Chroma and BM25.

Both sides hold the same made-up collection (see `scale_corpus.py`), are asked the same questions and give as many hits
a leg. Embedding isn't measured: both look their vectors up; nor is reranking, which the baseline doesn't do. For each
size and side one process builds the index and another opens it, answers, and then takes documents out and puts them
back. Prints one JSON object: for each size and side the milliseconds of a question (p50 and p95, and p50 of those that
name a person), the resident memory of the process that answered, in MiB, and the median milliseconds of adding and of
deleting a document of ten chunks; `ratio` is Leadline over the baseline; `growth` is the exponent of a power law
through the p50s.

Needs the extra `benchmarks`, and Linux for the memory. Usage: python benchmarks/scale.py [--sizes 1000,10000,100000]
[--keep DIR]; with --keep the indexes stay in DIR, and what is there isn't built again.
"""

import argparse
import asyncio
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import scale_corpus

SIDES = {"leadline": "scale_leadline", "langchain": "scale_langchain"}
WARM_UP = 5  # questions that aren't counted
CHANGED = 3  # documents deleted and put back
FIGURES = ("p50_ms", "named_p50_ms", "memory_mib", "add_ms", "delete_ms")


def build(side: str, folder: Path, source: Path) -> dict[str, float]:
    """Builds one side's index."""
    begun = time.perf_counter()
    asyncio.run(importlib.import_module(SIDES[side]).build(folder, source))
    return {"build_s": time.perf_counter() - begun}


async def answer(side: str, folder: Path, source: Path) -> dict[str, float]:
    """Opens one side's index, asks it all questions, and changes it."""
    begun = time.perf_counter()
    async with importlib.import_module(SIDES[side]).opened(folder, source) as collection:
        opened = time.perf_counter() - begun
        figures = {
            "open_s": opened,
            **await asked(collection, scale_corpus.questions(source)),
            "memory_mib": resident(),
        }
        documents = list(scale_corpus.documents(source, CHANGED))
        deleted = [await milliseconds(collection.delete(document)) for document in documents]
        added = [await milliseconds(collection.add([document])) for document in documents]
    return {**figures, "add_ms": statistics.median(added), "delete_ms": statistics.median(deleted)}


async def asked(collection: Any, questions: Sequence[scale_corpus.Question]) -> dict[str, float]:
    """How long the answers took; `recall` is the share of questions whose own text was among the first ten."""
    found = 0
    took: list[float] = []
    for number, question in enumerate(questions):
        begun = time.perf_counter()
        texts = await collection.ask(question)
        took.append((time.perf_counter() - begun) * 1000)
        found += question.about in texts[:10] if number >= WARM_UP else 0
    counted = sorted(took[WARM_UP:])
    named = [each for each, question in zip(took, questions, strict=True) if question.named]
    return {
        "p50_ms": statistics.median(counted),
        "p95_ms": counted[math.ceil(0.95 * len(counted)) - 1],
        "named_p50_ms": statistics.median(named),
        "recall": found / len(counted),
    }


async def milliseconds(work: Awaitable[object]) -> float:
    """How long `work` takes."""
    begun = time.perf_counter()
    await work
    return (time.perf_counter() - begun) * 1000


def resident() -> float:
    """The resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measured(place: Path, size: int) -> dict[str, Any]:
    """Both sides at one size, each in processes of its own."""
    source = place / f"source-{size}"
    if not source.exists():
        scale_corpus.write(source, size)
    figures: dict[str, Any] = {side: of_side(side, place / f"{side}-{size}", source) for side in SIDES}
    ratio = {name: figures["leadline"][name] / figures["langchain"][name] for name in FIGURES}
    return {**figures, "ratio": ratio}


def of_side(side: str, folder: Path, source: Path) -> dict[str, float]:
    """One side at one size; its index is built where there is none."""
    built = {} if folder.exists() else child("build", side, folder, source)
    return {**built, **child("answer", side, folder, source)}


def child(*words: str | Path) -> dict[str, float]:
    """What another process of this program measured."""
    command = [sys.executable, __file__, "--child", *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Of the power law nearest to the values, by least squares of the logarithms."""
    return statistics.linear_regression(list(map(math.log, sizes)), list(map(math.log, values))).slope


def main(sizes: Sequence[int], place: Path) -> None:
    """Measures and prints."""
    place.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {str(size): measured(place, size) for size in sizes}
    if len(sizes) > 1:
        p50s = {side: [figures[str(size)][side]["p50_ms"] for size in sizes] for side in SIDES}
        figures["growth"] = {side: exponent(sizes, values) for side, values in p50s.items()}
    print(json.dumps(figures))


def in_child(step: str, side: str, folder: str, source: str) -> None:
    """One step of one side, in a process of its own."""
    place, made = Path(folder), Path(source)
    print(json.dumps(build(side, place, made) if step == "build" else asyncio.run(answer(side, place, made))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        in_child(*sys.argv[2:])
    else:
        parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
        parser.add_argument("--sizes", default="1000,10000,100000")
        parser.add_argument("--keep", type=Path)
        given = parser.parse_args()
        with tempfile.TemporaryDirectory() as temporary:
            main([int(size) for size in given.sizes.split(",")], given.keep or Path(temporary))
