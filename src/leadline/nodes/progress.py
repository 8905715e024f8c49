"""What nodes share about telling and resetting: progress events into the run's stream, and reset of a reduced key.

Knows the event models and LangGraph's writer. Knows nothing of what happened.
"""

import logging
from typing import TypeVar, cast

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from leadline.config import RunContext
from leadline.events import DegradedEvent, Event

log = logging.getLogger(__name__)

T = TypeVar("T")


def emit(runtime: Runtime[RunContext], event: Event) -> None:
    """Puts the event into the run's custom stream, as plain JSON so that every server can pass it on."""
    runtime.stream_writer(event.model_dump(mode="json"))


def degrade(runtime: Runtime[RunContext], part: str, error: BaseException) -> str:
    """Tells that `part` failed and the run goes on without it. Returns `part`, for the state's `degraded`.

    The log gets the kind of the error only: its words may be a document's or a question's.
    """
    log.info("A run goes on without %s: %s", part, type(error).__name__)
    emit(runtime, DegradedEvent(part=part, reason=str(error) or type(error).__name__))
    return part


def overwrite(value: T) -> T:
    """`value` in place of what a reducer would add it to. LangGraph unwraps it, so the type is the value's."""
    return cast(T, Overwrite(value))


def plain(value: T) -> T:
    """`value` as it was before `overwrite`."""
    return cast(T, value.value) if isinstance(value, Overwrite) else value
