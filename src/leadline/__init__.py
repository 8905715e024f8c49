"""Leadline: put documents in, get cited answers out.

Importing this package does no I/O and loads no model; each name below is imported when it is first used.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.config import RunContext, Settings, load_settings
    from leadline.errors import LeadlineError
    from leadline.graph.run import App, open_app
    from leadline.ingest.pipeline import IngestReport, ingest_paths
    from leadline.knowledge import KnowledgeBase, Library, open_library
    from leadline.state import Document, Result

__version__ = "0.1.0"

# onnxruntime tells its maker what it runs, and where, unless this is set before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [
    "App",
    "Document",
    "IngestReport",
    "KnowledgeBase",
    "LeadlineError",
    "Library",
    "Result",
    "RunContext",
    "Settings",
    "ingest_paths",
    "load_settings",
    "open_app",
    "open_library",
]

_HOMES = {
    "App": "leadline.graph.run",
    "Document": "leadline.state",
    "IngestReport": "leadline.ingest.pipeline",
    "KnowledgeBase": "leadline.knowledge",
    "LeadlineError": "leadline.errors",
    "Library": "leadline.knowledge",
    "Result": "leadline.state",
    "RunContext": "leadline.config",
    "Settings": "leadline.config",
    "ingest_paths": "leadline.ingest.pipeline",
    "load_settings": "leadline.config",
    "open_app": "leadline.graph.run",
    "open_library": "leadline.knowledge",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leadline' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
