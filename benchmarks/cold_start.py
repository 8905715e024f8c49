"""How long `leadline ask` takes from nothing, against importing the three libraries it can't do without.

Both start a new process each time and take turns, so that whatever else the machine does hits both alike. Prints one
JSON object; `ratio` is the median of one over the median of the other. Usage: python benchmarks/cold_start.py [runs]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEADLINE = [sys.executable, "-c", "from leadline.cli import main; main()"]
BASELINE = [sys.executable, "-c", "import langgraph.graph, onnxruntime, chromadb"]
QUESTION = "What is in these documents?"


def seconds(command: list[str], *, may_exit: tuple[int, ...] = (0,)) -> float:
    """Wall-clock seconds of one process."""
    begun = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in may_exit:
        raise SystemExit(f"{command} failed ({done.returncode}):\n{done.stderr}")
    return time.perf_counter() - begun


def main(runs: int) -> None:
    """Ingests the examples once, then measures."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEADLINE_DATA_DIR"] = folder
        seconds([*LEADLINE, "ingest", str(ROOT / "examples" / "documents")])
        ask = [*LEADLINE, "ask", "--web", "never", QUESTION]
        seconds(BASELINE), seconds(ask, may_exit=(0, 4))  # fills the disk cache
        pairs = [(seconds(BASELINE), seconds(ask, may_exit=(0, 4))) for _ in range(runs)]
    imports, asks = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(json.dumps({"runs": runs, "imports_s": imports, "ask_s": asks, "ratio": asks / imports}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
