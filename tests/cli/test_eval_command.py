"""`leadline eval retrieval`: figures for each leg, as a table and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection of two documents and one question."""
    place = tmp_path / "tiny"
    place.mkdir()
    corpus = [
        {"_id": "moon", "title": "Tides", "text": "The moon pulls the sea, and the tide rises."},
        {"_id": "bread", "title": "Baking", "text": "Rye bread needs a sour dough and a hot oven."},
    ]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus), encoding="utf-8")
    (place / "queries.jsonl").write_text('{"_id": "q", "text": "what makes the tide rise"}\n', encoding="utf-8")
    (place / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tmoon\t1\n", encoding="utf-8")
    return place


def test_every_leg_has_its_figures(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """The JSON is dataset → leg → figures; with --data-dir a second run is made over the same index."""
    done = leadline("eval", "retrieval", folder, "--json", "--data-dir", tmp_path / "data")
    assert done.code == 0
    legs = json.loads(done.out)["tiny"]
    assert list(legs) == ["vector", "bm25", "graph", "fused", "reranked"]
    assert {"nDCG@10", "R@10", "R@100", "MRR"} <= legs["bm25"].keys()
    assert legs["bm25"]["nDCG@10"] == 1.0
    table = leadline("eval", "retrieval", folder, "--data-dir", tmp_path / "data").out
    assert "bm25\t1.000\t1.000\t1.000\t1.000\t1" in table.splitlines()


def test_a_folder_that_is_no_dataset_is_one_clear_message(leadline: Any, tmp_path: Path) -> None:
    """Exit code 1 and the three files a dataset needs."""
    (tmp_path / "empty").mkdir()
    done = leadline("eval", "retrieval", tmp_path / "empty")
    assert done.code == 1
    assert "corpus.jsonl, queries.jsonl and qrels.tsv" in done.err
