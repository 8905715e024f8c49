"""`leadline calibrate` over real documents, and what it changes: stats, and whether a question is answered."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from fastapi.testclient import TestClient

from leadline.api.app import create_app
from leadline.calibration import Calibration, Point
from leadline.config import Settings, load_settings
from leadline.graph.run import open_app
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

KEEPERS = (
    *("Aldo Brandt", "Berit Coll", "Carl Dunne", "Dora Evans", "Emil Falk", "Fritz Gale", "Greta Holm", "Hugo Ince"),
    *("Ida Jansen", "Jonas Kerr", "Karin Lund", "Lars Moen", "Mina Nord", "Nils Orr", "Olga Pike", "Per Quist"),
    *("Rita Rowe", "Sven Stein", "Tora Udal", "Ulf Vane", "Vera West", "Willy Yates", "Xenia Zorn", "Yngve Ash"),
)
PLACES = ("lighthouse", "boathouse", "net loft", "rope walk", "slipway", "signal mast", "chart room", "ice cellar")
QUESTION = "Who looks after the lighthouse of harbour number 1?"


def note(number: int) -> str:
    """What document `number` says."""
    place = PLACES[number % len(PLACES)]
    return (
        f"# Harbour number {number + 1}\n\nThe {place} of harbour number {number + 1} is looked after by "
        f"{KEEPERS[number]}. It was painted white in {1900 + number} and is open to visitors in summer.\n"
    )


def write_questions(
    folder: Path, answerable: Sequence[int], unanswerable: int, judged: str = "harbour-{:02}.md"
) -> Path:
    """A folder that asks about so many of the documents, and so many questions that none of them answers."""
    folder.mkdir()
    rows: list[dict[str, Any]] = [
        {"_id": f"a{n}", "text": f"Who looks after the {PLACES[n % len(PLACES)]} of harbour number {n + 1}?"}
        for n in answerable
    ]
    topics = ("violin sonatas", "rye bread", "tax returns", "football cups", "glaciers", "tea ceremonies")
    rows += [
        {
            "_id": f"u{n}",
            "text": f"What did {KEEPERS[n % 24].split()[0]} write about {topics[n % len(topics)]}?",
            "metadata": {"answerable": False},
        }
        for n in range(unanswerable)
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judgements = "".join(f"a{n}\t{judged.format(n)}\t1\n" for n in answerable)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judgements, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def notes_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a note about each harbour. Copy it before changing it."""
    folder = tmp_path_factory.mktemp("harbours")
    (folder / "notes").mkdir()
    for number in range(len(KEEPERS)):
        (folder / "notes" / f"harbour-{number:02}.md").write_text(note(number), encoding="utf-8")

    async def take_in() -> None:
        settings = Settings(data_dir=folder / "data")
        async with open_library(settings) as library:
            await ingest_paths(await library.collection(), [folder / "notes"], settings)

    asyncio.run(take_in())
    return folder / "data"


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harbour in question is among the first of a leg; the more are scored, the longer a calibration takes."""
    monkeypatch.setenv("LEADLINE_RUN__TOP_K", "4")


@pytest.fixture
def data(notes_once: Path, tmp_path: Path) -> Path:
    """A copy of the data folder."""
    return shutil.copytree(notes_once, tmp_path / "data")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A question a harbour, and as many that no note answers."""
    return write_questions(tmp_path / "judged", range(24), 24)


def test_questions_about_documents_that_are_there(leadline: Any, data: Path, questions: Path, tmp_path: Path) -> None:
    """The zero point is kept with the collection, shown in stats until it is cleared, and parts the two kinds."""
    place = ("--data-dir", data)
    assert json.loads(leadline("stats", *place, "--json").out)["default"]["calibration"]["basis"] == "none"
    done = leadline("calibrate", questions, "--plot", tmp_path / "curve.svg", *place, "--json")
    assert done.code == 0, done.err
    made = json.loads(done.out)
    assert (made["collection"], made["questions"], made["answerable"], made["unanswerable"]) == ("default", 48, 24, 24)
    _, answered, wrong = made["curve"][-1]  # all are answered, so half of them, and who has the wrong source, are wrong
    assert (answered, wrong) in [(48, 24), (48, 25)]
    assert made["risk"] < wrong / answered
    assert made["doubts"] == []
    assert ElementTree.parse(tmp_path / "curve.svg").getroot().tag.endswith("svg")

    stats = json.loads(leadline("stats", *place, "--json").out)["default"]["calibration"]
    assert stats == {key: made[key] for key in stats}
    shown = leadline("stats", *place).out
    assert f"zero point\t{made['zero_point']:+.3f}" in shown
    assert "from 48 questions, 24 of them unanswerable, of judged" in shown

    cleared = leadline("calibrate", "--clear", *place)
    assert (cleared.code, made["reranker"] in cleared.out) == (0, True)
    assert "zero point" not in leadline("stats", *place).out
    assert "has no calibration" in leadline("calibrate", "--clear", *place).out


def test_a_folder_with_a_corpus_has_a_collection_of_its_own(leadline: Any, questions: Path, tmp_path: Path) -> None:
    """Its documents are taken in under its name; a sample keeps the share of unanswerable questions."""
    corpus = [{"_id": f"harbour-{n:02}.md", "title": "", "text": note(n)} for n in range(24)]
    (questions / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus), encoding="utf-8")
    place = ("--data-dir", tmp_path / "new")
    made = json.loads(leadline("calibrate", questions, "--sample", "40", *place, "--json").out)
    assert (made["collection"], made["answerable"], made["unanswerable"]) == ("judged", 20, 20)
    stats = json.loads(leadline("stats", *place, "--json").out)
    assert (stats["judged"]["sources"], stats["judged"]["calibration"]["basis"]) == (24, "calibrated")
    assert stats["default"]["calibration"]["basis"] == "none"


def test_too_few_questions_are_refused_and_change_nothing(leadline: Any, data: Path, tmp_path: Path) -> None:
    """Exit code 1, how many it takes, and the calibration from before stays."""
    keep(data, calibration(1.5))
    before = leadline("stats", "--data-dir", data).out
    assert "zero point\t+1.500" in before
    for name, answerable, unanswerable in (("few", 19, 24), ("none", 0, 24)):
        done = leadline(
            "calibrate", write_questions(tmp_path / name, range(answerable), unanswerable), "--data-dir", data
        )
        assert done.code == 1
        assert f"{answerable} questions are judged to have an answer" in done.err
        assert "at least 20" in done.err
    assert leadline("stats", "--data-dir", data).out == before


def test_questions_about_other_documents_are_refused(leadline: Any, data: Path, tmp_path: Path) -> None:
    """Exit code 1, naming what isn't there: judgements of something else would calibrate nothing."""
    done = leadline("calibrate", write_questions(tmp_path / "other", range(24), 0, "port-{}.md"), "--data-dir", data)
    assert done.code == 1
    assert "24 judged documents are not in the collection default: port-0.md, port-1.md, port-10.md, …" in done.err


def test_what_is_asked_for_wrongly_is_bad_usage(leadline: Any, data: Path, questions: Path) -> None:
    """No folder, or a picture that is none: exit code 2, before any question is asked."""
    assert leadline("calibrate", "--data-dir", data).code == 2
    done = leadline("calibrate", questions, "--plot", "curve.bmp", "--data-dir", data)
    assert (done.code, ".svg or .png" in done.err) == (2, True)
    assert "questions:" not in done.err


def test_only_answerable_questions_leave_a_doubt(leadline: Any, data: Path, tmp_path: Path) -> None:
    """A calibration is made and its curve told as a table, and it is said what its risk doesn't tell."""
    done = leadline("calibrate", write_questions(tmp_path / "half", range(20), 0), "--data-dir", data)
    assert done.code == 0
    assert "answered\tof all\tthreshold\twrong\tshare\t95% interval" in done.out.splitlines()
    assert "0 of the questions are unanswerable" in done.out


def test_the_largest_share_of_wrong_moves_the_zero_point(
    leadline: Any, data: Path, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With LEADLINE_MAX_WRONG the zero point is that of the curve; without a calibration every answer says so."""
    monkeypatch.setenv("LEADLINE_MAX_WRONG", "0.3")
    result = json.loads(leadline("ask", QUESTION, "--data-dir", data, "--json").out)
    assert result["degraded"] == ["calibration"]
    assert "no calibration for this reranker" in leadline("stats", "--data-dir", data).out
    made = json.loads(leadline("calibrate", questions, "--data-dir", data, "--json").out)
    assert made["basis"] == "assured"
    assert made["risk_interval"][1] <= 0.3
    assert made["zero_point"] in [threshold for threshold, _, _ in made["curve"]]
    assert json.loads(leadline("ask", QUESTION, "--data-dir", data, "--json").out)["degraded"] == []
    monkeypatch.setenv("LEADLINE_MAX_WRONG", "1.5")
    assert leadline("stats", "--data-dir", data).code == 2


def test_a_kept_share_of_wrong_answers_makes_a_run_abstain(
    leadline: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would be an answer from weak evidence is none under LEADLINE_MAX_WRONG: exit code 4."""
    keep(data, calibration(50.0))
    weak = leadline("ask", QUESTION, "--web", "never", "--data-dir", data, "--json")
    assert (weak.code, json.loads(weak.out)["flags"]) == (0, ["weak_evidence"])
    monkeypatch.setenv("LEADLINE_MAX_WRONG", "0.3")
    none = leadline("ask", QUESTION, "--web", "never", "--data-dir", data, "--json")
    assert (none.code, json.loads(none.out)["status"]) == (4, "abstained")


def calibration(zero_point: float) -> Calibration:
    """One with this zero point."""
    point = Point(zero_point, 20, 1)
    return Calibration(zero_point, 1.0, point, (point,), 20, 20, 200, 20, "set", 0.0, 1)


def test_every_surface_counts_from_the_same_zero(leadline: Any, data: Path) -> None:
    """An answer becomes one from weak evidence, after every retry, under a zero point above its passages. The command
    line and a server that was open before agree to the digit; the server sees the change at its next question, and its
    undoing by another process."""
    words = {"question": QUESTION, "web": "never", "stream": False}
    with TestClient(create_app(load_settings(data_dir=data)), base_url="http://127.0.0.1") as client:
        before = answer(client.post("/chat", json=words))
        assert (before["verdict"]["evidence"], before["flags"], len(before["queries"])) == ("relevant", [], 1)
        keep(data, calibration(50.0))
        after = answer(client.post("/chat", json=words))
        assert (after["verdict"]["evidence"], after["flags"]) == ("irrelevant", ["weak_evidence"])
        assert len(after["queries"]) > 1
        best = before["context"][0]
        shifted = next(row for row in after["context"] if row["chunk_id"] == best["chunk_id"])
        assert shifted["rerank_score"] == pytest.approx(best["rerank_score"] - 50.0, abs=1e-3)
        printed = json.loads(leadline("ask", QUESTION, "--web", "never", "--data-dir", data, "--json").out)
        for result in (printed, after):
            result["usage"] = {}
            result["record"].pop("result_hash")  # that of the seconds too
        assert printed == after
        command = [Path(sys.executable).with_name("leadline"), "calibrate", "--clear", "--data-dir", data]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        again = answer(client.post("/chat", json=words))
    assert (again["flags"], again["context"]) == ([], before["context"])


def test_another_models_calibration_is_not_applied(leadline: Any, data: Path) -> None:
    """It belongs to a reranker of another name or hash: nothing is shifted, and stats say so."""
    keep(data, calibration(50.0), reranker="evidence-1/another")
    assert leadline("ask", QUESTION, "--web", "never", "--data-dir", data).code == 0
    shown = leadline("stats", "--data-dir", data).out
    assert "not applied\ta calibration for another model, evidence-1/another" in shown
    assert "zero point" not in shown


async def test_a_cleared_collection_has_no_calibration(data: Path) -> None:
    """It goes with the documents that it was made on; a change of theirs is told."""
    async with open_app(load_settings(data_dir=data)) as app:
        base, name = await app.library.collection(), "model"
        await app.library.calibrations.keep(base.name, name, calibration(1.0))
        told = await app.library.calibrations.describe(base.name, name)
        assert told["changes_since"] == await base.generation() - 1
        await base.clear()
        assert (await app.library.calibrations.describe(base.name, name))["basis"] == "none"


def answer(response: httpx.Response) -> Any:
    """The result that a server gave."""
    assert response.status_code == 200, response.text
    return response.json()


def keep(data: Path, made: Calibration, reranker: str | None = None) -> None:
    """Keeps a calibration with the collection `default`, for the embedded reranker or another."""

    async def work() -> None:
        from leadline.models import open_reranker

        async with open_library(load_settings(data_dir=data)) as library:
            name = reranker or open_reranker("embedded", library.embedder).name
            await library.calibrations.keep("default", name, made)

    asyncio.run(work())
