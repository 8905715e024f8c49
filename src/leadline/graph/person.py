"""What a person may decide within a run: which query goes to the web, and which one a retry searches for.

Knows what an answer changes in the state. Doesn't know how the person is asked: whoever opens the graph gives that.
"""

from collections.abc import Sequence
from typing import Protocol

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.graph.tracing import Node
from leadline.nodes.hops import JOINT
from leadline.nodes.hybrid import UNSEARCHED
from leadline.state import Pass, RAGState, RAGUpdate


class Person(Protocol):
    """Somebody who is asked while a run waits.

    A node that asks is called again from its beginning when the answer has come, so it asks before it does anything.
    """

    async def web_query(self, query: str) -> bool | str:
        """Whether the query may go to the web, or which may in its place."""
        ...

    async def next_query(self, query: str, tried: Sequence[str], reason: str) -> str | None:
        """What to search the documents for instead of `query`, or that; None: no more searches."""
        ...


def person_first(search: Node, person: Person | None) -> Node:
    """The search of the documents, before each retry of which the person is asked, where the run says so."""
    if person is None:
        return search

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        if not (runtime.context.ask_person and state.get("retry_count")):
            return await search(state, runtime)
        *before, proposed = state["passes"]
        tried = [made["query"] for made in before]
        query = await person.next_query(proposed["query"], tried, state["verdict"]["reason"])
        if query is None:
            return _without(state, runtime.context)
        changed = _with(state, query) if query != proposed["query"] else RAGUpdate()
        return {**await search({**state, **changed}, runtime), **changed}

    return run


def _with(state: RAGState, query: str) -> RAGUpdate:
    """The retry with the person's query. Passages are judged by it as by the question: a person wrote it."""
    *before, proposed = state["passes"]
    search = Pass(query=query, width=state["width"], sources=["documents"])
    hops = proposed.get("hops", [])
    if hops and proposed["query"] != JOINT.join(hops):  # beside the query, not in its place
        search |= {"hops": hops, "hops_from": proposed["hops_from"]}
    return {"query": query, "passes": [*before, search], "queries": [*_judged(state), query]}


def _without(state: RAGState, context: RunContext) -> RAGUpdate:
    """No search, and no retry after it: the run ends with what it has, or asks the web."""
    before = state["passes"][:-1]
    return {
        "query": before[-1]["query"],
        "passes": before,
        "queries": _judged(state),
        "retry_count": context.max_retries,
        "candidates": {UNSEARCHED: []},
    }


def _judged(state: RAGState) -> list[str]:
    """The queries that passages are judged by, without the one that was only proposed."""
    made = {state["question"], *(search["query"] for search in state["passes"][:-1])}
    return [query for query in state.get("queries", []) if query in made]
