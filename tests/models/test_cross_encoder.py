"""The embedded cross-encoder."""

import json
import os
import random
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from leadline.errors import ModelUnavailable
from leadline.models.cross_encoder import MAX_PASSAGE, MAX_QUESTION, WEIGHTS, CrossEncoder
from leadline.models.hub import HubCrossEncoder
from leadline.models.minilm import CLS, SEP, MiniLM
from leadline.models.sign import PROBES

ROOT = Path(__file__).parents[2]
SQUAD = Path(os.environ.get("LEADLINE_SHARED") or ROOT.parent / "shared") / "data" / "squad2_dev"
QUESTION = "How long may the pump run dry?"
PASSAGES = [
    "The pump may run dry for at most thirty seconds.",
    "",
    "Invoices are paid within 30 days of receipt. " * 40,
    "The violin sonata closes with a slow movement.",
    "短い",
]
# Where the 8-bit file and its weights in 32 bits may differ: what the rounding of activations does.
BOUND, MEAN_BOUND, SAME_SIGN = 0.4, 0.03, 0.995


@pytest.fixture(scope="module")
def model() -> CrossEncoder:
    """One loaded model for the module."""
    return CrossEncoder(MiniLM())


def test_a_logit_does_not_depend_on_its_company(model: CrossEncoder) -> None:
    """Alone or among others, in any order: the same pair has the same logit to the last bit."""
    together = model.logits(QUESTION, PASSAGES)
    assert together.shape == (len(PASSAGES),)
    assert np.isfinite(together).all()
    assert np.array_equal(model.logits(QUESTION, PASSAGES[::-1])[::-1], together)
    assert [model.logits(QUESTION, [text])[0] for text in PASSAGES] == together.tolist()


def test_no_passages_have_no_logits(model: CrossEncoder) -> None:
    """An empty list is legal."""
    assert model.logits(QUESTION, []).shape == (0,)


@pytest.mark.parametrize(("question", "answer", "absurd"), PROBES)
def test_the_sign_tells_an_answer_from_nonsense(model: CrossEncoder, question: str, answer: str, absurd: str) -> None:
    """An answer is above zero, a passage about something else below."""
    above, below = model.logits(question, [answer, absurd])
    assert above > 0 > below


def test_a_pair_is_read_as_it_was_in_training(model: CrossEncoder) -> None:
    """Question and passage with their special tokens, told apart by their types; a passage too long loses its end."""
    short, long = model.pairs(QUESTION, ["The pump.", "word " * 500])
    ids, types = short
    separators = np.flatnonzero(ids == SEP)
    assert ids[0] == CLS
    assert separators.tolist() == [int((types == 0).sum()) - 1, len(ids) - 1]
    assert len(ids) == len(types)
    assert int(long[1].sum()) == MAX_PASSAGE + 1
    ((ids, types),) = model.pairs("word " * 200 + "pump", ["The pump."])
    assert int((types == 0).sum()) == MAX_QUESTION + 2
    assert ids[MAX_QUESTION] == MiniLM().token_ids(["pump"])[0][1]


def test_a_damaged_file_is_not_read(tmp_path: Path) -> None:
    """A file that isn't the shipped one, or none, is an error that says so."""
    with pytest.raises(ModelUnavailable, match=r"model\.onnx can't be read"):
        CrossEncoder(MiniLM(), tmp_path).logits(QUESTION, PASSAGES)
    content = bytearray((WEIGHTS / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelUnavailable, match="not the one that was shipped"):
        CrossEncoder(MiniLM(), tmp_path).logits(QUESTION, PASSAGES)


def test_the_file_is_small(model: CrossEncoder) -> None:
    """The package stays light: at most 30 MB."""
    assert (WEIGHTS / "model.onnx").stat().st_size <= 30_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped weights as a folder for other libraries."""
    target = tmp_path_factory.mktemp("cross") / "model"
    sys.path.insert(0, str(ROOT / "training"))
    try:
        script = runpy.run_path(str(ROOT / "training" / "export_cross_encoder.py"))
    finally:
        sys.path.remove(str(ROOT / "training"))
    script["write_folder"](WEIGHTS / "model.onnx", target)
    return target


def assert_agreement(model: CrossEncoder, folder: Path, asked: dict[str, list[str]]) -> None:
    """Both give about the same logits, and nearly always the same sign."""
    other = HubCrossEncoder(str(folder))
    ours = np.concatenate([model.logits(question, passages) for question, passages in asked.items()])
    theirs = np.concatenate([other.score(question, passages) for question, passages in asked.items()])
    differences = np.abs(ours - theirs)
    assert differences.max() < BOUND
    assert differences.mean() < MEAN_BOUND
    assert (np.sign(ours) == np.sign(theirs)).mean() >= SAME_SIGN


def test_sentence_transformers_gives_the_same_logits(model: CrossEncoder, folder: Path) -> None:
    """The folder made of the shipped file loads as a CrossEncoder, and agrees, on the project's own documentation."""
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    passages = [re.sub(r"\s+", " ", part)[:160] for part in text.split("\n- ")[1:41]]
    questions = [f"What was decided about {' '.join(part.split()[2:7])}?" for part in passages[::8]]
    assert_agreement(model, folder, dict.fromkeys(questions, passages))


@pytest.mark.skipif(not SQUAD.is_dir(), reason="needs data/squad2_dev under LEADLINE_SHARED")
def test_agreement_within_one_article(model: CrossEncoder, folder: Path) -> None:
    """On questions held against the paragraph that they are about and nine others of its article."""

    def lines(name: str) -> list[str]:
        return (SQUAD / name).read_text(encoding="utf-8").splitlines()

    rows = [json.loads(line) for line in lines("queries.jsonl")]
    texts = {row["_id"]: row["text"] for row in map(json.loads, lines("corpus.jsonl"))}
    judged = dict(line.split("\t")[:2] for line in lines("qrels.tsv")[1:])
    chance = random.Random(1)
    asked = {}
    for row in chance.sample([row for row in rows if row["_id"] in judged], 20):
        own = judged[row["_id"]]
        article = [name for name in texts if name.split("_")[0] == own.split("_")[0] and name != own]
        asked[row["text"]] = [texts[name][:500] for name in [own, *chance.sample(article, min(9, len(article)))]]
    assert_agreement(model, folder, asked)
