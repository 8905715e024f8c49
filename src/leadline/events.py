"""The progress events of a run and of an ingest: one model for every surface.

A run's events end with exactly one `final`. Each is one JSON object (`model_dump(mode="json")`).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Phase = Literal["start", "end", "skip", "error"]


class Event(BaseModel):
    """Common to all events: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StepEvent(Event):
    """A node started, or ended in exactly one way. `seconds` since its start; `details` are for people."""

    type: Literal["step"] = "step"
    node: str
    phase: Phase
    seconds: float = 0.0
    details: dict[str, Any] = Field(default_factory=dict)


class QueryEvent(Event):
    """A query goes out: to the documents, or to the web (`target`)."""

    type: Literal["query"] = "query"
    query: str
    target: Literal["documents", "web"]


class PromptEvent(Event):
    """The exact messages sent to an LLM, only when asked for."""

    type: Literal["prompt"] = "prompt"
    node: str
    model: str
    messages: list[dict[str, Any]]


class TokenEvent(Event):
    """A piece of the streamed answer. From the reasoning node only."""

    type: Literal["token"] = "token"
    text: str


class CitationEvent(Event):
    """A citation of the accepted answer."""

    type: Literal["citation"] = "citation"
    citation: dict[str, Any]


class DegradedEvent(Event):
    """A part failed and the run goes on without it. `part` is a leg, reranker, web, planner or critic."""

    type: Literal["degraded"] = "degraded"
    part: str
    reason: str


class RetryEvent(Event):
    """Reflection sends the run back with a changed query or width."""

    type: Literal["retry"] = "retry"
    query: str
    width: int
    reason: str


class EscalateEvent(Event):
    """Reflection sends the run to the web."""

    type: Literal["escalate"] = "escalate"
    query: str
    reason: str


class ConsentEvent(Event):
    """A web query waits for approval, or was denied (`granted`)."""

    type: Literal["consent"] = "consent"
    query: str
    granted: bool | None = None


class RetractEvent(Event):
    """A streamed draft was rejected: what was shown of it is not the answer."""

    type: Literal["retract"] = "retract"
    reason: str


class FinalEvent(Event):
    """The terminal event: the Result object of the run."""

    type: Literal["final"] = "final"
    result: dict[str, Any]


RunEvent = Annotated[
    StepEvent
    | QueryEvent
    | PromptEvent
    | TokenEvent
    | CitationEvent
    | DegradedEvent
    | RetryEvent
    | EscalateEvent
    | ConsentEvent
    | RetractEvent
    | FinalEvent,
    Field(discriminator="type"),
]


class DocumentEmbedded(Event):
    """A chunk has its vector. `cached`: it was not computed again."""

    type: Literal["document_embedded"] = "document_embedded"
    chunk_id: str
    cached: bool


class DocumentSaved(Event):
    """A chunk is in the store. `cached`: it was there already."""

    type: Literal["document_saved"] = "document_saved"
    chunk_id: str
    cached: bool


class ItemFailed(Event):
    """One item could not be taken in; the others go on."""

    type: Literal["item_failed"] = "item_failed"
    item: str
    error: str


class DocumentsPruned(Event):
    """What a sync deleted, or why it did not (`skipped`, `reason`). `kept` is what the run itself yielded.

    A store counts chunks; the knowledge base counts sources, and `items` names the deleted ones by URI. Of a dry run
    it is what would be deleted.
    """

    type: Literal["documents_pruned"] = "documents_pruned"
    deleted: int
    kept: int
    skipped: bool = False
    reason: str = ""
    items: tuple[str, ...] = ()
