"""What tests of nodes share: a runtime that keeps the events, passages, a scorer by words, and a check of updates."""

import typing
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite
from pydantic import TypeAdapter

from leadline.config import RunContext
from leadline.models.base import ChatDelta, ChatLimits, ChatUsage
from leadline.state import Document, RAGState, RAGUpdate

PLAIN = (str, int, float, bool, type(None))


@dataclass
class Bench:
    """A node's surroundings: `runtime` puts the events into `events`."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def runtime(self, **knobs: Any) -> Runtime[RunContext]:
        """A runtime whose context has these knobs."""
        return Runtime(context=RunContext(**knobs), stream_writer=self.events.append)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of this type."""
        return [event for event in self.events if event["type"] == kind]


class WordScorer:
    """Scores by shared words: above zero when most words of the question are there."""

    name = "words"

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Share of the question's longer words, less a half."""
        self.calls.append((question, list(passages)))
        words = {word for word in question.lower().strip("?").split() if len(word) > 3}
        return [
            len(words & set(text.lower().replace(".", " ").split())) / max(len(words), 1) - 0.51 for text in passages
        ]

    score_sentences = score


class ScriptedChat:
    """An LLM that says what it is told to."""

    name = "scripted"

    def __init__(self, pieces: Sequence[str] = (), error: Exception | None = None, finish_reason: str = "stop") -> None:
        self.pieces, self.error, self.finish_reason = pieces, error, finish_reason
        self.seen: list[Any] = []

    async def limits(self) -> ChatLimits:
        """As much as anybody wants."""
        return ChatLimits()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words as tokens."""
        return [len(text.split()) for text in texts]

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """The pieces, then the error or the finish reason."""
        self.seen.append(messages)
        for piece in self.pieces:
            yield ChatDelta(text=piece)
        if self.error:
            raise self.error
        yield ChatDelta(finish_reason=self.finish_reason, usage=ChatUsage(10, 5, 0.01))

    async def structured(self, messages: Any, schema: Any, *, max_tokens: int | None = None) -> Any:
        """No node asks for an object."""
        raise NotImplementedError


@pytest.fixture
def bench() -> Bench:
    """A fresh bench."""
    return Bench()


@pytest.fixture
def words() -> WordScorer:
    """A scorer by words."""
    return WordScorer()


@pytest.fixture
def scripted() -> type[ScriptedChat]:
    """The class of scripted LLMs."""
    return ScriptedChat


@pytest.fixture
def passage() -> Callable[..., Document]:
    """Makes a passage as a leg gives it."""

    def make(content: str, chunk_id: str = "c1", *, leg: str = "bm25", rank: int = 0, **metadata: Any) -> Document:
        base = {
            "chunk_id": chunk_id,
            "doc_id": f"doc of {chunk_id}",
            "file_name": f"{chunk_id}.md",
            "file_hash": "0" * 64,
            "chunk_index": 0,
            "total_chunks": 1,
            "source_type": "file",
            "start_char": 0,
            "end_char": len(content),
            "headings": [],
            "found_by": {leg: {"rank": rank, "score": 1.0}},
        }
        return Document(content=content, metadata={**base, **metadata}, score=1.0, source=leg, rerank_score=0.0)

    return make


@pytest.fixture
def applied() -> Callable[[RAGState, RAGUpdate], RAGState]:
    """Puts an update over a state as the graph does, after checking every key and value of it."""
    return apply_update


def apply_update(state: RAGState, update: RAGUpdate) -> RAGState:
    """The next state. Fails on keys that aren't declared, values of other types, and anything but plain JSON."""
    hints = typing.get_type_hints(RAGState, include_extras=True)
    merged: dict[str, Any] = dict(state)
    for key, value in update.items():
        assert key in hints, f"{key} is no key of the state: it would be dropped without a word"
        plain = value.value if isinstance(value, Overwrite) else value
        TypeAdapter(hints[key]).validate_python(plain)
        assert_plain(plain)
        reducer = None if isinstance(value, Overwrite) else getattr(hints[key], "__metadata__", [None])[0]
        merged[key] = reducer(merged[key], plain) if callable(reducer) and key in merged else plain
    return typing.cast(RAGState, merged)


def assert_plain(value: Any) -> None:
    """Nothing but JSON types and messages, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            assert type(key) is str
            assert_plain(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            assert_plain(inner)
    elif not isinstance(value, BaseMessage):
        assert type(value) in PLAIN, f"{value!r} is a {type(value)}"
