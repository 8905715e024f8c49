"""In how many chunks each entity of a collection is: a search asks of a hundred, and some are in most chunks.

The table `graph_entities` holds what the mentions would say if they were counted. Each write that changes mentions
changes it too, in the same transaction. A collection of an earlier version of Leadline has mentions and no counts: they
are made by its first write, and until then the mentions are counted by each search.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, Select, bindparam, case, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from leadline.stores.catalog import batched
from leadline.stores.entity_graph_schema import any_of, graph_entities, graph_mentions, text_list

Mentioned = tuple[str, bool]  # an entity, and whether a chunk names it only as a word of longer names


Degree = tuple[int, int]  # in how many chunks an entity is, and in how many of them it is named as a whole

_DEGREES = select(graph_entities.c.entity, graph_entities.c.chunks, graph_entities.c.whole).where(
    graph_entities.c.collection == bindparam("collection"), any_of(graph_entities.c.entity, "entities")
)
_UNUSED = delete(graph_entities).where(
    graph_entities.c.collection == bindparam("collection"),
    graph_entities.c.entity.in_(bindparam("entities", expanding=True)),
    graph_entities.c.chunks == 0,
)
_MINE = graph_mentions.c.collection == bindparam("collection")
_WHOLE = func.sum(case((graph_mentions.c.part, 0), else_=1))
_COUNTED = select(graph_mentions.c.entity, func.count(), _WHOLE).where(_MINE).group_by(graph_mentions.c.entity)
_COUNTED_ASKED = _COUNTED.where(any_of(graph_mentions.c.entity, "entities"))


def degrees(connection: Connection, collection: str, entities: Sequence[str], *, counted: bool) -> dict[str, Degree]:
    """Entity → degree, of those of `entities` that any chunk mentions. `counted`: as `are_counted` says."""
    statement = _DEGREES if counted else _COUNTED_ASKED
    rows = connection.execute(statement, {"collection": collection, "entities": text_list(entities)}).all()
    return {entity: (chunks, whole) for entity, chunks, whole in rows}


def are_counted(connection: Connection, collection: str) -> bool:
    """Whether the table holds the degrees of the collection's entities."""
    return _has_rows(connection, select(graph_entities.c.collection), collection) or not _has_rows(
        connection, select(graph_mentions.c.collection), collection
    )


def count_all(connection: Connection, collection: str) -> None:
    """Inside a write: fills in the degrees of the collection's entities, of which there are none yet."""
    rows = select(graph_mentions.c.collection, *_COUNTED.selected_columns).where(_MINE)
    rows = rows.group_by(graph_mentions.c.collection, graph_mentions.c.entity)
    columns = ["collection", "entity", "chunks", "whole"]
    connection.execute(insert(graph_entities).from_select(columns, rows), {"collection": collection})


def note_changes(
    connection: Connection, collection: str, added: Iterable[Mentioned], removed: Iterable[Mentioned]
) -> None:
    """Inside the write that added and removed these mentions: what that does to the degrees."""
    more, less = Counter(added), Counter(removed)
    chunks: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for mentions, sign in ((more, 1), (less, -1)):
        for (entity, part), number in mentions.items():
            chunks[entity] += sign * number
            whole[entity] += 0 if part else sign * number
    changed = sorted(entity for entity in chunks if chunks[entity] or whole[entity])
    rows = [
        {"collection": collection, "entity": entity, "chunks": chunks[entity], "whole": whole[entity]}
        for entity in changed
    ]
    if rows:
        connection.execute(_growth(connection.dialect.name), rows)
    for batch in batched([entity for entity in changed if chunks[entity] < 0]):
        connection.execute(_UNUSED, {"collection": collection, "entities": batch})


@cache
def _growth(dialect: str) -> Insert:
    """Adds to the degrees that are there."""
    statement = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(graph_entities)
    summed: dict[str, Any] = {name: graph_entities.c[name] + statement.excluded[name] for name in ("chunks", "whole")}
    return statement.on_conflict_do_update(index_elements=list(graph_entities.primary_key), set_=summed)


def _has_rows(connection: Connection, rows: Select[Any], collection: str) -> bool:
    column = rows.selected_columns[0]
    return connection.execute(rows.where(column == collection).limit(1)).first() is not None
