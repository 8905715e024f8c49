"""The record of a run: what it takes to make its searches again and see what is different.

Knows what may stand in it: names, hashes, numbers and the run's own queries; no text of a passage, no secret, no folder
of this machine. How it is replayed is in `graph/replay.py`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from leadline.config import RunContext, Settings
from leadline.records import SourceSeen
from leadline.state import RAGState, RunRecord, Verdict

FORMAT: Final = 1  # raised when a record can't be replayed as one of before
KNOBS: Final = frozenset({"top_k", "rerank_top_k", "max_retries", "max_context_tokens", "filters", "web"})

# A folder before a name: /models/x.gguf, local:/models/x.gguf, C:\\models\\x, ~/models/x.
_FOLDER = re.compile(r"(?:^|(?<=:))(?:~|[A-Za-z]:)?[/\\](?:.*[/\\])?(?=.)")


def record_of(
    state: RAGState, context: RunContext, settings: Mapping[str, Any], library: str, verdict: Verdict
) -> RunRecord:
    """The record of a run that ends with `verdict`. `settings` are those that retrieval depends on."""
    return RunRecord(
        format=FORMAT,
        leadline=version("leadline"),
        library=library,
        collection=context.collection,
        settings=dict(settings),
        settings_hash=settings_hash(settings),
        knobs=context.model_dump(mode="json", include=set(KNOBS)),
        passes=list(state.get("passes", [])),
        path=[*state.get("path", []), verdict],
        judged_by=list(state.get("queries", [])),
        zero_point=state.get("zero_point", 0.0),
        sources={
            seen["doc_id"]: SourceSeen(file_name=seen["file_name"], file_hash=seen["file_hash"])
            for seen in state.get("sightings", [])
        },
    )


def retrieval_settings(settings: Settings) -> dict[str, Any]:
    """Those of an installation that decide what is found and how it is ranked.

    Of a backend's options only numbers, switches and the type of index: the others may be addresses and secrets.
    """
    return {
        "vector_backend": settings.vector_backend,
        "vector_options": _harmless_options(settings.vector_options),
        "lexical_backend": settings.lexical_backend,
        "lexical_options": _harmless_options(settings.lexical_options),
        "stemmer": settings.stemmer,
        "embedding_model": without_folder(settings.embedding_model),
        "reranker_model": without_folder(settings.reranker_model),
        "chunk_tokens": settings.chunk_tokens,
        "max_wrong": settings.max_wrong,
    }


def _harmless_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if isinstance(value, int | float) or name == "index_type"}


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Tells these settings from others: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def without_folder(name: str) -> str:
    """A model's name without the folder it may be in, which is nobody else's business."""
    return _FOLDER.sub("", name)
