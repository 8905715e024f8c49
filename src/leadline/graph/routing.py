"""Where the run goes next: pure functions of the state, one per fork of the graph."""

from typing import Literal

from langgraph.graph import END

from leadline.decision import Remedies
from leadline.nodes.allowance import drafted_before
from leadline.nodes.hops import next_hop
from leadline.ranking import evidence_sign
from leadline.state import RAGState


def after_planner(state: RAGState) -> list[Literal["hybrid", "web", "reasoning"]]:
    """Small talk is answered at once; a question searches the documents, and the web beside them where planned."""
    if state["route"] == "direct":
        return ["reasoning"]
    return ["hybrid", "web"] if "web" in state["passes"][0]["sources"] else ["hybrid"]


def after_reranker(state: RAGState, left: Remedies) -> Literal["compressor", "reflection"]:
    """To the writer only where that can help.

    No answer is written from passages known to be irrelevant, or from none, while something is left to try; nor
    a second time from the very passages of the draft that was just rejected; nor from relevant ones before the names
    in the best of them were followed.
    """
    if drafted_before(state):
        return "reflection"
    sign = evidence_sign(state.get("context", []))
    if sign == "relevant":
        return "reflection" if left.retry and next_hop(state) else "compressor"
    return "reflection" if sign != "unranked" and (left.retry or left.escalate) else "compressor"


def after_reflection(state: RAGState) -> Literal["hybrid", "web", "__end__"]:
    """A retry searches the documents again, an escalation asks the web; everything else ends the run.

    A retry never goes back to the web: what goes out is always the question itself, and that was sent already.
    """
    match state["verdict"]["action"]:
        case "retry":
            return "hybrid"
        case "escalate":
            return "web"
        case _:
            return END  # type: ignore[return-value]  # END is typed str, its value is "__end__"
