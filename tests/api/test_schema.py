"""The schema and the running server say the same, tried with data that fits it and data that doesn't."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from leadline import Settings, load_settings

APART = Path(sys.prefix) / "schemathesis"  # `make` installs it there: its packages and LangGraph's exclude each other
HOOKS = Path(__file__).with_name("schema_hooks.py")
# Several files of one upload get one name from the fuzzer, which is refused: each would replace the one before. And a
# field of a form is bytes, whatever wrong type was meant.
CONFIG = """
[[operations]]
include-name = "POST /documents"
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]
checks.negative_data_rejection.expected-statuses = ["2xx", "4xx"]
"""
EXAMPLES = 6  # of each route and kind of data; each is a real request


@pytest.mark.skipif(not APART.is_dir(), reason="schemathesis isn't there: `make test` installs it")
def test_the_server_does_what_its_schema_says(
    copied: Path, tmp_path: Path, serving: Callable[[Settings], AbstractContextManager[str]]
) -> None:
    """No 5xx, nothing undeclared; what fits is taken, what doesn't is refused; also in one call after another."""
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    folder = shutil.copytree(copied, tmp_path / "data")
    run = {"web": "never", "max_retries": 0, "top_k": 2, "rerank_top_k": 1}
    with serving(load_settings(data_dir=folder, rate_per_minute=100_000, max_running=1000, run=run)) as url:
        options = ["--checks", "all", "--mode", "all", "--max-examples", str(EXAMPLES), "--generation-deterministic"]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", *options, "--no-color"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(APART),
                "SCHEMATHESIS_HOOKS": str(HOOKS),
                "LEADLINE_TEST_SCHEMA_IDS": json.dumps(real_ids(url)),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"(\d+) generated", done.stdout)
    assert tried is not None, done.stdout
    assert int(tried[1]) > 300


def real_ids(url: str) -> dict[str, str]:
    """What is really there, by the name of the parameter."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        asked = {"question": "What does error E-217 mean?", "thread_id": "talk", "stream": False}
        passage = client.post("/chat", json=asked).json()["citations"][0]
    return {
        "doc_id": passage["doc_id"],
        "chunk_id": passage["chunk_id"],
        "thread_id": "talk",
        "model": "leadline",
    }
