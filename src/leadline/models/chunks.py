"""A streamed reply as LiteLLM's chunks bring it: its text, its thinking, its end and its usage.

Knows the shape of chunks; makes no call.
"""

from typing import Any

from leadline.errors import ChatInterrupted
from leadline.models.base import ChatDelta, ChatUsage
from leadline.models.plain import PlainStream, plain
from leadline.models.thinking import Shown, ThinkingFilter


class StreamedReply:
    """A reply as it comes in, thinking and all. One of more than `most` characters is broken off."""

    def __init__(self, thinking: ThinkingFilter, *, most: int) -> None:
        self.thinking = thinking
        self.finish: str | None = None
        self.usage: ChatUsage | None = None
        self.received: list[str] = []
        self._most, self._length = most, 0
        self._plain = PlainStream()
        self._begun = False

    def take(self, chunk: Any, usage: ChatUsage | None) -> ChatDelta | None:
        """What of this chunk can be shown."""
        text, reason = delta_of(chunk)
        text = self._plain.feed(text)
        self.finish, self.usage = reason or self.finish, usage or self.usage
        said = thought_of(chunk) + text
        self.received.append(said)
        self._length += len(said)
        if self._length > self._most:
            raise ChatInterrupted("The model went on and on, past the length it was given.")
        return self._piece(self.thinking.feed(text)) if text else None

    def rest(self) -> ChatDelta | None:
        """What was held back to the end."""
        held, last = self.thinking.feed(self._plain.flush()), self.thinking.flush()
        before = "" if last.restart else held.text
        return self._piece(Shown(before + last.text, held.restart or last.restart))

    def _piece(self, shown: Shown) -> ChatDelta | None:
        """Without the blanks that stand before a reply, as they do behind its thinking."""
        begun = self._begun and not shown.restart
        text = shown.text if begun else shown.text.lstrip()
        self._begun = begun or bool(text)
        return ChatDelta(text, restart=shown.restart) if text or shown.restart else None


def delta_of(chunk: Any) -> tuple[str, str | None]:
    """The text and the finish reason of a chunk."""
    if not chunk.choices:
        return "", None
    choice = chunk.choices[0]
    return (choice.delta.content or "") if choice.delta else "", choice.finish_reason


def unfinished(reason: str | None) -> str:
    """A sentence where a reply that ended for this reason is no whole one, else "".

    Some providers give an object of a schema as a call of a tool, so that reason is a whole reply here.
    """
    return f"The reply stopped before its end: {reason}." if reason in ("length", "content_filter") else ""


def thought_of(chunk: Any) -> str:
    """What a provider sends of the model's thinking beside the reply: paid for, never shown."""
    return plain(str(getattr(chunk.choices[0].delta, "reasoning_content", None) or "")) if chunk.choices else ""


def invented_finish(chunks: Any) -> bool:
    """Whether LiteLLM put "stop" where the provider's stream just ended."""
    seen = [getattr(chunks, name, "") for name in ("received_finish_reason", "intermittent_finish_reason")]
    return seen == [None, None]
