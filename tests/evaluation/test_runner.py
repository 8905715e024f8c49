"""Measuring retrieval end to end on small collections, with the real stores and models."""

import json
import os
from itertools import product
from pathlib import Path

import pytest

from leadline.config import Settings, load_settings
from leadline.errors import DatasetError
from leadline.evaluation.datasets import CorpusDocument
from leadline.evaluation.index import draft_of
from leadline.evaluation.runner import evaluate_retrieval
from leadline.models import open_embedder

SHARED = Path(os.environ.get("LEADLINE_SHARED", Path(__file__).parents[3] / "shared"))
LEGS = ["vector", "bm25", "graph", "fused", "reranked", "blended"]
DIFFERENCES = ["reranked-fused", "blended-fused", "blended-reranked"]
TEXTS = {
    "moon": ("Tides", "The moon pulls the sea twice a day, and the tide rises and falls."),
    "bread": ("Baking", "A loaf of rye bread needs a sour dough and a hot oven."),
    "crane": ("Cranes", "A quay crane stops work when the wind is stronger than twenty metres per second."),
    "glass": ("", "Window glass is made from molten sand, soda and lime."),
}
QUESTIONS = {
    "q1": ("What makes the tide rise?", "moon"),
    "q2": ("When does a quay crane stop?", "crane"),
    "q3": ("How is window glass made?", "glass"),
}


OTHERS = {
    "moon": ("Months", "A lunar month lasts twenty-nine and a half days."),
    "glass": ("", "Window glass is made from molten sand, soda and lime."),  # word for word in the first collection
}
OTHER_QUESTIONS = {"q1": ("How long does a lunar month last?", "moon"), "q2": ("What makes window glass?", "glass")}


def write(place: Path, texts: dict[str, tuple[str, str]], questions: dict[str, tuple[str, str]]) -> Path:
    """A dataset folder."""
    place.mkdir()
    corpus = [{"_id": name, "title": title, "text": text} for name, (title, text) in texts.items()]
    queries = [{"_id": query, "text": text} for query, (text, _) in questions.items()]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    rows = "".join(f"{query}\t{document}\t1\n" for query, (_, document) in questions.items())
    (place / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows, encoding="utf-8")
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection of four documents and three questions."""
    return write(tmp_path / "tiny", TEXTS, QUESTIONS)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another one, with the same ids and one document of the same text."""
    return write(tmp_path / "other", OTHERS, OTHER_QUESTIONS)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a data folder of its own."""
    return load_settings(data_dir=tmp_path / "data")


async def test_every_leg_is_measured(folder: Path) -> None:
    """Every leg and every order made of them has figures; easy questions are found at the first place."""
    seen: list[tuple[str, int, int]] = []
    report = await evaluate_retrieval([folder], progress=lambda *step: seen.append(step))
    assert report.keys() == {"tiny"}
    assert list(report["tiny"]) == [*LEGS, *DIFFERENCES]
    for leg in ("vector", "bm25", "fused", "reranked", "blended"):
        assert report["tiny"][leg]["nDCG@10"] == 1.0, leg
        assert report["tiny"][leg]["queries"] == 3
    assert seen[-1] == ("tiny: questions", 3, 3)


async def test_a_kept_index_gives_the_same_figures_again(folder: Path, settings: Settings) -> None:
    """A second run over the same data folder changes nothing in it and measures the same."""
    first = await evaluate_retrieval([folder], settings=settings)
    assert await evaluate_retrieval([folder], settings=settings) == first


async def test_two_datasets_of_one_name_are_refused(folder: Path) -> None:
    """They would share one collection and mix their documents."""
    with pytest.raises(DatasetError, match="same name"):
        await evaluate_retrieval([folder, folder])


async def test_joint_questions_are_asked_against_all_documents(folder: Path, other: Path) -> None:
    """Equal ids of two sets stay apart, a text that both hold counts for both, and the mean goes over all questions."""
    report = await evaluate_retrieval([folder, other], joint=True)
    assert list(report) == ["tiny", "other", "joint"]
    assert [report[name]["fused"]["queries"] for name in report] == [3, 2, 5]
    for leg in LEGS:
        mean = (3 * report["tiny"][leg]["nDCG@10"] + 2 * report["other"][leg]["nDCG@10"]) / 5
        assert report["joint"][leg]["nDCG@10"] == pytest.approx(mean)
    for name, leg in product(("tiny", "other"), ("vector", "bm25", "fused", "reranked", "blended")):
        assert report[name][leg]["R@10"] == 1.0, (name, leg)
    # Two sources hold the very words: whichever comes first, one of the two sets has its own at the second place.
    assert report["joint"]["fused"]["MRR"] == pytest.approx((4 + 1 / 2) / 5)


async def test_a_joint_index_keeps_out_of_the_single_ones(folder: Path, other: Path, settings: Settings) -> None:
    """In one data folder the sets alone and joined are measured as in folders of their own, in any order."""
    alone, joined = await evaluate_retrieval([other]), await evaluate_retrieval([folder, other], joint=True)
    assert await evaluate_retrieval([other], settings=settings) == alone
    assert await evaluate_retrieval([folder, other], joint=True, settings=settings) == joined
    assert await evaluate_retrieval([other], settings=settings) == alone


async def test_a_set_named_as_the_joint_figures_is_refused(tmp_path: Path, folder: Path) -> None:
    """Its figures would be overwritten by those over all sets."""
    named = write(tmp_path / "joint", OTHERS, OTHER_QUESTIONS)
    with pytest.raises(DatasetError, match="named joint"):
        await evaluate_retrieval([folder, named], joint=True)


async def test_questions_without_an_answer_alone_are_refused(tmp_path: Path) -> None:
    """There is nothing to rank for them, and a mean over no question is no figure."""
    place = write(tmp_path / "empty", TEXTS, {})
    (place / "queries.jsonl").write_text('{"_id": "u", "text": "who", "metadata": {"answerable": false}}\n')
    with pytest.raises(DatasetError, match="empty: no query is judged"):
        await evaluate_retrieval([place])


def test_a_document_is_cut_like_a_file() -> None:
    """The title is a heading: searched with every chunk, shown with none; the text is whole."""
    text = " ".join(f"Sentence number {n} says something of its own." for n in range(120))
    draft = draft_of(CorpusDocument("d", "The title", text), "set/d", open_embedder("embedded"), 200)
    assert len(draft.chunks) > 1
    assert all(chunk.embedded_text.startswith("The title") for chunk in draft.chunks)
    assert " ".join(chunk.text for chunk in draft.chunks) == text
    assert draft.doc_id == "set/d"


@pytest.mark.skipif(not (SHARED / "data" / "adi").is_dir(), reason="needs data/adi under LEADLINE_SHARED")
async def test_a_real_collection_is_near_its_published_figures() -> None:
    """On 82 judged abstracts keyword search comes near a reference BM25 (nDCG@10 0.494, recall@100 0.910)."""
    report = await evaluate_retrieval([SHARED / "data" / "adi"], rerank_depth=1)
    assert report["adi"]["bm25"]["nDCG@10"] > 0.42
    assert report["adi"]["bm25"]["R@100"] > 0.85
    assert report["adi"]["fused"]["nDCG@10"] > 0.42
