"""The catalog's file: opened, checked, and written in transactions that only the holder of the lease may make.

Knows SQLite's settings, what a damaged file looks like, and who may write. Doesn't know what the tables mean: the
`catalog_*` modules do. All calls block: run them in a thread.

Every commit is on disk when it returns (WAL with synchronous=FULL): an acknowledged document outlives a killed
process and a power cut. With a few commits a batch the price can't be measured beside the embedding.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, Insert, Table, create_engine, event, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from leadline.errors import ManifestMismatch, StoreDamaged, StoreError
from leadline.stores.catalog_schema import FORMAT, info, metadata

T = TypeVar("T")

FILE_NAME: Final = "catalog.db"
BUSY_TIMEOUT_S: Final = 30
BATCH: Final = 500  # ids in one statement
_HEADER: Final = b"SQLite format 3\x00"
_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    # What is deleted is overwritten with zeros: no text of a deleted source stays in the file.
    "PRAGMA secure_delete=ON",
)


class Fence(Protocol):
    """Says whether this process may still write; asked inside every write transaction."""

    def check(self, connection: Connection) -> None:
        """Raises LeaseLost."""
        ...


class Catalog:
    """One open catalog file. Safe to use from several threads.

    `engine` is there for modules with tables of their own; they too write through `write()`.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        self._engine: Engine | None = None
        self._writing = threading.Lock()
        self._fence: Fence | None = None

    @property
    def engine(self) -> Engine:
        """The open engine."""
        if self._engine is None:
            raise StoreError(f"The catalog {self.path} is not open.")
        return self._engine

    def open(self) -> None:
        """Opens the file, making it if there is none. Raises StoreDamaged if it isn't a catalog that can be read."""
        self._check_file()
        with _explained(self.path):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"The data folder {self.path.parent} can't be made: {error.strerror}.") from error
            self._engine = _create_engine(self.path)
            try:
                self._check_tables()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Closes every connection."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def guard(self, fence: Fence | None) -> None:
        """From now on only what `fence` lets through is written. None: nothing is."""
        self._fence = fence

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the catalog. Never waits for a writer."""
        with _explained(self.path), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends, or did nothing if the block raised.

        Raises LeaseLost if another process holds the data folder by now, StoreError if this one doesn't.
        """
        with self.write_cache() as connection:
            if self._fence is None:
                raise StoreError(f"The catalog {self.path} may only be written by the holder of its lease.")
            self._fence.check(connection)
            yield connection

    @contextmanager
    def write_cache(self) -> Iterator[Connection]:
        """As `write`, for what any process may add at any time: rows that are the same whoever makes them."""
        with self._writing, _explained(self.path), begin_immediate(self.engine) as connection:
            yield connection

    def forget_deleted(self) -> None:
        """Empties the write-ahead log, where text of deleted rows would stay until it is written over."""
        raw = self.engine.raw_connection()  # outside a transaction, where alone it can be done
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            raw.close()

    def integrity_problems(self) -> list[str]:
        """What SQLite's own check of the whole file finds wrong; reads all of it."""
        with self.read() as connection:
            rows = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        problems = [str(row) for row in rows if row != "ok"]
        return problems + [f"{row[0]} refers to a missing row of {row[2]}" for row in broken]

    def _check_file(self) -> None:
        try:
            with self.path.open("rb") as file:
                header = file.read(len(_HEADER))
        except FileNotFoundError:
            return
        except OSError as error:
            raise _damaged(self.path, str(error.strerror)) from error
        # A killed process can leave an empty file behind before anything was put in.
        if header and header != _HEADER:
            raise _damaged(self.path, "it isn't an SQLite file")

    def _check_tables(self) -> None:
        with begin_immediate(self.engine) as connection:
            names = inspect(connection).get_table_names()
            if names and info.name not in names:
                raise _damaged(self.path, "it is an SQLite file of something else")
            metadata.create_all(connection)
            given = [{"name": "format", "value": FORMAT}, {"name": "identity", "value": uuid4().hex}]
            connection.execute(upsert(connection, info, keep=True), given)
            found = connection.execute(select(info.c.value).where(info.c.name == "format")).scalar_one()
        if found != FORMAT:
            raise ManifestMismatch(
                f"The catalog {self.path} has format {found}; this version of leadline reads format {FORMAT}.",
                hint="Use the version that wrote it, or another --data-dir.",
            )


@contextmanager
def begin_immediate(engine: Engine) -> Iterator[Connection]:
    """A transaction that holds SQLite's write lock from the start, so that it can't fail half-way for want of it."""
    with engine.connect().execution_options(leadline_writes=True) as connection, connection.begin():
        yield connection


def upsert(connection: Connection, table: Table, *, keep: bool = False) -> Insert:
    """An insert that replaces the row with the same primary key, or with `keep` leaves it as it is."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    key = list(table.primary_key.columns)
    others = {column.name: statement.excluded[column.name] for column in table.columns if not column.primary_key}
    if keep or not others:
        return statement.on_conflict_do_nothing(index_elements=key)
    return statement.on_conflict_do_update(index_elements=key, set_=others)


def batched(items: Sequence[T]) -> Iterable[Sequence[T]]:
    """`items` in slices that fit into one statement."""
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _create_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # The driver's own idea of when to begin is switched off: transactions begin where SQLAlchemy says.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(pragma)
        cursor.close()

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("leadline_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of the database as errors of Leadline."""
    try:
        yield
    except DBAPIError as error:
        raise _explanation(path, error.orig) from error


def _explanation(path: Path, error: Any) -> StoreError:
    # The low byte is the kind of an error, the rest says more.
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _damaged(path, str(error))
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"The disk of the catalog {path} is full.", hint="Nothing of this step was kept.")
    return StoreError(f"The catalog {path} could not be used: {error}.")


def _damaged(path: Path, reason: str) -> StoreDamaged:
    return StoreDamaged(
        f"The catalog {path} can't be read: {reason}.",
        hint="It was left as it is. Put back a copy of the data folder, or choose another --data-dir and ingest again.",
    )
