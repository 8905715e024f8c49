"""`leadline eval`: figures of retrieval and of abstention, as tables and as JSON."""

import json
import shutil
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
    assert list(legs)[:6] == ["vector", "bm25", "graph", "fused", "reranked", "blended"]
    assert list(legs)[6:] == ["reranked-fused", "blended-fused", "blended-reranked"]
    assert all({"nDCG@10", "R@10", "R@100", "MRR", "queries"} <= figures.keys() for figures in legs.values())
    assert legs["bm25"]["nDCG@10"] == 1.0
    table = leadline("eval", "retrieval", folder, "--data-dir", tmp_path / "data").out
    assert "bm25\t1.000\t1.000\t1.000\t1.000\t1" in table.splitlines()
    assert "difference\tnDCG@10\tnDCG@10 low\tnDCG@10 high\tR@10\tR@100\tMRR" in table.splitlines()
    assert "reranked-fused\t+0.000\t+0.000\t+0.000\t+0.000\t+0.000\t+0.000" in table.splitlines()


def test_sets_can_be_joined(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """With --joint each set is measured against the documents of all, and all questions together at the end."""
    other = shutil.copytree(folder, tmp_path / "other")
    done = leadline("eval", "retrieval", folder, other, "--joint", "--json")
    assert done.code == 0
    figures = json.loads(done.out)
    assert list(figures) == ["tiny", "other", "joint"]
    assert figures["joint"]["bm25"]["queries"] == 2


def test_abstention_has_its_figures(leadline: Any, folder: Path, tmp_path: Path) -> None:
    """The JSON is dataset → figure → value and interval, with the risk at each threshold; the tables show the same."""
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as queries:
        queries.write('{"_id": "u", "text": "who painted the ceiling", "metadata": {"answerable": false}}\n')
    done = leadline("eval", "abstention", folder, "--json", "--data-dir", tmp_path / "data")
    assert done.code == 0
    figures = json.loads(done.out)["tiny"]
    assert (figures["answerable"], figures["unanswerable"]) == (1, 1)
    assert figures["auroc"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert figures["accuracy_at_zero"]["value"] == 1.0
    zero = next(point for point in figures["risk_coverage"] if point["threshold"] == 0)
    assert zero == {"threshold": 0.0, "answered": 1, "coverage": 0.5, "risk": 0.0}
    table = leadline("eval", "abstention", folder, "--data-dir", tmp_path / "data").out
    assert table.splitlines()[0] == "tiny: 1 answerable and 1 unanswerable questions"
    assert "AUROC of the best logit\t1.000\t1.000\t1.000" in table.splitlines()
    assert "0\t1\t0.500\t0.000" in table.splitlines()


def test_a_set_of_one_kind_says_what_it_lacks(leadline: Any, folder: Path) -> None:
    """Without unanswerable questions there is no AUROC, and how to mark such questions is said."""
    done = leadline("eval", "abstention", folder)
    assert done.code == 0
    assert "AUROC" not in done.out
    assert "answerable, context all negative\t0.000" in done.out
    assert '"answerable": false' in done.out


@pytest.fixture
def answerable(folder: Path) -> Path:
    """The same with the right answer, and a question that has none."""
    queries = [
        {"_id": "q", "text": "what makes the tide rise", "answers": ["The moon"]},
        {"_id": "u", "text": "who painted the ceiling", "metadata": {"answerable": False}},
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries), encoding="utf-8")
    return folder


def test_whole_answers_have_their_figures(leadline: Any, answerable: Path, tmp_path: Path) -> None:
    """The JSON is dataset → variant → figures and gain; the table has a line for each variant."""
    done = leadline("eval", "answers", answerable, "--json", "--data-dir", tmp_path / "data")
    assert done.code == 0, done
    variants = json.loads(done.out)["tiny"]
    assert list(variants) == ["full", "loop off", "sign off", "web off"]
    figures = variants["full"]["figures"]
    assert (figures["answerable"], figures["unanswerable"], figures["failed"]) == (1, 1, 0)
    assert (figures["right"]["value"], figures["abstained_rightly"]["value"]) == (1.0, 1.0)
    assert (variants["full"]["full_gains"], variants["loop off"]["full_gains"]["value"]) == (None, 0.0)
    table = leadline("eval", "answers", answerable, "--no-ablation", "--data-dir", tmp_path / "data").out.splitlines()
    assert table[0] == "tiny: 1 answerable and 1 unanswerable questions"
    assert [line.split("\t")[0] for line in table[1:]] == ["", "full"]
    assert table[1].startswith("\tright\tF1\tcited rightly")


@pytest.mark.parametrize(
    ("bound", "code"),
    [("right=1", 0), ("abstained_wrongly=0", 0), ("failed=0", 0), ("wrong=0", 0), ("f1=1", 1), ("seconds=0.0001", 1)],
)
def test_a_figure_that_is_worse_than_it_may_be_is_exit_code_1(
    leadline: Any, answerable: Path, bound: str, code: int
) -> None:
    """Of some figures more is better, of some less."""
    done = leadline("eval", "answers", answerable, "--no-ablation", "--least", bound)
    assert done.code == code, done
    assert ("worse than" in done.err) == bool(code)


@pytest.mark.parametrize("bound", ["speed=1", "right", "right=much"])
def test_a_bound_that_is_none_is_bad_usage(leadline: Any, answerable: Path, bound: str) -> None:
    """What figures there are is said before anything is measured."""
    done = leadline("eval", "answers", answerable, "--least", bound)
    assert done.code == 2
    assert "--least" in done.err


def test_a_folder_that_is_no_dataset_is_one_clear_message(leadline: Any, tmp_path: Path) -> None:
    """Exit code 1 and the three files a dataset needs."""
    (tmp_path / "empty").mkdir()
    done = leadline("eval", "retrieval", tmp_path / "empty")
    assert done.code == 1
    assert "corpus.jsonl, queries.jsonl and qrels.tsv" in done.err
