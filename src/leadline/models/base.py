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
    """What was spent, as the provider reports it, else as the model's tokenizer counts it; `cost` 0 without a price.

    `calls` are replies, not tries: a repair is one more, a try that got no reply is none.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    calls: int = 1

    def __add__(self, other: "ChatUsage") -> "ChatUsage":
        return ChatUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a streamed reply. The last one has a `finish_reason` and the usage.

    `restart`: what came before this piece was the model's thinking, which it had not announced, and no part of the
    reply.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: ChatUsage = field(default_factory=ChatUsage)
    restart: bool = False


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """What a chat model can take, in its own tokens; None where nobody says.

    `context` is for prompt and reply together. `evidence` is as much evidence as the model still reads well and fast.
    `reply` is the longest reply it gives. Prices are of one token, 0 where there is none.
    """

    context: int | None = None
    evidence: int | None = None
    reply: int | None = None
    prompt_price: float = 0.0
    reply_price: float = 0.0


class ChatModel(Protocol):
    """A chat LLM. `max_tokens` bounds a reply: one that reaches it ends with the finish reason `length`."""

    @property
    def name(self) -> str: ...

    async def limits(self) -> ChatLimits:
        """What it can take. May start the model or ask its server; raises ModelError when that fails."""
        ...

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text by the model's own tokenizer, or by a near one where that can't be had."""
        ...

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """Yields the reply piece by piece, without what the model thinks.

        Raises ChatFailed, or ChatInterrupted when the stream ends unfinished; both say what was spent.
        """
        ...

    async def structured(
        self, messages: Sequence[Mapping[str, Any]], schema: type[T], *, max_tokens: int | None = None
    ) -> tuple[T, ChatUsage]:
        """One reply as a validated object: JSON schema where the model supports it, else a tolerant parse and one
        repair. Raises ChatFailed when neither gives a valid object: callers fall back to their rule."""
        ...
