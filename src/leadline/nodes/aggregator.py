"""Joins what the legs found into one list, with what earlier passes of the run found.

Knows ranks, not scores: the maths is in `ranking`.
"""

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.ranking import fuse, unite
from leadline.state import RAGState, RAGUpdate


async def aggregator(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:  # noqa: ARG001 (a node's signature)
    """Writes `documents`: one per chunk, best fused rank first, each leg's best rank over the passes kept."""
    fused = fuse(state.get("candidates", {}))
    earlier = state.get("documents", [])
    return {"documents": unite(earlier, fused) if earlier else fused}
