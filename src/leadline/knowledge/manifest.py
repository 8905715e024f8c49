"""What each index of a collection is built with, and whether that is still what the settings say."""

from collections.abc import Mapping
from typing import Any, Final

from leadline.analysis import Analyzer
from leadline.config import Settings
from leadline.errors import ManifestMismatch
from leadline.models.base import Embedder

FORMAT: Final = 1
ENTITY_RULES: Final = 1  # raised when `leadline.entities` finds other names in the same text
Manifest = dict[str, Any]

_SETTING_OF: Final = {
    "backend": "the backend",
    "model": "LEADLINE_EMBEDDING_MODEL",
    "dimension": "LEADLINE_EMBEDDING_MODEL",
    "analyzer": "LEADLINE_STEMMER",
    "chunk_tokens": "LEADLINE_CHUNK_TOKENS",
}


def manifests_for(settings: Settings, embedder: Embedder) -> dict[str, Manifest]:
    """Leg → what its index is built with under these settings."""
    common = {"format": FORMAT, "chunk_tokens": settings.chunk_tokens, "tokenizer": embedder.name}
    return {
        "vector": common
        | {
            "backend": settings.vector_backend,
            "model": embedder.name,
            "dimension": embedder.dimension,
            "metric": "cosine",
            "normalisation": "unit length",
        },
        "bm25": common | {"backend": settings.lexical_backend, "analyzer": Analyzer(settings.stemmer).name},
        "graph": common | {"backend": "catalog", "entity_rules": ENTITY_RULES},
    }


def check_manifests(collection: str, stored: Mapping[str, Manifest], wanted: Mapping[str, Manifest]) -> None:
    """Raises ManifestMismatch, naming each difference and what to do."""
    differences = [
        f"{leg}: {key} is {stored[leg].get(key)!r}, the settings say {value!r}"
        for leg, manifest in wanted.items()
        if leg in stored
        for key, value in manifest.items()
        if stored[leg].get(key) != value
    ]
    if differences:
        raise ManifestMismatch(
            f"The indexes of the collection {collection} were built otherwise. {'; '.join(differences)}.",
            hint="Set it back to go on with this collection, or ingest again into a new --collection or --data-dir.",
        )
