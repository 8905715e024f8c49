"""The catalog in a PostgreSQL database, in a schema of its own, for processes on one machine or on several.

Writers take turns by an advisory lock that each write transaction holds from its start to its end; readers see one
state and never wait. A commit is as durable as the server is set to make it. What is deleted is gone for every query;
its bytes stay in the server's files until it uses the room again, and in its write-ahead log and backups as long as
those are kept: nothing here reaches them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from leadline.errors import ConfigError, MissingExtra, StoreBusy, StoreError
from leadline.stores.catalog_database import BUSY_TIMEOUT_S, WRITES, damaged

SCHEMA: Final = "leadline"
CONNECT_TIMEOUT_S: Final = 10
_POOL: Final = 40  # connections at once: more than threads use them
_SCHEMES: Final = ("postgresql", "postgres", "postgresql+psycopg")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
# One number for all catalogs of a database; two of them in one would only wait for each other.
_LOCK: Final = int.from_bytes(b"leadline", "big")
# A writer that has gone silent inside a transaction, behind a broken network say, doesn't stop the others for ever.
_TAKE_TURN: Final = (
    f"SELECT set_config('lock_timeout', '{BUSY_TIMEOUT_S}s', true),"
    f" set_config('idle_in_transaction_session_timeout', '{2 * BUSY_TIMEOUT_S}s', true),"
    f" pg_advisory_xact_lock({_LOCK})"
)
_HINTS: Final = {
    "28": "Check the user and the password in LEADLINE_CATALOG_URL.",
    "3D": "Make the database, or check its name in LEADLINE_CATALOG_URL.",
    "42501": "The user needs the right to create the schema `leadline`, or to use it if it is there.",
    "53100": "Its disk is full. Nothing of this step was kept.",
    "55P03": "Another process has been writing all the while. Try again.",
    "57": "The server is being stopped or started. Try again.",
}
_CORRUPT: Final = ("XX001", "XX002")
_LOCKED: Final = "55P03"


class PostgresDatabase:
    """A `Database` at an address such as postgresql://user:password@host:5432/name.

    A server that isn't on this machine has to prove who it is: its certificate is checked against the system's roots,
    unless the address says otherwise (`sslmode`, `sslrootcert`). Raises ConfigError for an address that is none.
    """

    # A transaction that sees one state; only reading, it never has to be repeated.
    read_options: Mapping[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}

    def __init__(self, url: str) -> None:
        self._url = address(url, "catalog_url")

    @property
    def place(self) -> str:
        """The address without the user, the password and the options."""
        return URL.create(
            "postgresql", None, None, self._url.host, self._url.port, self._url.database
        ).render_as_string()

    def is_missing(self) -> bool:
        """Whether the schema has no catalog. Raises DBAPIError, ConfigError."""
        engine = self.connect()
        try:
            with engine.connect() as connection:
                return connection.scalar(text(f"SELECT to_regclass('{SCHEMA}.info')")) is None
        finally:
            engine.dispose()

    def connect(self) -> Engine:
        """An engine; reaches for the server when it is first used. Raises MissingExtra."""
        try:
            engine = create_engine(
                self._url,
                connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "leadline"},
                pool_pre_ping=True,  # a server that was restarted is reached again
                max_overflow=_POOL,
            )
        except ModuleNotFoundError as error:
            raise MissingExtra(
                "The catalog on PostgreSQL needs the package psycopg.",
                hint="Install it with `pip install 'leadline[postgres]'`.",
            ) from error
        # Before SQLAlchemy looks which schema it is in.
        event.listen(engine, "connect", _on_connect, insert=True)
        event.listen(engine, "begin", _on_begin)
        return engine

    def prepare(self, connection: Connection) -> None:
        """Makes the schema where it is missing. Without looking first that takes a right the user need not have."""
        if connection.scalar(text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": SCHEMA}) is None:
            connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))

    def explanation(self, error: DBAPIError) -> StoreError:
        """By SQLSTATE; of the server's message the first line, which holds no value of a row."""
        state = getattr(error.orig, "sqlstate", None) or ""
        reason = self._without_password(str(error.orig).partition("\n")[0].rstrip("."))
        if state in _CORRUPT:
            return damaged(self.place, reason)
        unknown = "" if state else "Is the server running, and is LEADLINE_CATALOG_URL right?"
        hint = next((hint for key, hint in _HINTS.items() if state.startswith(key)), unknown)
        kind = StoreBusy if state == _LOCKED else StoreError
        return kind(f"The catalog {self.place} could not be used: {reason}.", hint=hint)

    def forget_deleted(self, engine: Engine) -> None:
        """Nothing: see the module's docstring."""

    def integrity_problems(self, connection: Connection) -> list[str]:  # noqa: ARG002 - there is nothing to ask
        """None: the server keeps references intact, and checks its files when it is told to (`pg_amcheck`)."""
        return []

    def _without_password(self, message: str) -> str:
        for password in (self._url.password, *self._url.normalized_query.get("password", ())):
            if password:
                message = message.replace(str(password), "***")
        return message


def address(url: str, setting: str) -> URL:
    """The address in the setting of this name, for SQLAlchemy; a server elsewhere has to prove who it is. Raises
    ConfigError for an address that is none."""
    return _with_verification(_parsed(url, setting))


def _parsed(url: str, setting: str) -> URL:
    try:
        parsed = make_url(url)
        if parsed.drivername in _SCHEMES and parsed.database:
            return parsed.set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):  # the message may hold the password
        pass
    raise ConfigError(
        f"The setting {setting} is not the address of a PostgreSQL database.",
        hint="It looks like postgresql://user:password@host:5432/name.",
    )


def _with_verification(url: URL) -> URL:
    hosts = [url.host] if url.host else [*url.normalized_query.get("host", ())]
    if "sslmode" in url.query or all(host in _LOOPBACK or host.startswith("/") for host in hosts):
        return url
    verified = url.update_query_dict({"sslmode": "verify-full"})
    if "sslrootcert" in url.query or (Path.home() / ".postgresql" / "root.crt").exists():
        return verified
    return verified.update_query_dict({"sslrootcert": "system"})


def _on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.autocommit = True  # else the setting would go with the transaction it was made in
    cursor = connection.cursor()
    cursor.execute(f"SET search_path TO {SCHEMA}")
    cursor.close()
    connection.autocommit = False


def _on_begin(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql(_TAKE_TURN)
