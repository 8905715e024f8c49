"""What each index of a collection is built with, and whether that is still what the settings say."""

from collections.abc import Mapping
from typing import Any, Final

from leadline.analysis import Analyzer
from leadline.config import Settings
from leadline.errors import ManifestMismatch
from leadline.models.base import Embedder
from leadline.stores import can_be_joint, is_elsewhere

FORMAT: Final = 1
ENTITY_RULES: Final = 1  # raised when `leadline.entities` finds other names in the same text
MADE_WITH: Final = "settings"
Manifest = dict[str, Any]

_SETTINGS: Final = (
    "embedding_model",
    "vector_backend",
    "lexical_backend",
    "content_backend",
    "stemmer",
    "chunk_tokens",
)
_SETTING_OF: Final = {
    ("vector", "backend"): "LEADLINE_VECTOR_BACKEND",
    ("bm25", "backend"): "LEADLINE_LEXICAL_BACKEND",
    ("vector", "place"): "LEADLINE_VECTOR_OPTIONS",
    ("bm25", "place"): "LEADLINE_LEXICAL_OPTIONS",
    ("vector", "model"): "LEADLINE_EMBEDDING_MODEL",
    ("vector", "dimension"): "LEADLINE_EMBEDDING_MODEL",
    ("bm25", "analyzer"): "LEADLINE_STEMMER",
}


def manifests_for(settings: Settings, embedder: Embedder) -> dict[str, Manifest]:
    """Leg → what its index is built with under these settings."""
    common = {
        "format": FORMAT,
        "chunk_tokens": settings.chunk_tokens,
        "tokenizer": embedder.name,
        MADE_WITH: _made_with(settings),
    }
    joint = {"joint": is_joint(settings)}
    return {
        "vector": common
        | joint
        | {
            "backend": settings.vector_backend,
            "place": _place(settings.vector_options),
            "model": embedder.name,
            "dimension": embedder.dimension,
            "metric": str(settings.vector_options.get("metric_type", "cosine")).lower(),
            "normalisation": "unit length",
        },
        "bm25": common
        | joint
        | {
            "backend": settings.lexical_backend,
            "place": _place(settings.lexical_options),
            "analyzer": Analyzer(settings.stemmer).name,
        },
        "graph": common | {"backend": "catalog", "entity_rules": ENTITY_RULES},
    }


def is_joint(settings: Settings) -> bool:
    """Whether one index serves the vector and the lexical leg: one backend that can, with the same options."""
    same = settings.vector_options == settings.lexical_options
    return same and can_be_joint(settings.vector_backend, settings.lexical_backend)


def differing_legs(stored: Mapping[str, Manifest], wanted: Mapping[str, Manifest]) -> list[str]:
    """The legs whose index is not built as `wanted`; of two that share one, both."""
    legs = {leg for leg, manifest in wanted.items() if _relevant(stored.get(leg, {})) != _relevant(manifest)}
    if wanted["vector"]["joint"] and legs & {"vector", "bm25"}:
        legs |= {"vector", "bm25"}
    return [leg for leg in wanted if leg in legs]


def cut_otherwise(stored: Mapping[str, Manifest], wanted: Mapping[str, Manifest]) -> bool:
    """Whether the chunks themselves would be others: of another size, or measured by another tokenizer."""
    keys = ("chunk_tokens", "tokenizer")
    return any(stored[leg].get(key) != wanted[leg][key] for leg in stored for key in keys)


def _relevant(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key != MADE_WITH}


def check_content(collection: str, stored: Mapping[str, Manifest], settings: Settings) -> None:
    """Raises ManifestMismatch if the texts of the collection are kept elsewhere than these settings say."""
    for manifest in stored.values():
        former = manifest[MADE_WITH]["content_backend"]
        if former != settings.content_backend:
            raise ManifestMismatch(
                f"The texts of the collection {collection} are kept in {former}, not in {settings.content_backend}.",
                hint="Set LEADLINE_CONTENT_BACKEND back, or ingest again into another collection or data folder.",
            )


def check_manifests(collection: str, stored: Mapping[str, Manifest], wanted: Mapping[str, Manifest]) -> None:
    """Raises ManifestMismatch, naming each difference and what to do."""
    legs: dict[str, list[str]] = {}  # difference → the legs that have it
    for leg, manifest in wanted.items():
        former = stored.get(leg, manifest)
        for key, value in manifest.items():
            if key != MADE_WITH and former.get(key) != value:
                legs.setdefault(f"{key} was {former.get(key)!r} and is now {value!r}{_by(leg, key)}", []).append(leg)
    if legs:
        differences = "; ".join(f"{', '.join(names)}: {difference}" for difference, names in legs.items())
        raise ManifestMismatch(
            f"The indexes of the collection {collection} were built with other settings. {differences}.",
            hint="`leadline reindex` builds them anew with these settings; or set them back.",
        )


def settings_of(settings: Settings, stored: Mapping[str, Manifest]) -> Settings:
    """These settings, with what the indexes were built with where it differs.

    Raises ManifestMismatch where an index has moved to a server that these settings don't tell.
    """
    made_with = dict(stored["vector"][MADE_WITH])
    for kind in ("vector", "lexical"):
        elsewhere, backend = made_with.pop(f"{kind}_elsewhere"), made_with[f"{kind}_backend"]
        told = is_elsewhere(getattr(settings, f"{kind}_options"))
        if (backend, elsewhere) == (getattr(settings, f"{kind}_backend"), told):
            continue
        if elsewhere:
            raise ManifestMismatch(
                f"The {kind} index has moved to {backend}.",
                hint=f"Start again with LEADLINE_{kind.upper()}_BACKEND and its options set.",
            )
        made_with[f"{kind}_options"] = {}
    return settings.model_copy(update=made_with)


def _place(options: Mapping[str, Any]) -> str:
    return "a server" if is_elsewhere(options) else "the data folder"


def _made_with(settings: Settings) -> Manifest:
    kept = {name: getattr(settings, name) for name in _SETTINGS}
    kept["vector_elsewhere"] = is_elsewhere(settings.vector_options)
    kept["lexical_elsewhere"] = is_elsewhere(settings.lexical_options)
    return kept


def _by(leg: str, key: str) -> str:
    setting = "LEADLINE_CHUNK_TOKENS" if key == "chunk_tokens" else _SETTING_OF.get((leg, key))
    return f" ({setting})" if setting else ""
