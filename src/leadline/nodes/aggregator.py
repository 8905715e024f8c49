"""Joins what the legs found into one list, with what earlier passes of the run found.

Knows ranks, not scores: the maths is in `ranking`.
"""

from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.nodes.sightings import sightings
from leadline.ranking import fuse, unite
from leadline.state import Document, Leg, RAGState, RAGUpdate


async def aggregator(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:  # noqa: ARG001 (a node's signature)
    """Writes `documents`: one per chunk, best fused rank first, each leg's best rank over the passes kept.

    And `sightings`: what each leg found in this pass too, before anything is joined or left out.
    """
    candidates = state.get("candidates", {})
    fused = fuse(candidates)
    earlier = state.get("documents", [])
    seen = sightings(candidates, in_pass=max(1, len(state.get("passes", []))))
    documents = unite(earlier, fused) if earlier else fused
    return {"documents": _led(documents, candidates), "sightings": [*state.get("sightings", []), *seen]}


def _led(documents: list[Document], candidates: Mapping[Leg, Sequence[Document]]) -> list[Document]:
    """The documents with what a hop says of them, also where an earlier pass had found them already."""
    led = {
        found["metadata"]["chunk_id"]: found["metadata"]["led_by"]
        for leg in candidates.values()
        for found in leg
        if "led_by" in found["metadata"]
    }
    return [
        {**document, "metadata": {**document["metadata"], "led_by": led[chunk]}}
        if (chunk := document["metadata"]["chunk_id"]) in led
        else document
        for document in documents
    ]
