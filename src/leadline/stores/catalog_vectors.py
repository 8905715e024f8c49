"""The vector cache: what a model made of a text, kept by the hash of the text and the name of the model.

Nothing is embedded twice while it is here. A text that a model could not turn into a usable vector is remembered too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import and_, delete, exists, func, select

from leadline.stores.catalog import Catalog, batched, upsert
from leadline.stores.catalog_schema import chunks, memberships, sources, vectors, versions


def cached_hashes(catalog: Catalog, model: str, hashes: Sequence[str]) -> dict[str, bool]:
    """Of the texts the model has been given before: whether it gave a usable vector."""
    found: dict[str, bool] = {}
    with catalog.read() as connection:
        for batch in batched(hashes):
            usable = func.length(vectors.c.vector) > 0
            query = select(vectors.c.content_hash, usable.label("usable")).where(
                vectors.c.model == model, vectors.c.content_hash.in_(batch)
            )
            found.update({row.content_hash: bool(row.usable) for row in connection.execute(query)})
    return found


def save_vectors(catalog: Catalog, model: str, hashes: Sequence[str], matrix: NDArray[np.float32]) -> dict[str, bool]:
    """Keeps the rows of `matrix`, one a hash; returns which are usable.

    A row that isn't finite or is all zero is kept as "no vector".
    """
    usable: NDArray[np.bool] = np.isfinite(matrix).all(axis=1) & np.any(matrix, axis=1)
    rows = [
        {"content_hash": key, "model": model, "vector": row.astype("<f4").tobytes() if good else b""}
        for key, row, good in zip(hashes, matrix, usable, strict=True)
    ]
    with catalog.write_cache() as connection:
        connection.execute(upsert(connection, vectors), rows)
    return dict(zip(hashes, usable.tolist(), strict=True))


def drop_all_unused(catalog: Catalog) -> None:
    """Removes the vectors of texts that no chunk of any collection has."""
    used = exists().where(chunks.c.content_hash == vectors.c.content_hash)
    with catalog.write() as connection:
        connection.execute(delete(vectors).where(~used))
    catalog.forget_deleted()


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk whose text isn't in the cache; `prefix` is what is put before the text to embed it."""

    chunk_id: str
    prefix: str


def chunks_without_vector(catalog: Catalog, collection: str, model: str) -> dict[str, Unembedded]:
    """Content hash → a chunk of the collection with that text, of the texts that aren't in the cache."""
    query = (
        select(chunks.c.content_hash, chunks.c.chunk_id, chunks.c.prefix)
        .join(memberships, memberships.c.chunk_id == chunks.c.chunk_id)
        .join(versions, versions.c.id == memberships.c.version)
        .join(sources, sources.c.doc_id == versions.c.doc_id)
        .outerjoin(vectors, and_(vectors.c.content_hash == chunks.c.content_hash, vectors.c.model == model))
        .where(sources.c.collection == collection, versions.c.status != "retired", vectors.c.model.is_(None))
    )
    with catalog.read() as connection:
        return {row.content_hash: Unembedded(row.chunk_id, row.prefix) for row in connection.execute(query)}
