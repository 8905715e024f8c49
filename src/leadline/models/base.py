"""The three kinds of model, as the rest of Leadline sees them. Implementations load lazily and are synchronous:
callers run them in a thread (`asyncio.to_thread`). All are safe to call from several threads.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

Vectors = NDArray[np.float32]
T = TypeVar("T", bound=BaseModel)


class Tokenizer(Protocol):
    """Counts text as a model reads it."""

    @property
    def max_tokens(self) -> int:
        """How many tokens of text the model reads, special tokens not counted."""
        ...

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end character of each token of `text`, in order, special tokens left out, nothing cut."""
        ...


class Embedder(Tokenizer, Protocol):
    """Turns text into unit-length vectors."""

    @property
    def name(self) -> str:
        """Identity of the weights (name and hash): goes into the manifest and the vector cache's key."""
        ...

    @property
    def dimension(self) -> int: ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), float32, each row of length 1, in the order given.

        Batches by length inside. A text longer than the window is cut by the model: callers chunk first.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,), float32, length 1."""
        ...


class Reranker(Protocol):
    """Scores passages against a question by a logit whose sign means something."""

    @property
    def name(self) -> str: ...

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """One logit a passage, zero point taken off: above 0 = holds the answer, below = does not.

        Never an exact 0.0. NaN where the model gave nothing finite (the passage counts as not scored). Long
        passages are scored by windows, the best one counts. Raises ModelError.
        """
        ...

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """The same for single sentences, with a fit of its own where the model has one."""
        ...


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """What one call cost, as the provider reports it; 0 where it says nothing."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a streamed reply. The last one has a `finish_reason` and the usage."""

    text: str = ""
    finish_reason: str | None = None
    usage: ChatUsage = field(default_factory=ChatUsage)


class ChatModel(Protocol):
    """A chat LLM."""

    @property
    def name(self) -> str: ...

    def stream(self, messages: Sequence[Mapping[str, Any]]) -> AsyncIterator[ChatDelta]:
        """Yields the reply piece by piece. Raises ChatFailed, or ChatInterrupted when the stream ends unfinished."""
        ...

    async def structured(self, messages: Sequence[Mapping[str, Any]], schema: type[T]) -> tuple[T, ChatUsage]:
        """One reply as a validated object: JSON schema where the model supports it, else a tolerant parse and one
        repair. Raises ChatFailed when neither gives a valid object: callers fall back to their rule."""
        ...
