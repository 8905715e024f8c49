"""The time that a run has worked, node by node.

Between two nodes a run may stand still: a person is asked, or it is taken up again from an earlier state, a day later.
That is no time of its own, and no budget is spent by it.
"""

import time

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.graph.tracing import Node
from leadline.nodes.progress import overwrite
from leadline.state import RAGState, RAGUpdate


def clocked(node: Node) -> Node:
    """The node, to which the run began as long ago as it has worked, and whose own time is added to that."""

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        begun = time.perf_counter()
        update = await node(awake(state), runtime)
        took = time.perf_counter() - begun
        if "worked" in update:  # the node begins the run
            return {**update, "worked": overwrite(took)}
        return {**update, "worked": state.get("worked", 0.0) + took}

    return run


def awake(state: RAGState) -> RAGState:
    """The state as of a run that has worked all the time since it began."""
    if "started_at" not in state:
        return state
    return {**state, "started_at": time.time() - state.get("worked", 0.0)}
