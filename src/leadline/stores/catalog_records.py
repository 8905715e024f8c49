"""A collection as a stream of records, for an index that is filled from the catalog.

Ids and fields come first; text and cached vectors are read for the records that are wanted, and only for those.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, select, tuple_

from leadline.stores.base import ChunkRecord, ChunkStore, Failed
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_outbox import BareRecord, Part, filter_fields, read_records
from leadline.stores.catalog_schema import memberships, sources, versions
from leadline.stores.lazy import Tell

PAGE: Final = 1000


class CatalogRecords:
    """The live chunks of a collection, as `steps.Unfinished`.

        await store.save(CatalogRecords(catalog, content, "default", embedder.name), skip_existing=True).run()

    A record has the vector that the catalog keeps of the `model`, if it does; see `knowledge.embedding` for those
    without. What is deleted while the stream is read may be left out of it; a chunk whose text is missing in `content`
    is a Failed.
    """

    def __init__(self, catalog: Catalog, content: ChunkStore, collection: str, model: str) -> None:
        self._catalog = catalog
        self._content = content
        self._collection = collection
        self._model = model
        self._places: dict[str, Part] = {}

    async def __aiter__(self) -> AsyncGenerator[ChunkRecord | Failed, None]:
        async for page in self._pages():
            for record in await self._read(page, fresh=False):
                yield record

    async def headers(self) -> AsyncGenerator[ChunkRecord, None]:
        """The records without text and vectors, in the order of their sources."""
        async for page in self._pages():
            for record in page:
                yield record

    async def complete(
        self,
        headers: Sequence[ChunkRecord],
        *,
        fresh: bool,
        tell: Tell,  # noqa: ARG002 - nothing is embedded here
    ) -> list[ChunkRecord | Failed]:
        """The records with their text and, unless `fresh`, their vector."""
        return await self._read(headers, fresh)

    async def _pages(self) -> AsyncGenerator[list[ChunkRecord], None]:
        last = (-1, -1)
        while rows := await asyncio.to_thread(self._rows_after, *last):
            self._places |= {row.chunk_id: _place(row) for row in rows}
            yield [ChunkRecord(row.chunk_id, row.doc_id, fields=filter_fields(row)) for row in rows]
            last = (rows[-1].version, rows[-1].chunk_index)

    def _rows_after(self, version: int, chunk_index: int) -> Sequence[Row[Any]]:
        place = tuple_(memberships.c.version, memberships.c.chunk_index)
        query = (
            select(
                memberships.c.version, memberships.c.chunk_id, memberships.c.chunk_index, memberships.c.page, versions
            )
            .join(sources, sources.c.live_version == memberships.c.version)
            .join(versions, versions.c.id == memberships.c.version)
            .where(sources.c.collection == self._collection, place > (version, chunk_index))
            .order_by(memberships.c.version, memberships.c.chunk_index)
            .limit(PAGE)
        )
        with self._catalog.read() as connection:
            return connection.execute(query).all()

    async def _read(self, headers: Sequence[ChunkRecord], fresh: bool) -> list[ChunkRecord | Failed]:
        parts = _joined([self._places[header.chunk_id] for header in headers])
        model = "" if fresh else self._model
        found = await asyncio.to_thread(read_records, self._catalog, model, parts)
        by_id = {bare.chunk_id: bare for of_version in found.values() for bare in of_version}
        wanted = [by_id[header.chunk_id] for header in headers if header.chunk_id in by_id]
        texts = await self._content.fetch([bare.chunk_id for bare in wanted])
        return [_whole(bare, texts) for bare in wanted]


def _whole(bare: BareRecord, texts: Mapping[str, str]) -> ChunkRecord | Failed:
    if bare.chunk_id in texts:
        return bare.with_text(texts[bare.chunk_id])
    return Failed(bare.chunk_id, "its text is missing")


def _place(row: Row[Any]) -> Part:
    return Part(row.version, row.chunk_index, row.chunk_index + 1, row.chunks)


def _joined(places: Sequence[Part]) -> list[Part]:
    """The same places with neighbours as one: few statements for a whole source."""
    joined: list[Part] = []
    for place in sorted(places, key=lambda place: (place.version, place.start)):
        former = joined[-1] if joined else None
        if former is not None and former.version == place.version and former.stop >= place.start:
            joined[-1] = Part(place.version, former.start, place.stop, place.size)
        else:
            joined.append(place)
    return joined
