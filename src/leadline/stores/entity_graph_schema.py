"""The tables of the entity graph, in the catalog's database.

A mention joins a chunk to an entity; an entity is what is mentioned. What is counted of sizes and entities is written
in the transaction that changes it.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from leadline.stores.catalog_schema import ID, metadata

graph_chunks = Table(
    "graph_chunks",
    metadata,
    Column("collection", ID, primary_key=True),
    Column("chunk_id", ID, primary_key=True),
    Column("doc_id", ID, nullable=False),
    Column("fields", JSON, nullable=False),
)

graph_mentions = Table(
    "graph_mentions",
    metadata,
    Column("collection", ID, primary_key=True),
    Column("chunk_id", ID, primary_key=True),
    Column("entity", ID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("count", Integer, nullable=False),
    # Only as a word of longer names.
    Column("part", Boolean, nullable=False),
    Index("ix_graph_mentions_entity", "collection", "entity", "count", "chunk_id", "part"),
    # The rows are the primary key's index: else SQLite reads all mentions through the other one to find a chunk's.
    sqlite_with_rowid=False,
)

# How many chunks a collection has: every search asks, and to count them takes longer than the rest of it. The row comes
# with the first write; a graph of an earlier version of Leadline has none before.
graph_sizes = Table(
    "graph_sizes",
    metadata,
    Column("collection", ID, primary_key=True),
    Column("chunks", Integer, nullable=False),
)

# In how many chunks an entity is, and in how many of them as a whole (see `entity_degrees`).
graph_entities = Table(
    "graph_entities",
    metadata,
    Column("collection", ID, primary_key=True),
    Column("entity", ID, primary_key=True),
    Column("chunks", Integer, nullable=False),
    Column("whole", Integer, nullable=False),
    sqlite_with_rowid=False,
)

TABLES = (graph_chunks, graph_mentions, graph_sizes, graph_entities)
# Statements are made once: to put one together takes longer than what it does.
_SIZE = select(graph_sizes.c.chunks).where(graph_sizes.c.collection == bindparam("collection"))
_GROWN = (
    update(graph_sizes)
    .where(graph_sizes.c.collection == bindparam("mine"))
    .values(chunks=graph_sizes.c.chunks + bindparam("more"))
)


class _Elements(FunctionElement[str]):
    """The strings of a JSON array as rows."""

    name = "elements"
    inherit_cache = True


@compiles(_Elements, "sqlite")
def _in_sqlite(element: _Elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_Elements, "postgresql")
def _in_postgres(element: _Elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS JSON))"


def any_of(column: Column[str], parameter: str) -> ColumnElement[bool]:
    """Whether the value is one of those of a parameter, which is a `text_list`.

    A parameter for each would be another statement for each number of them, made and prepared anew.
    """
    return column.in_(select(_Elements(bindparam(parameter, type_=Text)).table_valued("value").c.value))


def text_list(texts: Sequence[str]) -> str:
    """The value of a parameter of `any_of`. Without those that hold a NUL: SQLite would end them there."""
    return json.dumps([text for text in texts if "\0" not in text])


def create_tables(connection: Connection) -> None:
    """Makes the tables where they are missing."""
    metadata.create_all(connection, tables=TABLES)


def have_table(connection: Connection, table: Table) -> bool:
    """Whether the table was made."""
    return inspect(connection).has_table(table.name)


def count_chunks(connection: Connection, collection: str) -> int:
    """How many chunks there are, row by row."""
    statement = select(func.count()).select_from(graph_chunks).where(graph_chunks.c.collection == collection)
    return int(connection.execute(statement).scalar_one())


def known_size(connection: Connection, collection: str) -> int | None:
    """How many chunks there are, as it was noted."""
    return connection.execute(_SIZE, {"collection": collection}).scalar_one_or_none()


def note_growth(connection: Connection, collection: str, chunks: int) -> None:
    """Inside the write that added or (below 0) removed chunks: notes how many there are now."""
    if not connection.execute(_GROWN, {"mine": collection, "more": chunks}).rowcount:
        size = count_chunks(connection, collection)
        connection.execute(insert(graph_sizes), {"collection": collection, "chunks": size})
