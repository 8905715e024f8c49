"""Opens the models that the settings name.

Importing this package imports no model library, and opening a model loads nothing: weights are read at the first use.
"""

from leadline.models.base import Embedder, Reranker
from leadline.models.evidence import EvidenceScorer
from leadline.models.hub import HubCrossEncoder, SentenceTransformerEmbedder
from leadline.models.minilm import MiniLM

__all__ = ["open_embedder", "open_reranker"]


def open_embedder(setting: str) -> Embedder:
    """The embedder that `setting` names: `embedded`, or a sentence-transformers model by hub name or folder.

    Whether the model exists is known at its first use, which raises MissingExtra or ModelUnavailable.
    """
    return MiniLM() if setting == "embedded" else SentenceTransformerEmbedder(setting)


def open_reranker(setting: str, embedder: Embedder, *, zero_point: float = 0.0) -> Reranker:
    """The reranker that `setting` names: `embedded`, or a sentence-transformers cross-encoder by hub name or folder.

    `embedder` is shared where it is the embedded one, so that its weights are in memory once. `zero_point` is taken
    off every logit. Whether the model exists and its sign can be trusted is known at its first use, which raises
    MissingExtra, ModelUnavailable or RerankerRefused; `load()` brings that forward.
    """
    if setting == "embedded":
        encoder = embedder if isinstance(embedder, MiniLM) else MiniLM()
        return EvidenceScorer(encoder, zero_point=zero_point)
    return HubCrossEncoder(setting, zero_point=zero_point)
