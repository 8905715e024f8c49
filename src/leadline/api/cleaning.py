"""What a caller with a token is told of failures: without their mark on conversations, without the server's folders.

Whoever is at this machine is told all. Doesn't know where a text comes from.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from leadline.api.about import without_path
from leadline.api.access import Caller
from leadline.events import DegradedEvent, FinalEvent, RunEvent, StepEvent
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
        """A result: its error, the reason of one that failed, and where a local LLM's weights are.

        The seal is that of what is told.
        """
        told: dict[str, Any] = {}
        if "error" in result:
            told["error"] = {name: self.text(value) for name, value in result["error"].items()}
            told["verdict"] = {**result["verdict"], "reason": self.text(result["verdict"]["reason"])}
        models = {name: without_path(model) for name, model in result.get("models", {}).items()}
        if models != result.get("models", {}):
            told["models"] = models
        return sealed(cast(Result, {**result, **told})) if self._pairs and told else result

    async def events(self, events: AsyncGenerator[RunEvent, None]) -> AsyncGenerator[RunEvent, None]:
        """A run's events. Closing this closes `events`."""
        async with aclosing(events):
            async for event in events:
                yield self._event(event)

    def _event(self, event: RunEvent) -> RunEvent:
        if isinstance(event, StepEvent):
            return event.model_copy(update={"details": self._told(event.details)})
        if isinstance(event, DegradedEvent):
            return event.model_copy(update={"reason": self.text(event.reason)})
        if isinstance(event, FinalEvent):
            told = self.result(cast(Result, event.result))
            return event.model_copy(update={"result": dict(told)})
        return event

    def _told(self, value: Any) -> Any:
        """Whatever JSON holds, with its texts cleaned."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._told(each) for name, each in value.items()}
        return [self._told(each) for each in value] if isinstance(value, list) else value
