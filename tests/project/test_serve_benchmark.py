"""The benchmark of the server, small: it ends well, which it does only if no event was lost, doubled or mixed up."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serve.py"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")
def test_many_clients_and_a_killed_worker() -> None:
    """Every client has its own answer, and one whose worker was killed asks again in its conversation and has it."""
    ended = subprocess.run(
        [sys.executable, SCRIPT, "--small"], capture_output=True, text=True, check=False, timeout=900
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = json.loads(ended.stdout)
    assert (told["answered"] + told["dropped"], told["faults"]) == (told["requests"], 0)
    assert told["dropped"] > 0
    assert told["kill"]["interrupted"] == told["kill"]["answered"] > 0
    assert told["kill"]["workers_after"] == 2
