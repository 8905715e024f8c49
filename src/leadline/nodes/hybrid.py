"""Searches the documents: every leg at once, each isolated from the others' failure.

Knows names of legs only as keys: whatever retrievers the collection has are asked. Ranks nothing.
"""

from collections.abc import Awaitable, Callable, Mapping

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.errors import InvalidFilter
from leadline.events import QueryEvent
from leadline.knowledge.retrievers import search_all
from leadline.nodes.progress import degrade, emit
from leadline.state import Document, Leg, RAGState, RAGUpdate
from leadline.stores.base import Retriever

Retrievers = Callable[[str], Awaitable[Mapping[Leg, Retriever]]]


async def hybrid(state: RAGState, runtime: Runtime[RunContext], *, retrievers: Retrievers) -> RAGUpdate:
    """Writes what each leg found for `query`. A leg that failed is missing in `candidates` and named in `degraded`.

    Raises StoreError only where the collection as a whole can't be opened, and InvalidFilter: no leg is at fault then.
    """
    query = state["query"]
    emit(runtime, QueryEvent(query=query, target="documents"))
    legs = await retrievers(runtime.context.collection)
    width = state.get("width", runtime.context.top_k)
    found = await search_all(legs, query, k=width, where=runtime.context.filters)
    candidates: dict[Leg, list[Document]] = {}
    degraded: list[str] = []
    for name, outcome in found.items():
        if isinstance(outcome, InvalidFilter):
            raise outcome
        if isinstance(outcome, Exception):
            degraded.append(degrade(runtime, name, outcome))
        elif isinstance(outcome, BaseException):  # a cancelled run is not a failed leg
            raise outcome
        else:
            candidates[name] = outcome
    return {"candidates": candidates, "degraded": degraded}
