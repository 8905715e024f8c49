"""The knowledge base over all stores: the only way documents get in, are found, and get out again.

    async with open_library(settings) as library:
        kb = await library.collection("default")
        reports = await kb.put(drafts)
        documents = await kb.search("who signed the lease", top_k=5)

`Library.retrievers(collection)` gives the graph its legs. Results are the dataclasses of `reports`.
"""

from leadline.knowledge.base import KnowledgeBase
from leadline.knowledge.library import Library, open_library
from leadline.knowledge.reports import (
    DeleteReport,
    LegReport,
    PutReport,
    PutStatus,
    ReindexReport,
    RepairReport,
    VerifyReport,
)
from leadline.stores.catalog_sources import SourceInfo

__all__ = [
    "DeleteReport",
    "KnowledgeBase",
    "LegReport",
    "Library",
    "PutReport",
    "PutStatus",
    "ReindexReport",
    "RepairReport",
    "SourceInfo",
    "VerifyReport",
    "open_library",
]
