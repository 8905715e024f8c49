"""The hybrid node: every leg asked at once, each alone in its failure."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from leadline.errors import CollectionUnknown, InvalidFilter, StoreError
from leadline.nodes.hybrid import hybrid
from leadline.state import Document


class Leg:
    """A leg that answers, or fails, after a while."""

    def __init__(self, name: str, answer: list[Document] | Exception, seconds: float = 0.0) -> None:
        self.name, self.answer, self.seconds = name, answer, seconds
        self.asked: list[tuple[str, int, Any]] = []

    async def search(self, query: str, *, k: int, where: Any = None) -> list[Document]:
        self.asked.append((query, k, where))
        await asyncio.sleep(self.seconds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def given(*legs: Leg) -> Callable[[str], Any]:
    """The legs, whatever the collection."""

    async def retrievers(collection: str) -> Mapping[str, Leg]:
        return {leg.name: leg for leg in legs}

    return retrievers


async def test_each_leg_gets_the_query_the_width_and_the_filter(bench: Any, passage: Any, applied: Any) -> None:
    """Legs are asked for `width` passages under the run's filter, and their answers stand under their names."""
    legs = Leg("vector", [passage("a")]), Leg("anything", [])
    state = {"query": "q", "width": 20}
    update = await hybrid(state, bench.runtime(filters={"lang": "en"}), retrievers=given(*legs))
    assert all(leg.asked == [("q", 20, {"lang": "en"})] for leg in legs)
    after = applied(state, update)
    assert {name: len(found) for name, found in after["candidates"].items()} == {"vector": 1, "anything": 0}
    assert bench.of("query") == [{"type": "query", "query": "q", "target": "documents"}]


async def test_a_leg_that_fails_leaves_the_others_standing(bench: Any, passage: Any, applied: Any) -> None:
    """The failed leg is named in `degraded` and in an event; it is missing, not empty."""
    legs = Leg("vector", StoreError("gone")), Leg("bm25", [passage("a")]), Leg("graph", RuntimeError("odd"))
    after = applied({}, await hybrid({"query": "q", "width": 1}, bench.runtime(), retrievers=given(*legs)))
    assert list(after["candidates"]) == ["bm25"]
    assert after["degraded"] == ["vector", "graph"]
    assert [event["part"] for event in bench.of("degraded")] == ["vector", "graph"]


async def test_legs_run_at_the_same_time(bench: Any) -> None:
    """Three slow legs take as long as one."""
    legs = [Leg(name, [], seconds=0.2) for name in ("a", "b", "c")]
    async with asyncio.timeout(0.5):
        await hybrid({"query": "q", "width": 1}, bench.runtime(), retrievers=given(*legs))


async def test_a_collection_that_cannot_be_opened_is_an_error(bench: Any) -> None:
    """No collection is not a failed leg: the run says what is missing."""

    async def retrievers(collection: str) -> Mapping[str, Leg]:
        raise CollectionUnknown(f"There is no collection {collection}.")

    with pytest.raises(CollectionUnknown):
        await hybrid({"query": "q", "width": 1}, bench.runtime(), retrievers=retrievers)


async def test_a_bad_filter_is_the_askers_error(bench: Any) -> None:
    """A filter that no leg can read ends the run with its own error; no index is called failed for it."""
    with pytest.raises(InvalidFilter):
        await hybrid({"query": "q", "width": 1}, bench.runtime(), retrievers=given(Leg("bm25", InvalidFilter("bad"))))
    assert bench.of("degraded") == []
