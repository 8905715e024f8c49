"""The drawing in the documentation is the graph."""

from pathlib import Path

from leadline.graph.studio import graph

DOCS = Path(__file__).parents[2] / "docs" / "graph.md"


def test_the_drawing_is_the_graph() -> None:
    """`docs/graph.md` holds what LangGraph draws of the compiled graph, word for word; it says how to draw again."""
    assert f"```mermaid\n{graph.get_graph().draw_mermaid()}```\n" in DOCS.read_text(encoding="utf-8")
