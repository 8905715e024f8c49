"""The drawing in the documentation is the graph."""

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "graph.md"


def test_the_drawing_is_the_graph() -> None:
    """`docs/graph.md` holds what LangGraph draws of the compiled graph, word for word; it says how to draw again."""
    text = DOCS.read_text(encoding="utf-8")
    command = re.search(r'python -c "\n(.*?)"\n```', text, re.DOTALL)
    assert command is not None
    drawn = subprocess.run([sys.executable, "-c", command[1]], capture_output=True, text=True, check=True, timeout=120)
    assert f"```mermaid\n{drawn.stdout}```\n" in text
