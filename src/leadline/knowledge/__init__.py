"""The knowledge base over all stores: the only way documents get in, are found, and get out again.

    async with open_library(settings) as library:
        kb = await library.collection("default")
        reports = await kb.put(drafts)
        summary = await kb.sync(stream_of_drafts).run()
        documents = await kb.search("who signed the lease", top_k=5)

`Library.retrievers(collection)` gives the graph its legs. Results are the dataclasses of `reports`.
"""

from leadline.knowledge.base import KnowledgeBase
from leadline.knowledge.embedding import Embedded
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
from leadline.stores.base import Failed, Policy
from leadline.stores.catalog_records import CatalogRecords
from leadline.stores.catalog_sources import SourceInfo
from leadline.stores.lazy import Summary

__all__ = [
    "CatalogRecords",
    "DeleteReport",
    "Embedded",
    "Failed",
    "KnowledgeBase",
    "LegReport",
    "Library",
    "Policy",
    "PutReport",
    "PutStatus",
    "ReindexReport",
    "RepairReport",
    "SourceInfo",
    "Summary",
    "VerifyReport",
    "open_library",
]
