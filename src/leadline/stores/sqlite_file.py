"""An index in one SQLite file, with a manifest beside it: opened, checked, read, and changed in transactions.

What holds for every store that is such a file: it is created at the first write, a damaged one is refused and kept, a
commit is on disk when it returns, and other processes' commits can be noticed. Knows no table: a store brings its own.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leadline.errors import StoreError
from leadline.stores import index_files

BUSY_TIMEOUT_S = 30
# Where there is no room for the memory that processes share, SQLite speaks of an error of the disk.
FULL = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_SHMSIZE}
)
# Bytes of the longest path that SQLite opens: it has room for 512, and keeps 8 for the journal beside the file.
LONGEST_PATH = 504


class SqliteFile:
    """The file `name` in `folder`, with the tables that the script `tables` makes. Safe to use from threads."""

    def __init__(self, folder: Path, name: str, manifest: Mapping[str, str | int], tables: str) -> None:
        self.folder = folder
        self._name = name
        self._manifest = manifest
        self._tables = tables
        self._connection: sqlite3.Connection | None = None
        self._in_use = False
        # Held around whatever must not be seen half done by another thread of this store.
        self.lock = threading.RLock()

    @property
    def is_open(self) -> bool:
        """Whether there is a file to read from: before the first write there is none. Raises StoreError outside of
        `open` and `close`."""
        self._ensure_in_use()
        return self._connection is not None

    def open(self) -> None:
        """Opens the file where there is one; raises ManifestMismatch or StoreDamaged. Does nothing where none is."""
        if self._path.exists() or (self.folder / index_files.MANIFEST).exists():
            index_files.check_manifest(self.folder, self._manifest)
            self._create()
        self._in_use = True

    def create(self) -> None:
        """Opens the file, new where there is none."""
        self._ensure_in_use()
        self._create()

    def _create(self) -> None:
        with self.lock:
            if self._connection is not None:
                return
            check_path(self._path)
            with self._errors_named():
                self.folder.mkdir(parents=True, exist_ok=True)
                if not self._path.exists():
                    index_files.write_manifest(self.folder, self._manifest)
                connection = sqlite3.connect(
                    self._path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
                )
                try:
                    self._prepare(connection)
                except sqlite3.Error:
                    connection.close()
                    raise
            self._connection = connection

    def close(self) -> None:
        """Closes the file; legal at any time."""
        self._in_use = False
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def rows(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        """All rows of a query; none where there is no file yet."""
        self._ensure_in_use()
        with self.lock, self._errors_named():
            return [] if self._connection is None else self._connection.execute(statement, values).fetchall()

    def number(self, statement: str, *values: str | int) -> int:
        """The single number a query gives; 0 where it gives none."""
        return sum(int(row[0] or 0) for row in self.rows(statement, *values))

    def version(self) -> int:
        """A number that changes when another process, or another store of this one, has committed."""
        return self.number("PRAGMA data_version")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One change, on disk as a whole at the end of the block, or not at all."""
        with self._block("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Queries inside the block see one state, whatever other processes commit meanwhile."""
        with self._block("BEGIN"):
            yield

    def _ensure_in_use(self) -> None:
        if not self._in_use:
            raise _not_open(self.folder)

    @property
    def _path(self) -> Path:
        return self.folder / self._name

    @contextmanager
    def _block(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self.lock, self._errors_named():
            if self._connection is None:
                raise _not_open(self.folder)
            self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # Some errors (a full disk) have ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = FULL")
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
        connection.executescript(self._tables)

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"The index in {self.folder} could not be used: {error}. Nothing of what it held is lost.",
                hint=remedy(error),
            ) from error
        except sqlite3.DatabaseError as error:
            raise index_files.damaged(self._path, str(error)) from error
        except OSError as error:
            raise index_files.unusable(self.folder, error) from error


def _not_open(folder: Path) -> StoreError:
    return StoreError(f"The index in {folder} isn't open.", hint="Use the store inside `async with`.")


def check_path(path: Path) -> None:
    """Raises StoreError for a path that is too long for SQLite, which itself would only say that it can't open it."""
    length = len(os.fsencode(os.path.realpath(path)))
    if length > LONGEST_PATH and os.name == "posix":
        raise StoreError(
            f"The path {path} is {length} bytes long, and SQLite opens none of more than {LONGEST_PATH}.",
            hint="Set a data folder with a shorter path.",
        )


def remedy(error: object) -> str:
    """What to do about an error of SQLite that is no damage."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code in FULL:
        return "Make room on its disk and try again."
    if code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return "Give this user the right to write there, or set another data folder."
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        return "Another process is writing to it; try again when it is done."
    return "Look at the folder and its disk, and try again."
