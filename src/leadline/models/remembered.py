"""A reranker that knows its last answers: a question that is asked again costs no model again.

What scores is fixed, so the same question and the same passages have the same scores. Only a hash of them is kept.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from leadline.models.base import Reranker

KEPT_CALLS: Final = 4096  # at some hundred bytes each


class Remembered:
    """`reranker`, whose last KEPT_CALLS calls are answered from memory. What failed is asked anew."""

    def __init__(self, reranker: Reranker, kept: int = KEPT_CALLS) -> None:
        self._reranker = reranker
        self._kept = kept
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[float, ...]] = OrderedDict()

    @property
    def name(self) -> str:
        """The model's."""
        return self._reranker.name

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See `Reranker.score`."""
        return self._remembered("passages", self._reranker.score, question, passages)

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """See `Reranker.score_sentences`."""
        return self._remembered("sentences", self._reranker.score_sentences, question, sentences)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reranker, name)

    def _remembered(
        self, kind: str, call: Callable[[str, Sequence[str]], list[float]], question: str, texts: Sequence[str]
    ) -> list[float]:
        key = _key(kind, question, texts)
        with self._lock:
            if (known := self._known.get(key)) is not None:
                self._known.move_to_end(key)
                return list(known)
        scores = call(question, texts)
        with self._lock:
            self._known[key] = tuple(scores)
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return scores


def _key(*parts: str | Sequence[str]) -> bytes:
    """Of these texts in this order, and of no others: each is hashed with its length before it."""
    digest = hashlib.sha256()
    for part in parts:
        for text in [part] if isinstance(part, str) else part:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()
