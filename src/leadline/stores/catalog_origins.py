"""Whether the catalog still holds what an answer was made from."""

from collections.abc import Sequence

from sqlalchemy import literal, select, union_all

from leadline.records import Origin
from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_schema import memberships, sources, versions


def still_there(catalog: Catalog, origins: Sequence[Origin]) -> set[str]:
    """The ids of the chunks whose text the live sources still hold, in any collection.

    A chunk that is live, or whose source is live with the bytes it had: it may have been cut anew. One statement for
    as many as fit into one.
    """
    chunks_live: set[str] = set()
    hashes: dict[str, str] = {}
    with catalog.read() as connection:
        for batch in batched(origins):
            live = select(literal("chunk").label("kind"), memberships.c.chunk_id.label("id"), literal("").label("hash"))
            live = live.join_from(memberships, sources, sources.c.live_version == memberships.c.version)
            live = live.where(memberships.c.chunk_id.in_({origin["chunk_id"] for origin in batch}))
            held = select(literal("source"), sources.c.doc_id, versions.c.file_hash)
            held = held.join_from(sources, versions, versions.c.id == sources.c.live_version)
            held = held.where(sources.c.doc_id.in_({origin["doc_id"] for origin in batch}))
            for kind, name, file_hash in connection.execute(union_all(live, held)):
                if kind == "chunk":
                    chunks_live.add(name)
                else:
                    hashes[name] = file_hash
    return {
        origin["chunk_id"]
        for origin in origins
        if origin["chunk_id"] in chunks_live or hashes.get(origin["doc_id"]) == origin["file_hash"]
    }
