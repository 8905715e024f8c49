"""The tables of the entity graph, in the catalog's database.

A mention joins a chunk to an entity; an entity is what is mentioned, so there is no row to be left over when its last
mention goes.
"""

from sqlalchemy import JSON, Boolean, Column, Connection, Index, Integer, Table, Text, inspect

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

TABLES = (graph_chunks, graph_mentions)


def create_tables(connection: Connection) -> None:
    """Makes the tables where they are missing."""
    metadata.create_all(connection, tables=TABLES)


def have_tables(connection: Connection) -> bool:
    """Whether the tables were made."""
    return inspect(connection).has_table(graph_mentions.name)
