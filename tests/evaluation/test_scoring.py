"""From rankings to figures, and that bad rankings can't look good."""

import random

from leadline.evaluation.scoring import score_runs, source_ranking
from leadline.state import Document

QRELS = {f"q{n}": {f"d{n}": 1} for n in range(40)}
ALL = [f"d{n}" for n in range(40)]


def document(doc_id: str) -> Document:
    """A ranked chunk of a source."""
    return Document(content="", metadata={"doc_id": doc_id}, score=0.0, source="bm25", rerank_score=0.0)


def test_a_source_stands_where_its_best_chunk_does() -> None:
    """Later chunks of a source neither move it nor take places from others."""
    ranked = [document(doc_id) for doc_id in ("a", "b", "a", "c")]
    assert source_ranking(ranked, 10) == ["a", "b", "c"]
    assert source_ranking(ranked, 2) == ["a", "b"]


def test_figures_by_hand() -> None:
    """One query found at place 1 and one not found: every mean is a half."""
    figures = score_runs({"bm25": {"q0": ["d0"], "q1": ["d7"]}}, {"q0": {"d0": 1}, "q1": {"d1": 1}}, 100)["bm25"]
    assert figures == {"nDCG@10": 0.5, "R@10": 0.5, "R@100": 0.5, "MRR": 0.5, "queries": 2}


def test_a_query_without_a_ranking_counts_as_nothing_found() -> None:
    """What broke is not left out of the mean."""
    figures = score_runs({"bm25": {"q0": ["d0"]}}, {"q0": {"d0": 1}, "q1": {"d1": 1}}, 100)["bm25"]
    assert figures["nDCG@10"] == 0.5
    assert figures["queries"] == 2


def test_random_and_constant_rankings_score_low() -> None:
    """A search that ignores the question can't pass for a good one."""
    shuffled = random.Random(1)
    runs = {
        "perfect": {query: [f"d{query[1:]}"] for query in QRELS},
        "random": {query: shuffled.sample(ALL, 40) for query in QRELS},
        "constant": dict.fromkeys(QRELS, ALL),
    }
    figures = score_runs(runs, QRELS, 100)
    assert figures["perfect"]["nDCG@10"] == 1.0
    assert figures["random"]["nDCG@10"] < 0.3
    assert figures["constant"]["nDCG@10"] < 0.3
