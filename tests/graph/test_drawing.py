"""The drawing in the documentation is the graph."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "graph.md"


def test_the_drawing_is_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    """`docs/graph.md` holds what LangGraph draws of the compiled graph, word for word; it says how to draw again."""
    text = DOCS.read_text(encoding="utf-8")
    command = re.search(r'python -c "\n(.*?)"\n```', text, re.DOTALL)
    assert command is not None
    exec(command[1], {})
    assert f"```mermaid\n{capsys.readouterr().out}```\n" in text
