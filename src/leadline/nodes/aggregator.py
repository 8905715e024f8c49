"""Joins what the legs found into one list, with what earlier passes of the run found.

Knows ranks, not scores: the maths is in `ranking`.
"""

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.nodes.sightings import sightings
from leadline.ranking import fuse, unite
from leadline.state import RAGState, RAGUpdate


async def aggregator(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:  # noqa: ARG001 (a node's signature)
    """Writes `documents`: one per chunk, best fused rank first, each leg's best rank over the passes kept.

    And `sightings`: what each leg found in this pass too, before anything is joined or left out.
    """
    candidates = state.get("candidates", {})
    fused = fuse(candidates)
    earlier = state.get("documents", [])
    seen = sightings(candidates, in_pass=max(1, len(state.get("passes", []))))
    return {"documents": unite(earlier, fused) if earlier else fused, "sightings": [*state.get("sightings", []), *seen]}
