"""Opens the models that the settings name.

Importing this package imports no model library, and opening a model loads nothing: weights are read at the first use.
"""

from leadline.models.base import Embedder
from leadline.models.minilm import MiniLM

__all__ = ["open_embedder"]


def open_embedder(setting: str) -> Embedder:
    """The embedder that `setting` names: `embedded`, or a sentence-transformers model by hub name or folder.

    Raises MissingExtra when the setting needs a package that isn't installed. Whether the model exists is known at
    its first use, which raises ModelUnavailable.
    """
    if setting == "embedded":
        return MiniLM()
    from leadline.models.hub import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(setting)
