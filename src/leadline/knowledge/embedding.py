"""The step between records and a vector store: gives each record the vector of its text.

Knows that a record keeps its id, so that a save can ask its store first. Knows no store and no cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from leadline.events import DocumentEmbedded, Event
from leadline.models.base import Embedder
from leadline.stores.base import ChunkRecord, Failed, Policy
from leadline.stores.batches import in_batches
from leadline.stores.lazy import Tell
from leadline.stores.steps import Records, Unfinished


class Embedded:
    """Records with vectors, as `steps.Unfinished`: a record that has some already keeps them.

        await store.save(Embedded(records, embedder), skip_existing=True).run()

    With `skip_existing` only what the store lacks is embedded, and if `records` are unfinished themselves (such as
    `CatalogRecords`) only of that is the text read. A stream that looks at the text of all records before, such as a
    generator that leaves some out, has to be given all of it.
    """

    def __init__(self, records: Records, embedder: Embedder) -> None:
        self._records = records
        self._unfinished = records if isinstance(records, Unfinished) else None
        self._embedder = embedder

    async def __aiter__(self) -> AsyncGenerator[ChunkRecord | Failed, None]:
        async with aclosing(in_batches(self.headers(), self._embedded, Policy())) as batches:
            async for batch in batches:
                for item in batch:
                    yield item

    def headers(self) -> Records:
        """The records before they are embedded."""
        return self._records if self._unfinished is None else self._unfinished.headers()

    async def complete(self, headers: Sequence[ChunkRecord], *, fresh: bool, tell: Tell) -> list[ChunkRecord | Failed]:
        """The records with vectors; `fresh` asks a source that keeps some for none of them. Raises ModelError."""
        whole: Sequence[ChunkRecord | Failed] = headers
        if self._unfinished is not None:
            whole = await self._unfinished.complete(headers, fresh=fresh, tell=_say_nothing)
        records = [item for item in whole if isinstance(item, ChunkRecord)]
        made = await self._embed([record for record in records if not record.vectors])
        for record in records:
            tell(DocumentEmbedded(chunk_id=record.chunk_id, cached=record.chunk_id not in made))
        return [made.get(item.chunk_id, item) if isinstance(item, ChunkRecord) else item for item in whole]

    async def _embed(self, records: Sequence[ChunkRecord]) -> dict[str, ChunkRecord]:
        if not records:
            return {}
        texts = [record.text for record in records]
        vectors = await asyncio.to_thread(self._embedder.embed_passages, texts)
        return {each.chunk_id: replace(each, vectors=(vector,)) for each, vector in zip(records, vectors, strict=True)}

    async def _embedded(self, items: list[ChunkRecord | Failed]) -> list[ChunkRecord | Failed]:
        records = [item for item in items if isinstance(item, ChunkRecord)]
        failed = [item for item in items if isinstance(item, Failed)]
        return [*await self.complete(records, fresh=False, tell=_say_nothing), *failed]


def _say_nothing(event: Event) -> None:
    """Of the stages of one record only the last one tells."""
