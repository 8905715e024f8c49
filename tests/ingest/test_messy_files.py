"""Real files that give parsers trouble, where a folder of shared data is at hand."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import IngestError
from leadline.ingest.loaders import LOADERS
from leadline.ingest.prepare import prepare
from leadline.models.minilm import MiniLM

SHARED = Path(os.environ.get("LEADLINE_SHARED") or Path(__file__).parents[3] / "shared")
FOLDER = SHARED / "data" / "messy_a"
MANIFEST = FOLDER / "manifest.jsonl"
CASES: list[dict[str, Any]] = (
    [json.loads(line) for line in MANIFEST.read_text(encoding="utf-8").splitlines()] if MANIFEST.exists() else []
)

EXPECTED = {"needs_ocr": "Page 1 has no text", "needs_password": "password", "garbled_text_layer": "unreadable signs"}

if not CASES:
    pytest.skip("no shared data: set LEADLINE_SHARED to its folder", allow_module_level=True)


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_a_messy_file_gives_its_words_or_a_clear_refusal(case: dict[str, Any], tokenizer: MiniLM) -> None:
    """The phrases a reader sees can be found, or the file is refused with an error of ours and a reason."""
    path = FOLDER / "files" / case["file"]
    if case["expect"] != "ok" or path.suffix not in LOADERS:
        with pytest.raises(IngestError, match=EXPECTED.get(case["expect"], ".")):
            prepare(path, case["file"], tokenizer)
        return
    text = " ".join(chunk.embedded_text for chunk in prepare(path, case["file"], tokenizer).chunks)

    assert all(phrase in text for phrase in case["contains"])
