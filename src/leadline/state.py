"""The state of a run: what every node reads and writes.

Plain JSON types only (no numpy, no classes but messages), so that any checkpointer can store it. Calls nothing. The
records it is made of are in `records` and can be imported from here too.
"""

from typing import Annotated, Any, Literal, cast

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict  # typing's own can't be validated by pydantic before Python 3.12

from leadline.records import (
    Action,
    Citation,
    ContextRow,
    Document,
    Evidence,
    EvidenceBlock,
    Flag,
    Found,
    Grounding,
    Leg,
    Origin,
    Pass,
    Result,
    Route,
    RunRecord,
    Sighting,
    Status,
    Usage,
    Verdict,
)

__all__ = [
    "Action",
    "Citation",
    "ContextRow",
    "Document",
    "Evidence",
    "EvidenceBlock",
    "Flag",
    "Found",
    "Grounding",
    "Leg",
    "Origin",
    "Pass",
    "RAGInput",
    "RAGState",
    "RAGUpdate",
    "Result",
    "Route",
    "RunRecord",
    "Sighting",
    "Status",
    "Usage",
    "Verdict",
    "add_usage",
    "longer",
    "merge_candidates",
    "merge_unique",
]


def merge_candidates(left: dict[Leg, list[Document]], right: dict[Leg, list[Document]]) -> dict[Leg, list[Document]]:
    """Legs written by different nodes stand side by side; the same leg written again is replaced."""
    return {**left, **right}


def merge_unique(left: list[str], right: list[str]) -> list[str]:
    """Adds what isn't there yet, order kept."""
    return [*left, *(item for item in dict.fromkeys(right) if item not in left)]


def add_usage(left: Usage, right: Usage) -> Usage:
    """Sums key by key."""
    total: dict[str, Any] = dict(left)
    for key, value in right.items():
        total[key] = total.get(key, 0) + value
    return cast(Usage, total)


def longer(left: float, right: float) -> float:
    """Of nodes side by side the one that took longer."""
    return max(left, right)


class RAGState(TypedDict, total=False):
    """Everything a run carries. The planner resets all but `messages` at the start of each run."""

    messages: Annotated[list[AnyMessage], add_messages]
    question: str
    last_question: str  # as the planner wrote it: what still stands there isn't given anew
    question_from: list[Origin]  # what its words may come from beside the person: earlier answers' documents
    redacted: bool  # whether this run has taken earlier answers out of the conversation
    route: Route
    query: str
    queries: list[str]
    width: int
    passes: list[Pass]
    candidates: Annotated[dict[Leg, list[Document]], merge_candidates]
    sightings: list[Sighting]  # all that the legs found, pass after pass
    documents: list[Document]
    strict: bool  # a share of wrong answers is kept to: no answer from passages below zero
    scores: dict[str, dict[str, float]]  # query → chunk_id → raw logit, 0.0 = not scored; asked once a run
    zero_point: float  # what was taken off the logits
    context: list[Document]
    evidence: list[EvidenceBlock]
    answer: str
    draft_id: str  # the message that the draft is streamed as
    draft_status: Literal["complete", "interrupted", "failed", "none"]
    citations: list[Citation]
    verdict: Verdict
    path: list[Verdict]  # the verdicts of the passes before
    flags: list[Flag]
    retry_count: int
    web_used: bool
    web_denied: bool
    degraded: Annotated[list[str], merge_unique]
    limits: Annotated[list[str], merge_unique]  # budgets that kept the run from something
    indexing: list[str]  # files of the collection that were not in yet when the run began
    usage: Annotated[Usage, add_usage]
    started_at: float
    worked: Annotated[float, longer]  # seconds in nodes: a run may stand still between them, for a person to answer
    status: Status
    result: Result


class RAGUpdate(RAGState, total=False):
    """What a node returns: some of the keys of RAGState.

    A value of a key with a reducer may also be `langgraph.types.Overwrite(value)`: the planner and reflection
    reset a key that way.
    """


class RAGInput(TypedDict, total=False):
    """What a caller gives: a message, or just the question."""

    messages: Annotated[list[AnyMessage], add_messages]
    question: str
