"""Asking judged questions: the logit of the best passage, and whether it came from a relevant source."""

import json
from pathlib import Path

import pytest

from leadline.evaluation.datasets import Dataset, load_dataset
from leadline.evaluation.index import evaluation_library, take_in
from leadline.evaluation.questions import Judged, judge
from leadline.models import open_reranker

CORPUS = {
    "moon": "The moon pulls the sea twice a day, and the tide rises and falls.",
    "bread": "A loaf of rye bread needs a sour dough and a hot oven.",
    "crane": "A quay crane stops work when the wind is stronger than twenty metres per second.",
    "copy": "A quay crane stops work when the wind is stronger than twenty metres per second.",
}
QUERIES = {
    "tide": ("What makes the tide rise and fall?", True),
    "wind": ("When does a quay crane stop work?", True),
    "gale": ("Which wind stops the work of a quay crane?", True),
    "wrong": ("What does a loaf of rye bread need?", True),
    "nothing": ("Who won the chess tournament in Linares?", False),
}
QRELS = [("tide", "moon"), ("wind", "copy"), ("gale", "crane"), ("wrong", "moon")]


def write(folder: Path) -> Path:
    """A dataset folder; the question `wrong` is judged for a document that doesn't answer it."""
    folder.mkdir()
    corpus = [{"_id": name, "title": "", "text": text} for name, text in CORPUS.items()]
    queries = [
        {"_id": name, "text": text, "metadata": {"answerable": answerable}}
        for name, (text, answerable) in QUERIES.items()
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    rows = "".join(f"{query}\t{document}\t1\n" for query, document in QRELS)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows, encoding="utf-8")
    return folder


async def asked(dataset: Dataset) -> tuple[dict[str, Judged], list[tuple[str, int, int]]]:
    """What came of each question, over a new index of the dataset's documents; and the progress told."""
    seen: list[tuple[str, int, int]] = []
    async with evaluation_library(None) as (library, settings):
        collection = await library.collection("tiny", create=True)
        await take_in(collection, dataset, library.embedder, settings.chunk_tokens, lambda *_: None)
        reranker = open_reranker("embedded", library.embedder)
        judged = await judge(collection, reranker, dataset, progress=lambda *step: seen.append(step))
    return {one.query: one for one in judged}, seen


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Four documents, two of the same text, and five questions."""
    return load_dataset(write(tmp_path / "tiny"))


async def test_each_question_has_the_logit_of_its_best_passage(dataset: Dataset) -> None:
    """Answered questions score above zero, one about something else below; both kinds are asked and told apart."""
    judged, seen = await asked(dataset)
    assert list(judged) == ["tide", "wind", "gale", "wrong", "nothing"]
    assert [one.answerable for one in judged.values()] == [True, True, True, True, False]
    logits = {name: one.logit or 0.0 for name, one in judged.items()}
    assert min(logits[name] for name in ("tide", "wind", "gale", "wrong")) > 0 > logits["nothing"]
    assert seen[-1] == ("tiny: questions", 5, 5)


async def test_right_means_the_best_passage_is_of_a_judged_source(dataset: Dataset) -> None:
    """Of two sources with the same text either counts as judged; a good passage nobody judged relevant does not."""
    judged, _ = await asked(dataset)
    assert {name for name, one in judged.items() if one.right} == {"tide", "wind", "gale"}


async def test_where_nothing_is_there_nothing_is_scored(dataset: Dataset) -> None:
    """Over an empty index a question has no logit, rather than one that means something."""
    async with evaluation_library(None) as (library, _):
        collection = await library.collection("empty", create=True)
        judged = await judge(collection, open_reranker("embedded", library.embedder), dataset)
    assert {(one.logit, one.right) for one in judged} == {(None, False)}
