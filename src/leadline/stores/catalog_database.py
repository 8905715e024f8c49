"""What the catalog asks of a database: where it is, how it is opened, and what only one kind of database has.

`catalog_sqlite` and `catalog_postgres` answer; the tables and all that is asked of them are the same for both.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from leadline.errors import StoreDamaged, StoreError

BUSY_TIMEOUT_S: Final = 30  # for another writer to end its transaction
WRITES: Final = "leadline_writes"  # the execution option of a connection whose transactions write


class Database(Protocol):
    """One database that holds, or will hold, a catalog."""

    @property
    def place(self) -> str:
        """Where it is, as it may be shown: without user and password."""
        ...

    @property
    def read_options(self) -> Mapping[str, Any]:
        """The execution options of a connection whose transactions see one state and write nothing."""
        ...

    def is_missing(self) -> bool:
        """Whether no catalog was ever made there. Raises DBAPIError."""
        ...

    def connect(self) -> Engine:
        """An engine. A transaction of a connection with the option `WRITES` waits for other writers when it begins.

        Raises StoreDamaged, StoreError, ConfigError.
        """
        ...

    def prepare(self, connection: Connection) -> None:
        """Inside a write, before the tables are looked for."""
        ...

    def explanation(self, error: DBAPIError) -> StoreError:
        """What an error of the database means."""
        ...

    def forget_deleted(self, engine: Engine) -> None:
        """Removes what is left of deleted rows, as far as the database can."""
        ...

    def integrity_problems(self, connection: Connection) -> list[str]:
        """What the database's own check of itself finds wrong, if it has one."""
        ...


def damaged(place: str, reason: str) -> StoreDamaged:
    """A catalog that can't be read."""
    return StoreDamaged(
        f"The catalog {place} can't be read: {reason}.",
        hint="It was left as it is. Put back a copy of it, or choose another --data-dir and ingest again.",
    )
