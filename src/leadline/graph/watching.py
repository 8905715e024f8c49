"""A run as those who count and trace it see it: its beginning, its events, and its one end.

Knows what a span of a run says. Doesn't know who counts.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from leadline.config import RunContext
from leadline.errors import LeadlineError
from leadline.events import FinalEvent, RunEvent
from leadline.telemetry import RunScope

CANCELLED = "cancelled"  # nobody wanted the end of it
REFUSED = "refused"  # such as one in a conversation that has a run


class RunObserver(Protocol):
    """Somebody who counts runs. Nothing of it may raise."""

    def begun(self) -> None:
        """A run begins."""
        ...

    def happened(self, event: RunEvent, seconds: float, *, first: bool) -> None:
        """An event, so long after the beginning. `first`: of this kind in this run."""
        ...

    def ended(self, status: str, seconds: float) -> None:
        """The run is over: its result's status, CANCELLED or REFUSED."""
        ...


async def watched(
    events: AsyncGenerator[RunEvent, None], observers: Sequence[RunObserver], context: RunContext
) -> AsyncGenerator[RunEvent, None]:
    """The events as they are. In logs and traces what happens between them has the run's id."""
    scope = RunScope({"leadline.llm": bool(context.llm), "leadline.web": context.web})
    begun, status = time.monotonic(), CANCELLED
    seen: set[str] = set()
    for observer in observers:
        observer.begun()
    try:
        async with aclosing(events):
            while True:
                with scope.step():
                    event = await anext(events, None)
                if event is None:
                    break
                for observer in observers:
                    observer.happened(event, time.monotonic() - begun, first=event.type not in seen)
                seen.add(event.type)
                if isinstance(event, FinalEvent):
                    status = str(event.result["status"])
                    scope.span.set(_of_result(event.result))
                yield event
    except LeadlineError:
        status = REFUSED
        raise
    finally:
        if status in (CANCELLED, "error"):
            scope.span.fail(status)
        scope.span.set({"leadline.status": status})
        scope.end()
        for observer in observers:
            observer.ended(status, time.monotonic() - begun)


def _of_result(result: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """What a result says in names and numbers."""
    usage = {f"leadline.usage.{key}": value for key, value in result.get("usage", {}).items()}
    return {
        **{key: value for key, value in usage.items() if isinstance(value, int | float)},
        "leadline.citations": len(result.get("citations", [])),
        "leadline.queries": len(result.get("queries", [])),
        "leadline.web_used": bool(result.get("web_used")),
        "leadline.degraded": ",".join(result.get("degraded", [])),
        "leadline.flags": ",".join(result.get("flags", [])),
        "leadline.limits": ",".join(result.get("limits", [])),
    }
