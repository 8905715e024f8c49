"""Searches the documents: every leg at once, each isolated from the others' failure.

Knows names of legs only as keys: whatever retrievers the collection has are asked. Ranks nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.deadline import within
from leadline.errors import InvalidFilter
from leadline.events import QueryEvent
from leadline.knowledge.retrievers import search_all
from leadline.nodes.allowance import time_left
from leadline.nodes.hops import JOINT, MAX_PASSAGES, WIDTH, led_to
from leadline.nodes.progress import degrade, emit
from leadline.state import Document, Leg, Pass, RAGState, RAGUpdate
from leadline.stores.base import Retriever

Retrievers = Callable[[str], Awaitable[Mapping[Leg, Retriever]]]
UNSEARCHED = "documents"  # stands for the legs of a search that was left
Outcomes = Mapping[Leg, list[Document] | BaseException]
Candidates = dict[Leg, list[Document]]


async def hybrid(state: RAGState, runtime: Runtime[RunContext], *, retrievers: Retrievers) -> RAGUpdate:
    """Writes what each leg found for `query`, and the passages that the names of a hop lead to.

    A leg that failed is missing in `candidates` and named in `degraded`. When the run's seconds are over the search is
    left, and the run goes on with what it has. Raises StoreError only where the collection as a whole can't be opened,
    and InvalidFilter: no leg is at fault then.
    """
    left = time_left(state, runtime.context.budgets, time.time())
    try:
        return await within(max(left, 0.0), _found(state, runtime, retrievers), "The search of the documents")
    except TimeoutError:
        # Found nothing, which is not the same as a failure of the legs.
        return {"candidates": {UNSEARCHED: []}, "limits": ["seconds"]}


async def _found(state: RAGState, runtime: Runtime[RunContext], retrievers: Retrievers) -> RAGUpdate:
    search = _search_of(state)
    hops = search.get("hops", [])
    hops_alone = bool(hops) and search["query"] == JOINT.join(hops)
    query = search["query"] if hops_alone else state["query"]
    emit(runtime, QueryEvent(query=query, target="documents"))
    legs = await retrievers(runtime.context.collection)
    where = runtime.context.filters
    candidates: Candidates = {}
    degraded: list[str] = []
    if not hops_alone:
        width = state.get("width", runtime.context.top_k)
        found = await search_all(legs, query, k=width, where=where)
        candidates = _usable(found, runtime, degraded)
    if hops:
        for leg, led in (await _followed(search, legs, where, runtime, degraded)).items():
            candidates[leg] = [*candidates.get(leg, []), *led]
    return {"candidates": candidates, "degraded": degraded}


def _search_of(state: RAGState) -> Pass:
    """The last search of the documents: beside an escalation's, that of the web."""
    passes = [search for search in state.get("passes", []) if "documents" in search["sources"]]
    return passes[-1] if passes else Pass(query=state["query"], width=0, sources=["documents"])


def _usable(found: Outcomes, runtime: Runtime[RunContext], degraded: list[str]) -> Candidates:
    """What the legs found, those that failed added to `degraded`."""
    candidates: Candidates = {}
    for name, outcome in found.items():
        if isinstance(outcome, InvalidFilter):
            raise outcome
        if isinstance(outcome, Exception):
            if name not in degraded:
                degraded.append(degrade(runtime, name, outcome))
        elif isinstance(outcome, BaseException):  # a cancelled run is not a failed leg
            raise outcome
        else:
            candidates[name] = outcome
    return candidates


async def _followed(
    search: Pass, legs: Mapping[Leg, Retriever], where: Any, runtime: Runtime[RunContext], degraded: list[str]
) -> Candidates:
    """The passages that the names of a hop lead to, each with the name and the passage it comes from (`led_by`)."""
    names = search.get("hops", [])
    outcomes = await asyncio.gather(*(search_all(legs, name, k=WIDTH, where=where) for name in names))
    candidates: Candidates = {}
    known: set[str] = {str(search.get("hops_from"))}
    for name, outcome in zip(names, outcomes, strict=True):
        led = led_to(name, _usable(outcome, runtime, degraded), str(search.get("hops_from")))
        if not led or (chunk := str(led[0][1]["metadata"]["chunk_id"])) in known or len(known) > MAX_PASSAGES:
            continue
        known.add(chunk)
        led_by = {"name": name, "chunk_id": search.get("hops_from")}
        for leg, document in led:
            metadata = {**document["metadata"], "led_by": led_by}
            candidates.setdefault(leg, []).append({**document, "metadata": metadata})
    return candidates
