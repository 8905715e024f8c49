"""Step events: a node's start, and its one end, with the time it took and a few figures for people.

Knows the keys of an update, not what a node does.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.events import Phase, StepEvent
from leadline.nodes.progress import emit
from leadline.state import EvidenceBlock, RAGState, RAGUpdate
from leadline.telemetry import span


class Node(Protocol):
    """A node as the graph calls it: its dependencies bound."""

    def __call__(self, state: RAGState, runtime: Runtime[RunContext]) -> Awaitable[RAGUpdate]: ...


def traced(name: str, node: Callable[..., Awaitable[RAGUpdate]]) -> Node:
    """The node with a start event before it and exactly one of end, skip (it had nothing to do) or error after it.

    A cancelled run ends without: nobody is listening any more. A node that waits for a person has done nothing yet: it
    is skipped, and called again from its beginning when the answer has come.
    """

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        begun = time.perf_counter()

        def step(phase: Phase, **details: Any) -> None:
            seconds = 0.0 if phase == "start" else round(time.perf_counter() - begun, 4)
            emit(runtime, StepEvent(node=name, phase=phase, seconds=seconds, details=details))

        step("start")
        with span(f"node {name}", {"leadline.node": name}) as told:
            try:
                update = await node(state, runtime)
            except GraphBubbleUp:
                step("skip", waits_for="a person")
                raise
            except Exception as error:
                step("error", error=str(error))
                raise
            figures = _figures(update)
            told.set(_attributes(figures))
        step("end" if update else "skip", **figures)
        return update

    run.__name__ = name
    return run


def _figures(update: RAGUpdate) -> dict[str, Any]:
    """What an update says in numbers: passages per leg, scores, sentences left out, the decision."""
    figures: dict[str, Any] = {}
    for key in ("route", "query", "width", "retry_count", "status", "draft_status", "web_denied"):
        if key in update:
            figures[key] = update[key]
    if isinstance(candidates := update.get("candidates"), dict):
        figures["candidates"] = {leg: len(found) for leg, found in candidates.items()}
    if documents := update.get("documents"):
        figures["documents"] = len(documents)
        figures["same_text"] = sum(len(document["metadata"].get("also_in", ())) for document in documents)
    if context := update.get("context"):
        figures["scores"] = [round(document["rerank_score"], 3) for document in context]
        figures["above_zero"] = sum(document["rerank_score"] > 0 for document in documents or context)
    if evidence := update.get("evidence"):
        figures.update(_evidence_figures(evidence))
    if verdict := update.get("verdict"):
        figures["verdict"] = dict(verdict)
    return figures


def _attributes(figures: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """Of the figures, those that hold nobody's words: numbers, and words of a fixed list."""
    told: dict[str, str | int | float | bool] = {
        f"leadline.{key}": value
        for key, value in figures.items()
        if isinstance(value, int | float) or key in ("route", "status", "draft_status")
    }
    told |= {f"leadline.candidates.{leg}": count for leg, count in figures.get("candidates", {}).items()}
    verdict = figures.get("verdict", {})
    return told | {f"leadline.{key}": verdict[key] for key in ("evidence", "grounding", "action") if key in verdict}


def _evidence_figures(evidence: list[EvidenceBlock]) -> dict[str, Any]:
    shown = [block for block in evidence if block["sentences"]]
    kept = sum(len(text) for block in shown for _, _, text in block["sentences"])
    figures = {"evidence": len(shown), "sentences": sum(len(block["sentences"]) for block in shown), "chars": kept}
    return {**figures, "dropped": sum(block.get("dropped", 0) for block in evidence)}
