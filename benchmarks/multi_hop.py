"""What the loop adds to one pass: `python benchmarks/multi_hop.py DIR… [--sample N] [--seconds S] [--data-dir DIR]`.

Each question goes through the graph, without an LLM and without the web, and the order of the passages after its first
pass is held against the one that the writer is given in the end: the share of the relevant sources among the first ten
(R@10), the share of questions with all of them there (all@10), and nDCG@10. Differences have 95 % intervals by a paired
bootstrap over the questions. No answer is written: a run is left where its writer would begin. After `--seconds` the
questions asked until then are reported.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.messages import HumanMessage

from leadline.config import RunContext, Settings, load_settings
from leadline.evaluation.datasets import Dataset, load_datasets
from leadline.evaluation.index import evaluation_library, source_id, take_in
from leadline.evaluation.metrics import ndcg, recall
from leadline.evaluation.scoring import source_ranking
from leadline.evaluation.statistics import bootstrap, mean
from leadline.graph.build import build_graph
from leadline.graph.opening import dependencies
from leadline.graph.run import recursion_limit
from leadline.records import Document

DEPTH = 10
SEED = 13


async def ranked(graph: Any, question: str, context: RunContext) -> tuple[list[Document], list[Document], float, float]:
    """The passages after the first pass and at the end, and when that was, in seconds from the start."""
    orders: list[tuple[list[Document], float]] = []
    begun = time.perf_counter()
    given = {"messages": [HumanMessage(question)]}
    parts = graph.astream(given, {"recursion_limit": recursion_limit(context)}, context=context, stream_mode="updates")
    async with aclosing(parts):
        async for part in parts:
            if "reranker" in part:
                found = (part["reranker"] or {}).get("documents", [])
                orders.append((found, time.perf_counter() - begun))
            if "compressor" in part or part.get("reflection", {}).get("status"):
                break
    first, last = orders[0] if orders else ([], 0.0), orders[-1] if orders else ([], 0.0)
    return first[0], last[0], first[1], last[1]


def figures(documents: Sequence[Document], grades: Mapping[str, int]) -> dict[str, float]:
    """Those of one question."""
    sources = source_ranking(documents, DEPTH)
    share = recall(sources, grades, DEPTH)
    return {f"R@{DEPTH}": share, f"all@{DEPTH}": float(share == 1), f"nDCG@{DEPTH}": ndcg(sources, grades, DEPTH)}


async def measure(dataset: Dataset, settings: Settings | None, limit_s: float) -> dict[str, Any]:
    """The figures of one set."""
    async with evaluation_library(settings) as (library, at):
        collection = await library.collection(dataset.name, create=True)
        await take_in(collection, dataset, library.embedder, at.chunk_tokens, lambda *_: None)
        graph = build_graph(dependencies(at, library)).compile()
        context = RunContext(collection=dataset.name, web="never")
        await ranked(graph, "What is there?", context)  # loads the models
        rows: dict[str, list[dict[str, float]]] = {"one pass": [], "loop": []}
        seconds, more, begun = [], 0, time.perf_counter()
        for query, text in dataset.queries.items():
            first, last, at_first, at_last = await ranked(graph, text, context)
            grades = {source_id(dataset.name, dataset.name, d): grade for d, grade in dataset.qrels[query].items()}
            rows["one pass"].append(figures(first, grades))
            rows["loop"].append(figures(last, grades))
            seconds.append((at_first, at_last))
            more += at_last > at_first
            if time.perf_counter() - begun > limit_s:
                break
    return report(rows, seconds, more)


def report(rows: Mapping[str, Sequence[Mapping[str, float]]], seconds: Any, more: int) -> dict[str, Any]:
    """Means, differences with their intervals, and how much longer the loop took."""
    one, loop = rows["one pass"], rows["loop"]
    differences = {}
    for name in one[0]:
        values = np.array([b[name] - a[name] for a, b in zip(one, loop, strict=True)])
        differences[name] = bootstrap(mean(values), [len(values)], seed=SEED)
    times = np.array(seconds)
    return {
        "questions": len(one),
        "searched again": more,
        **{way: {name: float(np.mean([row[name] for row in of])) for name in of[0]} for way, of in rows.items()},
        "loop - one pass": differences,
        "time, loop : one pass": float(times[:, 1].sum() / times[:, 0].sum()),
    }


async def main() -> None:
    """One JSON object, set by set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    settings = load_settings(data_dir=options.data_dir) if options.data_dir else None
    for dataset in load_datasets(options.folders):
        asked = dataset if options.sample is None else dataset.sampled(options.sample, seed=SEED)
        print(json.dumps({asked.name: await measure(asked, settings, options.seconds)}, indent=1), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
