"""Asks the database of an embedded Chroma folder beside Chroma, or before it opens."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

DATABASE = "chroma.sqlite3"
TABLES = ("collections", "segments", "max_seq_id", "embeddings", "embeddings_queue")


def is_made(folder: Path) -> bool:
    """Whether the database is there with its tables. Raises sqlite3.Error."""
    return bool(rows(folder, "SELECT 1"))


def rows(folder: Path, question: str) -> list[tuple[Any, ...]]:
    """What the database says; nothing where there is none, or Chroma was killed before it had made its tables.

    Opened for writing too, so that SQLite may roll back what a killed process left half done. Raises sqlite3.Error.
    """
    path = folder / DATABASE
    if not path.is_file():
        return []
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return connection.execute(question).fetchall() if found.issuperset(TABLES) else []
