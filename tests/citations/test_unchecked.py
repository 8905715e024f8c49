"""Citations where the check of the answer broke."""

from typing import Any

from leadline.citations.unchecked import unchecked_citations

CONTENT = "Cut above a bud. Roses are pruned in March. They like sun."


def block(n: int) -> Any:
    """A passage of three sentences, of which the writer saw the last two."""
    spans = [(17, 43, CONTENT[17:43]), (44, 58, CONTENT[44:58])]
    metadata = {"doc_id": "d", "file_name": "roses.md", "start_char": 100, "source_type": "file"}
    return {"n": n, "chunk_id": f"c{n}", "sentences": spans, "document": {"content": CONTENT, "metadata": metadata}}


def test_marks_lead_to_their_passages_unverified() -> None:
    """A sentence that the passage has is quoted; another leads to what the writer saw first; unknown marks go."""
    text, citations = unchecked_citations(
        "Roses are pruned in March [2]. Prune in spring [1][7].", [block(1), block(2)]
    )
    assert text == "Roses are pruned in March [2]. Prune in spring [1]."
    assert [(c["n"], c["quote"], c["verified"]) for c in citations] == [
        (2, "Roses are pruned in March.", False),
        (1, "Roses are pruned in March.", False),
    ]
    for citation in citations:
        assert CONTENT[citation["start_char"] - 100 : citation["end_char"] - 100] == citation["quote"]


def test_without_marks_there_are_none() -> None:
    """Nothing is made up."""
    assert unchecked_citations("Prune in spring.", [block(1)]) == ("Prune in spring.", [])
