"""From judged questions to the figures of abstention, by hand and end to end with the real stores and models."""

import json
from pathlib import Path

import pytest

from leadline.config import load_settings
from leadline.errors import DatasetError
from leadline.evaluation.abstention import abstention_figures, evaluate_abstention
from leadline.evaluation.questions import Judged

TEXTS = {
    "moon": "The moon pulls the sea twice a day, and the tide rises and falls.",
    "bread": "A loaf of rye bread needs a sour dough and a hot oven.",
    "crane": "A quay crane stops work when the wind is stronger than twenty metres per second.",
}
ANSWERABLE = {
    "q1": ("What makes the tide rise and fall?", "moon"),
    "q2": ("When does a quay crane stop work?", "crane"),
    "q3": ("What does a loaf of rye bread need?", "bread"),
}
UNANSWERABLE = {"u1": "Who won the chess tournament in Linares?", "u2": "How many planets orbit Kepler-90?"}


def write(folder: Path, *, unanswerable: dict[str, str] = UNANSWERABLE) -> Path:
    """A dataset folder of three documents."""
    folder.mkdir()
    corpus = [{"_id": name, "title": "", "text": text} for name, text in TEXTS.items()]
    queries: list[dict[str, object]] = [{"_id": name, "text": text} for name, (text, _) in ANSWERABLE.items()]
    queries += [{"_id": name, "text": text, "metadata": {"answerable": False}} for name, text in unanswerable.items()]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    rows = "".join(f"{name}\t{document}\t1\n" for name, (_, document) in ANSWERABLE.items())
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows, encoding="utf-8")
    return folder


def yes(logit: float | None, *, right: bool = True) -> Judged:
    """An answerable question."""
    return Judged("q", True, logit, right)


def no(logit: float | None) -> Judged:
    """An unanswerable one."""
    return Judged("u", False, logit, right=False)


def test_figures_by_hand() -> None:
    """Four answerable and four unanswerable questions, one of either with nothing found."""
    judged = [no(1.0), yes(3.0), no(None), yes(2.0), yes(-1.0, right=False), no(-2.0), yes(None, right=False), no(-0.5)]
    figures = abstention_figures(judged, reranker="r", seed=1)
    values = {name: estimate["value"] for name, estimate in figures.items() if isinstance(estimate, dict)}
    # Of the 16 pairs 4 + 4 of the two above, -1.0 beats -2.0 and nothing found, nothing found ties with nothing found.
    assert values == {
        "auroc": pytest.approx((4 + 4 + 2 + 0.5) / 16),
        "accuracy_at_zero": 5 / 8,
        "answerable_all_negative": 2 / 4,
        "unanswerable_all_negative": 3 / 4,
        "aurc": pytest.approx((0 + 0 + 1 / 3 + 2 / 4 + 3 / 5 + 4 / 6 + 2 * 6 / 8) / 8),
    }
    assert (figures["reranker"], figures["answerable"], figures["unanswerable"]) == ("r", 4, 4)


def test_risk_and_coverage_by_hand() -> None:
    """The highest threshold comes first, zero is among them, and a question with nothing found is never answered."""
    figures = abstention_figures([yes(3.0), yes(1.0, right=False), no(-1.0), no(None)], reranker="r", seed=1)
    assert figures["risk_coverage"] == [
        {"threshold": 3.0, "answered": 1, "coverage": 0.25, "risk": 0.0},
        {"threshold": 1.0, "answered": 2, "coverage": 0.5, "risk": 0.5},
        {"threshold": 0.0, "answered": 2, "coverage": 0.5, "risk": 0.5},
        {"threshold": -1.0, "answered": 3, "coverage": 0.75, "risk": pytest.approx(2 / 3)},
    ]


def test_where_nothing_is_answered_there_is_no_risk() -> None:
    """A share of none is no number, and must not look like a risk of 0."""
    assert abstention_figures([yes(None, right=False), no(None)], reranker="r", seed=1)["risk_coverage"] == [
        {"threshold": 0.0, "answered": 0, "coverage": 0.0, "risk": None}
    ]


@pytest.mark.parametrize(
    ("judged", "lacking"),
    [
        ([yes(1.0), yes(-1.0)], {"auroc", "accuracy_at_zero", "unanswerable_all_negative"}),
        ([no(1.0), no(-1.0)], {"auroc", "accuracy_at_zero", "answerable_all_negative"}),
    ],
)
def test_one_kind_alone_gives_what_it_can(judged: list[Judged], lacking: set[str]) -> None:
    """What compares the two kinds is left out, not made up; the rest is there."""
    figures = abstention_figures(judged, reranker="r", seed=1)
    assert {name for name, value in figures.items() if value is None} == lacking


def test_figures_that_mean_nothing_look_so() -> None:
    """Logits that know nothing of the question: AUROC near a half, and an interval that holds it."""
    judged = [one for n in range(200) for one in (yes(float(n * 37 % 200) - 99.5), no(float(n * 53 % 200) - 99.5))]
    found = abstention_figures(judged, reranker="r", seed=1)["auroc"]
    assert found is not None
    assert found["value"] == pytest.approx(0.5, abs=0.02)
    assert found["low"] < 0.5 < found["high"]


async def test_a_dataset_is_measured(tmp_path: Path) -> None:
    """Easy questions and absurd ones are told apart without a mistake, over the product's own search."""
    seen: list[tuple[str, int, int]] = []
    report = await evaluate_abstention([write(tmp_path / "tiny")], progress=lambda *step: seen.append(step))
    figures = report["tiny"]
    assert (figures["answerable"], figures["unanswerable"]) == (3, 2)
    assert figures["auroc"] is not None
    assert figures["auroc"]["value"] == 1.0
    assert figures["answerable_all_negative"] is not None
    assert figures["answerable_all_negative"]["value"] == 0.0
    assert figures["unanswerable_all_negative"] is not None
    assert figures["unanswerable_all_negative"]["value"] == 1.0
    assert [point["risk"] for point in figures["risk_coverage"] if point["threshold"] == 0] == [0.0]
    assert seen[-1] == ("tiny: questions", 5, 5)


async def test_a_sample_has_as_many_of_either_kind(tmp_path: Path) -> None:
    """Over a kept index a second run gives the same; the sample is of answerable and of unanswerable questions."""
    settings, folder = load_settings(data_dir=tmp_path / "data"), write(tmp_path / "tiny")
    first = await evaluate_abstention([folder], settings=settings, sample=2)
    assert (first["tiny"]["answerable"], first["tiny"]["unanswerable"]) == (2, 2)
    assert await evaluate_abstention([folder], settings=settings, sample=2) == first


async def test_a_bad_folder_stops_before_anything_is_built(tmp_path: Path) -> None:
    """One wrong folder among several costs no work on the others."""
    seen: list[str] = []
    with pytest.raises(DatasetError):
        await evaluate_abstention(
            [write(tmp_path / "tiny"), tmp_path / "nowhere"], progress=lambda task, *_: seen.append(task)
        )
    assert seen == []
