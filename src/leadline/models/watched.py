"""A reranker that is not asked again while an earlier call of it hangs: each would cost one more thread.

A thread can't be ended from outside. Whoever waits for one gives up at some time; this knows that it is still at it.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from leadline.errors import ModelUnavailable
from leadline.models.base import Reranker

# Of the time that callers wait: they began to count before the call did.
_SHARE = 0.8


class Watched:
    """`reranker`, which raises ModelUnavailable at once while a call has been going on for about `timeout_s`."""

    def __init__(self, reranker: Reranker, timeout_s: float) -> None:
        self._reranker = reranker
        self._timeout_s = timeout_s
        self._begun: dict[object, float] = {}

    @property
    def name(self) -> str:
        """The model's."""
        return self._reranker.name

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See `Reranker.score`."""
        return self._watched(self._reranker.score, question, passages)

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """See `Reranker.score_sentences`."""
        return self._watched(self._reranker.score_sentences, question, sentences)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reranker, name)

    def _watched(
        self, call: Callable[[str, Sequence[str]], list[float]], question: str, texts: Sequence[str]
    ) -> list[float]:
        now, key = time.monotonic(), object()
        if any(now - begun > _SHARE * self._timeout_s for begun in list(self._begun.values())):
            raise ModelUnavailable(f"The reranker is still busy with a call of more than {self._timeout_s:g} s before.")
        self._begun[key] = now
        try:
            return call(question, texts)
        finally:
            del self._begun[key]
