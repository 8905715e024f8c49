"""The catalog: opened, checked, and written in transactions that only the holder of the lease may make.

Knows which database it is in and who may write. Doesn't know what the tables mean: the `catalog_*` modules do. All
calls block: run them in a thread.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, Engine, Insert, Table, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from leadline.errors import ManifestMismatch, StoreError
from leadline.stores.catalog_database import WRITES, Database, damaged
from leadline.stores.catalog_postgres import PostgresDatabase
from leadline.stores.catalog_schema import FORMAT, info, metadata
from leadline.stores.catalog_sqlite import SqliteFile

T = TypeVar("T")

FILE_NAME: Final = "catalog.db"
BATCH: Final = 500  # ids in one statement


class Fence(Protocol):
    """Says whether this process may still write; asked inside every write transaction."""

    def check(self, connection: Connection) -> None:
        """Raises LeaseLost."""
        ...


class Catalog:
    """One open catalog: the file in `data_dir`, or the PostgreSQL database at `url`. Safe to use from several threads.

    `engine` is there for modules with tables of their own; they too write through `write()`. `path` is the file, where
    it is one. Raises ConfigError for a `url` that is none.
    """

    def __init__(self, data_dir: Path, url: str | None = None) -> None:
        self.path = data_dir / FILE_NAME
        self._database: Database = SqliteFile(self.path) if url is None else PostgresDatabase(url)
        self._engine: Engine | None = None
        self._writing = threading.Lock()
        self._fence: Fence | None = None

    @property
    def place(self) -> str:
        """The file, or the address of the database without user and password."""
        return self._database.place

    @property
    def engine(self) -> Engine:
        """The open engine."""
        if self._engine is None:
            raise StoreError(f"The catalog {self.place} is not open.")
        return self._engine

    def is_missing(self) -> bool:
        """Whether there is none yet. Raises StoreError."""
        with _explained(self._database):
            return self._database.is_missing()

    def open(self) -> None:
        """Opens it, making it if there is none. Raises StoreDamaged if it isn't a catalog that can be read."""
        with _explained(self._database):
            self._engine = self._database.connect()
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
        options = self._database.read_options
        with _explained(self._database), self.engine.connect().execution_options(**options) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is stored for good when the block ends, or did nothing if the block raised.

        Raises LeaseLost if another process holds the lease by now, StoreError if this one doesn't.
        """
        with self.write_cache() as connection:
            if self._fence is None:
                raise StoreError(f"The catalog {self.place} may only be written by the holder of its lease.")
            self._fence.check(connection)
            yield connection

    @contextmanager
    def write_cache(self) -> Iterator[Connection]:
        """As `write`, for what any process may change at any time: rows that are the same whoever makes them, and those
        of jobs, which have claims of their own."""
        with self._writing, _explained(self._database), begin_immediate(self.engine) as connection:
            yield connection

    def forget_deleted(self) -> None:
        """Removes what is left of the text of deleted rows, as far as the database can: an SQLite file does."""
        with _explained(self._database):
            self._database.forget_deleted(self.engine)

    def integrity_problems(self) -> list[str]:
        """What the database's own check of itself finds wrong. An SQLite file is read as a whole."""
        with self.read() as connection:
            return self._database.integrity_problems(connection)

    def _check_tables(self) -> None:
        with begin_immediate(self.engine) as connection:
            self._database.prepare(connection)
            names = inspect(connection).get_table_names()
            if names and info.name not in names:
                raise damaged(self.place, "it holds the tables of something else")
            metadata.create_all(connection)
            given = [{"name": "format", "value": FORMAT}, {"name": "identity", "value": uuid4().hex}]
            connection.execute(upsert(connection, info, keep=True), given)
            found = connection.execute(select(info.c.value).where(info.c.name == "format")).scalar_one()
        if found != FORMAT:
            raise ManifestMismatch(
                f"The catalog {self.place} has format {found}; this version of leadline reads format {FORMAT}.",
                hint="Use the version that wrote it, or another --data-dir.",
            )


@contextmanager
def begin_immediate(engine: Engine) -> Iterator[Connection]:
    """A transaction that waits for other writers when it begins, and then can't fail half-way because of them."""
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
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


@contextmanager
def _explained(database: Database) -> Iterator[None]:
    """Errors of the database as errors of Leadline."""
    try:
        yield
    except DBAPIError as error:
        raise database.explanation(error) from error
