"""Measuring retrieval end to end on small collections, with the real stores and models."""

import json
import os
from pathlib import Path

import pytest

from leadline.config import Settings, load_settings
from leadline.errors import DatasetError
from leadline.evaluation.datasets import CorpusDocument
from leadline.evaluation.index import draft_of
from leadline.evaluation.runner import evaluate_retrieval
from leadline.models import open_embedder

SHARED = Path(os.environ.get("LEADLINE_SHARED", Path(__file__).parents[3] / "shared"))
LEGS = {"vector", "bm25", "graph", "fused", "reranked"}
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection of four documents and three questions."""
    place = tmp_path / "tiny"
    place.mkdir()
    corpus = [{"_id": name, "title": title, "text": text} for name, (title, text) in TEXTS.items()]
    queries = [{"_id": query, "text": text} for query, (text, _) in QUESTIONS.items()]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    rows = "".join(f"{query}\t{document}\t1\n" for query, (_, document) in QUESTIONS.items())
    (place / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows, encoding="utf-8")
    return place


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a data folder of its own."""
    return load_settings(data_dir=tmp_path / "data")


async def test_every_leg_is_measured(folder: Path) -> None:
    """All legs, the fused and the reranked order have figures; easy questions are found at the first place."""
    seen: list[tuple[str, int, int]] = []
    report = await evaluate_retrieval([folder], progress=lambda *step: seen.append(step))
    assert report.keys() == {"tiny"}
    assert report["tiny"].keys() == LEGS
    for leg in ("vector", "bm25", "fused", "reranked"):
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


def test_a_document_is_cut_like_a_file() -> None:
    """The title is a heading: searched with every chunk, shown with none; the text is whole."""
    text = " ".join(f"Sentence number {n} says something of its own." for n in range(120))
    draft = draft_of(CorpusDocument("d", "The title", text), "set", open_embedder("embedded"), 200)
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
