"""The aggregator node: legs joined by rank, passes united."""

from typing import Any

from leadline.nodes.aggregator import aggregator


async def test_what_two_legs_agree_on_comes_first(bench: Any, passage: Any, applied: Any) -> None:
    """One document a chunk, with both legs named, above one that a single leg ranked as high."""
    candidates = {
        "vector": [passage("alone", "a", leg="vector"), passage("both", "b", leg="vector", rank=1)],
        "bm25": [passage("both", "b"), passage("other", "c", rank=1)],
    }
    after = applied({}, await aggregator({"candidates": candidates}, bench.runtime()))
    assert [document["metadata"]["chunk_id"] for document in after["documents"]] == ["b", "a", "c"]
    assert set(after["documents"][0]["metadata"]["found_by"]) == {"vector", "bm25"}


async def test_a_retry_adds_to_what_was_found(bench: Any, passage: Any, applied: Any) -> None:
    """Documents of earlier passes stay."""
    state = {"documents": [passage("old", "a")], "candidates": {"bm25": [passage("new", "b")]}}
    after = applied(state, await aggregator(state, bench.runtime()))
    assert {document["metadata"]["chunk_id"] for document in after["documents"]} == {"a", "b"}


async def test_nothing_found_is_an_empty_list(bench: Any, applied: Any) -> None:
    """No candidates, no documents, no error."""
    assert applied({}, await aggregator({"candidates": {"bm25": []}}, bench.runtime()))["documents"] == []
