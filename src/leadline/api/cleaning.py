"""What a caller with a token is told of failures: without their mark on conversations, without the server's folders.

Whoever is at this machine is told all. Doesn't know where a text comes from.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import cast

from leadline.api.access import Caller
from leadline.events import DegradedEvent, FinalEvent, RunEvent
from leadline.graph.seal import sealed
from leadline.state import Result


class Cleaning:
    """Takes what is not for `who` out of errors and out of a run's reasons."""

    def __init__(self, who: Caller, place: Path) -> None:
        mark = who.thread("")
        folders = dict.fromkeys((str(place), str(place.absolute()), str(place.resolve()))) if mark else {}
        within = [pair for each in folders for pair in ((f" in {each}", ""), (each, "the data folder"))]
        self._pairs = [(mark, ""), *within] if mark else []

    def text(self, text: str) -> str:
        """A message or a hint."""
        for inner, outer in self._pairs:
            text = text.replace(inner, outer)
        return text

    def result(self, result: Result) -> Result:
        """A result: its error, and the reason of one that failed. The seal is that of what is told."""
        if not self._pairs or "error" not in result:
            return result
        error = {name: self.text(value) for name, value in result["error"].items()}
        verdict = {**result["verdict"], "reason": self.text(result["verdict"]["reason"])}
        return sealed(cast(Result, {**result, "error": error, "verdict": verdict}))

    async def events(self, events: AsyncGenerator[RunEvent, None]) -> AsyncGenerator[RunEvent, None]:
        """A run's events. Closing this closes `events`."""
        async with aclosing(events):
            async for event in events:
                yield self._event(event)

    def _event(self, event: RunEvent) -> RunEvent:
        if isinstance(event, DegradedEvent):
            return event.model_copy(update={"reason": self.text(event.reason)})
        if isinstance(event, FinalEvent):
            told = self.result(cast(Result, event.result))
            return event.model_copy(update={"result": dict(told)})
        return event
