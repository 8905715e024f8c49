"""Passages of the web in the catalog, and which of them a search found, until they expire.

Anybody may add them at any time: they follow from nothing else that is kept, so no lease is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, select

from leadline.drafts import WebPassage
from leadline.stores.catalog import Catalog, batched, upsert
from leadline.stores.catalog_schema import web_passages, web_searches

_COLUMNS = ("url", "text", "retrieved_at")


@dataclass(frozen=True, slots=True)
class KeptSearch:
    """What a search found, best first; up to date until `expires` (seconds since the epoch)."""

    passages: tuple[WebPassage, ...]
    expires: float


def save_web_search(
    catalog: Catalog, key: str, passages: Sequence[WebPassage], *, expires: float, forget_before: float
) -> None:
    """Keeps what the search `key` found in the place of what it found before; forgets what expired long ago."""
    rows = [_row(passage, expires) for passage in {passage.chunk_id: passage for passage in passages}.values()]
    with catalog.write_cache() as connection:
        for table in (web_searches, web_passages):
            connection.execute(delete(table).where(table.c.expires < forget_before))
        if rows:
            connection.execute(upsert(connection, web_passages), rows)
        found = {"key": key, "chunk_ids": [row["chunk_id"] for row in rows], "expires": expires}
        connection.execute(upsert(connection, web_searches), found)


def find_web_search(catalog: Catalog, key: str) -> KeptSearch | None:
    """What the search found, expired or not."""
    with catalog.read() as connection:
        wanted = select(web_searches.c.chunk_ids, web_searches.c.expires).where(web_searches.c.key == key)
        kept = connection.execute(wanted).first()
        if kept is None:
            return None
        passages = _passages(connection, kept.chunk_ids)
    there = (passages[chunk_id] for chunk_id in kept.chunk_ids if chunk_id in passages)
    return KeptSearch(tuple(there), kept.expires)


def find_web_passages(catalog: Catalog, chunk_ids: Sequence[str]) -> dict[str, WebPassage]:
    """Those that are kept, by id."""
    with catalog.read() as connection:
        return _passages(connection, chunk_ids)


def drop_web(catalog: Catalog) -> int:
    """Forgets everything of the web; returns how many passages there were. Writes only where there is something."""
    with catalog.read() as connection:
        if connection.execute(select(web_searches.c.key).limit(1)).first() is None:
            return 0
    with catalog.write_cache() as connection:
        connection.execute(delete(web_searches))
        gone = connection.execute(delete(web_passages)).rowcount
    catalog.forget_deleted()
    return gone


def _row(passage: WebPassage, expires: float) -> dict[str, Any]:
    rest = {name: value for name, value in asdict(passage).items() if name not in _COLUMNS}
    columns = {name: getattr(passage, name) for name in _COLUMNS}
    return {"chunk_id": passage.chunk_id, **columns, "passage": rest, "expires": expires}


def _passages(connection: Connection, chunk_ids: Sequence[str]) -> dict[str, WebPassage]:
    found: dict[str, WebPassage] = {}
    for batch in batched(chunk_ids):
        rows = connection.execute(select(web_passages).where(web_passages.c.chunk_id.in_(batch)))
        found.update({row.chunk_id: _passage(row._asdict()) for row in rows})
    return found


def _passage(row: Mapping[str, Any]) -> WebPassage:
    rest = {**row["passage"], "headings": tuple(row["passage"]["headings"])}
    return WebPassage(url=row["url"], text=row["text"], retrieved_at=row["retrieved_at"], **rest)
