"""How near the tokens of a sentence come to those of a place: late interaction of the embedded embedder.

Knows the token vectors and the term weights that the embedded reranker was fitted with; judges nothing. Loads at the
first call; synchronous, a few milliseconds a pair. Raises ModelError where the weights can't be had.
"""

from collections.abc import Sequence

import numpy as np

from leadline.citations.meaning import Likeness
from leadline.models import evidence
from leadline.models.evidence import EncodedTexts
from leadline.models.features import TermWeights, maxsim
from leadline.models.minilm import Encoded, MiniLM


class TokenLikeness:
    """Measures a sentence against places. Safe to call from several threads."""

    def __init__(self, encoder: MiniLM) -> None:
        self._encoder = encoder
        self._encoded = EncodedTexts(encoder)
        self._weights: TermWeights | None = None

    def __call__(self, sentence: str, places: Sequence[str]) -> list[Likeness]:
        """One likeness a place. What lies beyond the embedder's window isn't seen."""
        if self._weights is None:
            self._weights = evidence.read(evidence.WEIGHTS).terms
        encoded = self._encoded.get([sentence, *places])
        spans = self._encoder.token_spans(sentence)
        return [_likeness(encoded[sentence], encoded[place], spans, self._weights) for place in places]


def _likeness(sentence: Encoded, place: Encoded, spans: Sequence[tuple[int, int]], weights: TermWeights) -> Likeness:
    similarities = sentence.tokens @ place.tokens.T
    nearest = similarities.max(axis=1) if similarities.size else np.zeros(len(sentence.tokens))
    tokens = tuple((start, end, float(value)) for (start, end), value in zip(spans, nearest, strict=False))
    return Likeness(maxsim(similarities, weights.token_ids[sentence.token_ids]), tokens)
