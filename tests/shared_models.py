"""The shipped models, opened once for all tests of a process: they are the same files for each, and reading them and
scoring the same passages anew is most of what many a test would do. The tests of the models open their own."""

import functools

from leadline import models
from leadline.models.base import Embedder, Reranker
from leadline.models.remembered import Remembered

_open_embedder = models.open_embedder
_open_reranker = models.open_reranker


@functools.cache
def _shipped_embedder() -> Embedder:
    return _open_embedder("embedded")


@functools.cache
def _shipped_reranker(zero_point: float) -> Reranker:
    return Remembered(_open_reranker("embedded", _shipped_embedder(), zero_point=zero_point))


def open_embedder(setting: str) -> Embedder:
    """As the product's, but always the same one for `embedded`."""
    return _shipped_embedder() if setting == "embedded" else _open_embedder(setting)


def open_reranker(setting: str, embedder: Embedder, *, zero_point: float = 0.0) -> Reranker:
    """As the product's, but always the same one over the shared embedder."""
    if setting == "embedded" and embedder is _shipped_embedder():
        return _shipped_reranker(zero_point)
    return _open_reranker(setting, embedder, zero_point=zero_point)


def share() -> None:
    """From now on the product's modules get these; to be called before they are imported."""
    models.open_embedder = open_embedder
    models.open_reranker = open_reranker
