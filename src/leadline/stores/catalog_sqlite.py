"""The catalog in a file of the data folder: SQLite's settings, and what a damaged file looks like.

Every commit is on disk when it returns (WAL with synchronous=FULL): an acknowledged document outlives a killed
process and a power cut. With a few commits a batch the price can't be measured beside the embedding.
"""

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from leadline.errors import StoreBusy, StoreError
from leadline.stores.catalog_database import BUSY_TIMEOUT_S, WRITES, damaged
from leadline.stores.sqlite_file import FULL, check_path, remedy

PAUSE_S: Final = 0.01
_HEADER: Final = b"SQLite format 3\x00"
_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    # What is deleted is overwritten with zeros: no text of a deleted source stays in the file.
    "PRAGMA secure_delete=ON",
)


class SqliteFile:
    """A `Database` in one file, made where there is none."""

    read_options: Mapping[str, Any] = {}  # a transaction sees one state anyway

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """The file."""
        return str(self._path)

    def is_missing(self) -> bool:
        """Whether there is no file."""
        return not self._path.exists()

    def connect(self) -> Engine:
        """An engine over the file, whose folder is made. Raises StoreDamaged, StoreError."""
        check_path(self._path)
        self._check_file()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The data folder {self._path.parent} can't be made: {error.strerror}.",
                hint="Give this user the right to write there, or set another data folder.",
            ) from error
        engine = create_engine(
            URL.create("sqlite", database=str(self._path)),
            connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
            pool_use_lifo=True,  # the connection that was used last has the pages that were read last
        )
        event.listen(engine, "connect", _on_connect)
        event.listen(engine, "begin", _on_begin)
        return engine

    def prepare(self, connection: Connection) -> None:
        """Nothing to do."""

    def explanation(self, error: DBAPIError) -> StoreError:
        """By SQLite's code."""
        code = getattr(error.orig, "sqlite_errorcode", None) or 0
        kind = code & 0xFF  # the rest says more
        if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return damaged(self.place, str(error.orig))
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreBusy(f"The catalog {self.place} could not be used: {error.orig}.", hint=remedy(error.orig))
        if code in FULL:
            message = f"The disk of the catalog {self.place} is full. Nothing of this step was kept."
        elif kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            message = f"The catalog {self.place} can't be written to, as even a question must: {error.orig}."
        else:
            message = f"The catalog {self.place} could not be used: {error.orig}."
        return StoreError(message, hint=remedy(error.orig))

    def forget_deleted(self, engine: Engine) -> None:
        """Empties the write-ahead log, where text of deleted rows would stay until it is written over."""
        raw = engine.raw_connection()  # outside a transaction, where alone it can be done
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            raw.close()

    def integrity_problems(self, connection: Connection) -> list[str]:
        """What SQLite's own check of the whole file finds wrong; reads all of it."""
        rows = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        problems = [str(row) for row in rows if row != "ok"]
        return problems + [f"{row[0]} refers to a missing row of {row[2]}" for row in broken]

    def _check_file(self) -> None:
        try:
            with self._path.open("rb") as file:
                header = file.read(len(_HEADER))
        except FileNotFoundError:
            return
        except OSError as error:
            raise damaged(self.place, str(error.strerror)) from error
        # A killed process can leave an empty file behind before anything was put in.
        if header and header != _HEADER:
            raise damaged(self.place, "it isn't an SQLite file")


def _on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    # The driver's own idea of when to begin is switched off: transactions begin where SQLAlchemy says.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        _patiently(cursor, pragma)
    cursor.close()


def _patiently(cursor: Any, pragma: str) -> None:
    """SQLite doesn't wait where two processes switch a new file to its log at one moment: one is told at once."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute(pragma)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)
        else:
            return


def _on_begin(connection: Connection) -> None:
    # With the write lock from the start a transaction can't fail half-way for want of it.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(WRITES) else "BEGIN")
