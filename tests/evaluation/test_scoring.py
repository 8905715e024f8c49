"""From rankings to figures, and that bad rankings can't look good."""

import random

import pytest

from leadline.evaluation.datasets import Qrels
from leadline.evaluation.scoring import Figures, Run, compare, score_queries, source_ranking
from leadline.state import Document

QRELS = {f"q{n}": {f"d{n}": 1} for n in range(40)}
ALL = [f"d{n}" for n in range(40)]


def document(doc_id: str, *also_in: str) -> Document:
    """A ranked chunk of a source, with other sources of the same text."""
    metadata = {"doc_id": doc_id, "also_in": [{"doc_id": other} for other in also_in]}
    return Document(content="", metadata=metadata, score=0.0, source="bm25", rerank_score=0.0)


def means(runs: dict[str, Run], qrels: Qrels = QRELS) -> dict[str, Figures]:
    """The mean figures of each leg."""
    return compare(score_queries(runs, qrels, 100), [], seed=1)


def test_a_source_stands_where_its_best_chunk_does() -> None:
    """Later chunks of a source neither move it nor take places from others."""
    ranked = [document(doc_id) for doc_id in ("a", "b", "a", "c")]
    assert source_ranking(ranked, 10) == ["a", "b", "c"]
    assert source_ranking(ranked, 2) == ["a", "b"]


def test_sources_of_the_same_text_stand_together() -> None:
    """Fusion keeps one of them; the others were found as well, right after it."""
    ranked = [document("a", "x", "y"), document("y"), document("b")]
    assert source_ranking(ranked, 10) == ["a", "x", "y", "b"]


def test_figures_by_hand() -> None:
    """One query found at place 1 and one not found: every mean is a half."""
    figures = means({"bm25": {"q0": ["d0"], "q1": ["d7"]}}, {"q0": {"d0": 1}, "q1": {"d1": 1}})["bm25"]
    assert figures == {"nDCG@10": 0.5, "R@10": 0.5, "R@100": 0.5, "MRR": 0.5, "queries": 2}


def test_a_query_without_a_ranking_counts_as_nothing_found() -> None:
    """What broke is not left out of the mean."""
    figures = means({"bm25": {"q0": ["d0"]}}, {"q0": {"d0": 1}, "q1": {"d1": 1}})["bm25"]
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
    figures = means(runs)
    assert figures["perfect"]["nDCG@10"] == 1.0
    assert figures["random"]["nDCG@10"] < 0.3
    assert figures["constant"]["nDCG@10"] < 0.3


def test_the_difference_of_two_legs_is_paired() -> None:
    """A gain on a quarter of the questions: its mean, and an interval that comes from how the gain spreads alone."""
    other = {query: [f"d{query[1:]}"] if int(query[1:]) % 4 == 0 else [] for query in QRELS}
    leg = {query: [f"d{query[1:]}"] if int(query[1:]) % 4 in (0, 1) else [] for query in QRELS}
    found = compare(score_queries({"leg": leg, "other": other}, QRELS, 100), [("leg", "other")], seed=1)
    assert list(found) == ["leg", "other", "leg-other"]
    gain = found["leg-other"]
    assert (gain["nDCG@10"], gain["R@10"], gain["MRR"], gain["queries"]) == (0.25, 0.25, 0.25, 40)
    assert 0.08 < gain["nDCG@10 low"] < 0.25 < gain["nDCG@10 high"] < 0.42
    same = compare(score_queries({"leg": leg, "other": leg}, QRELS, 100), [("leg", "other")], seed=1)["leg-other"]
    assert (same["nDCG@10"], same["nDCG@10 low"], same["nDCG@10 high"]) == (0.0, 0.0, 0.0)


def test_a_loss_is_negative() -> None:
    """The other way round the same difference has the other sign, and the bounds change places."""
    rows = score_queries({"a": {query: [f"d{query[1:]}"] for query in QRELS if query > "q2"}, "b": {}}, QRELS, 100)
    found = compare(rows, [("a", "b"), ("b", "a")], seed=1)
    assert found["b-a"]["nDCG@10"] == -found["a-b"]["nDCG@10"] < 0
    assert found["b-a"]["nDCG@10 low"] == pytest.approx(-found["a-b"]["nDCG@10 high"])
