"""Removes sources: invisible at once, then out of every index, then out of the catalog."""

import asyncio
from collections.abc import Sequence

from leadline.knowledge.changes import settle_all
from leadline.knowledge.opened import Opened
from leadline.knowledge.reports import DeleteReport
from leadline.stores.catalog_calibrations import drop_calibrations
from leadline.stores.catalog_sources import SourceInfo, list_sources
from leadline.stores.catalog_vectors import drop_all_unused
from leadline.stores.catalog_versions import retire_sources


async def delete(opened: Opened, sources: Sequence[SourceInfo]) -> DeleteReport:
    """Removes the sources. What can't follow now is named in the report: nothing of it is shown meanwhile."""
    if not sources:
        return report(sources)
    doc_ids = [source.doc_id for source in sources]
    await asyncio.to_thread(retire_sources, opened.catalog, opened.name, doc_ids, opened.leg_names)
    deleted = await settle_all(opened)
    return report(sources, deleted.counts, deleted.failed)


async def clear(opened: Opened) -> None:
    """Removes all sources, whatever is left in the indexes and of texts, the cached vectors that nothing uses, and the
    calibrations, which were made on what is gone."""
    await delete(opened, await asyncio.to_thread(list_sources, opened.catalog, opened.name))
    for store in opened.followers.values():
        opened.lease.ensure_held()
        await store.clear()
    await asyncio.to_thread(drop_all_unused, opened.catalog)
    await asyncio.to_thread(drop_calibrations, opened.catalog, opened.name)


def report(
    sources: Sequence[SourceInfo], counts: dict[str, int] | None = None, failed: dict[str, str] | None = None
) -> DeleteReport:
    """What a deletion of the sources did, or would do."""
    return DeleteReport(
        doc_ids=tuple(source.doc_id for source in sources),
        file_names=tuple(source.file_name for source in sources),
        chunks=sum(source.chunks for source in sources),
        legs=counts or {},
        owed=failed or {},
    )
