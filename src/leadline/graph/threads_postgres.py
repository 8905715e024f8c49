"""Conversations in PostgreSQL: LangGraph's checkpointer, with the last state of each and of that only what is said.

In a schema of their own, so that they can share the catalog's database. A run holds its conversation by an advisory
lock of a session, which the server gives up when the process, or the way to it, is gone. What was taken out goes from
the tables' files with `purge`; in the server's write-ahead log and backups it stays as long as those are kept.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from leadline.errors import StoreError
from leadline.graph.threads import in_use, without_passages
from leadline.graph.threads_lock import busy
from leadline.stores.catalog_postgres import address

log = logging.getLogger(__name__)

SCHEMA: Final = "leadline_threads"
POOL: Final = 10  # connections at once
LOCK_TIMEOUT_S: Final = 5  # for others to be done with the tables that are written anew
_POLL_S: Final = 0.05
_TABLES: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_SETTING_UP: Final = int.from_bytes(b"threads0", "big")
# A process whose machine is gone says nothing more: the server finds out, and gives up its locks.
_KEEPALIVE: Final = (
    "SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),"
    " set_config('tcp_keepalives_count', '3', false)"
)
_EARLIER: Final = (
    "DELETE FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND checkpoint_id < %(id)s"
)
_WRITES: Final = "DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s"
_UNUSED_BLOBS: Final = """
    DELETE FROM checkpoint_blobs b WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND NOT EXISTS (
        SELECT 1 FROM checkpoints c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
        AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"""

_Pool = AsyncConnectionPool[AsyncConnection[DictRow]]


class PostgresThreads(AsyncPostgresSaver):
    """A checkpointer that keeps the last state of a conversation, without the working keys of its runs."""

    def __init__(self, pool: _Pool, url: str) -> None:
        super().__init__(pool)
        self._pool = pool
        self._holder = _Holder(url)

    @asynccontextmanager
    async def alone_on(self, thread_id: str) -> AsyncIterator[None]:
        """See `Threads.alone_on`."""
        if not await self._holder.take(_key(thread_id)):
            raise busy(thread_id)
        try:
            yield
        finally:
            await asyncio.shield(self._holder.give_back(_key(thread_id)))

    async def close(self) -> None:
        """Gives up what is held. The pool is closed by whoever opened it."""
        await self._holder.close()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores the state in the place of the former one, which may hold what has been taken out of this."""
        stored = await super().aput(config, without_passages(checkpoint), metadata, new_versions)
        try:
            await self._drop_before(stored)
        except psycopg.Error as error:
            log.warning("The former state of a conversation is left for its next turn to remove: %s", error)
        return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores nothing: a run that was left unfinished is never resumed, the next question begins anew."""

    async def last_states(self) -> AsyncIterator[CheckpointTuple | None]:
        """See `Threads.last_states`."""
        async with self._pool.connection() as connection:
            rows = await connection.execute("SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints")
            threads = await rows.fetchall()
        for row in threads:
            try:
                stored = await self.aget_tuple({"configurable": dict(row)})
            except psycopg.Error:
                raise
            except Exception as error:  # noqa: BLE001 - a named degrade: the others can be read
                log.warning("The conversation %s can't be read: %s", row["thread_id"], error)
                stored = None
            yield stored

    async def rewrite(self, stored: CheckpointTuple, values: dict[str, Any]) -> None:
        """See `Threads.rewrite`."""
        place, versions = stored.config["configurable"], stored.checkpoint["channel_versions"]
        kept = without_passages({**stored.checkpoint, "channel_values": values})["channel_values"]
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("UPDATE owed SET purge = true")
            for channel, value in kept.items():
                await connection.execute(
                    "UPDATE checkpoint_blobs SET type = %s, blob = %s"
                    " WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s",
                    (
                        *self.serde.dumps_typed(value),
                        place["thread_id"],
                        place["checkpoint_ns"],
                        channel,
                        str(versions[channel]),
                    ),
                )
        await self._drop_before(stored.config)

    async def delete(self, thread_id: str) -> bool:
        """See `Threads.delete`."""
        async with self._pool.connection() as connection, connection.transaction():
            counts = [
                (await connection.execute(_on("DELETE FROM {} WHERE thread_id = %s", table), [thread_id])).rowcount
                for table in _TABLES
            ]
            if any(counts):
                await connection.execute("UPDATE owed SET purge = true")
        return any(counts)

    async def purge(self) -> None:
        """Writes the tables anew, without a byte of what was taken out of them. Raises StoreError."""
        try:
            async with self._pool.connection() as connection:
                for table in _TABLES:
                    await connection.execute(_on("VACUUM (FULL) {}", table))
                await connection.execute("UPDATE owed SET purge = false")
        except psycopg.Error as error:
            raise in_use(_first_line(error)) from error

    async def owes_purge(self) -> bool:
        """See `Threads.owes_purge`."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute("SELECT bool_or(purge) AS owed FROM owed")).fetchone()
        return bool(row and row["owed"])

    async def _drop_before(self, stored: RunnableConfig) -> None:
        place = stored["configurable"]
        of = {"thread": place["thread_id"], "namespace": place["checkpoint_ns"], "id": place["checkpoint_id"]}
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(_EARLIER, of)
            await connection.execute(_WRITES, of)
            await connection.execute(_UNUSED_BLOBS, of)


class _Holder:
    """The session that holds the locks of this process: one connection, made at the first and made anew when lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: AsyncConnection[DictRow] | None = None
        self._turn = asyncio.Lock()

    async def take(self, key: int) -> bool:
        """Whether nobody else has it, and this session has it now. Raises psycopg.Error."""
        async with self._turn:
            if self._connection is None or self._connection.closed:
                self._connection = await _connect(self._url)
                await self._connection.execute(_KEEPALIVE)
            return await self._ask("SELECT pg_try_advisory_lock(%s) AS done", key)

    async def give_back(self, key: int) -> None:
        """Frees it. Where the connection is lost, it is free already."""
        async with self._turn:
            with suppress(psycopg.Error):
                await self._ask("SELECT pg_advisory_unlock(%s) AS done", key)

    async def close(self) -> None:
        """Ends the session, and with it whatever it holds."""
        if self._connection is not None:
            await self._connection.close()

    async def _ask(self, statement: str, key: int) -> bool:
        if self._connection is None:
            return False
        try:
            row = await (await self._connection.execute(statement, [key])).fetchone()
        except BaseException:  # also when cancelled in the middle: nobody knows what the session holds then
            connection, self._connection = self._connection, None
            connection.pgconn.finish()
            raise
        return bool(row and row["done"])


@asynccontextmanager
async def open_postgres(url: str, *, timeout_s: float) -> AsyncIterator[PostgresThreads]:
    """Opens, or makes, the conversations in a database. Raises ConfigError, StoreError."""
    conninfo = address(url, "threads_url").set(drivername="postgresql").render_as_string(hide_password=False)
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row, "application_name": "leadline"}
    check = AsyncConnectionPool.check_connection  # a server that was restarted is reached again
    pool: _Pool = AsyncConnectionPool(
        conninfo,
        kwargs={**options, "connect_timeout": max(1, round(timeout_s))},
        min_size=1,
        max_size=POOL,
        timeout=timeout_s,
        open=False,
        configure=_into_schema,
        check=check,
    )
    threads = PostgresThreads(pool, conninfo)
    try:
        try:
            await _set_up(conninfo)
            await pool.open()
        except psycopg.Error as error:
            place = address(url, "threads_url").host or "the database"
            raise StoreError(
                f"The conversations in PostgreSQL at {place} can't be used: {_first_line(error)}."
            ) from error
        yield threads
    finally:
        await threads.close()
        await pool.close(timeout=1)


async def _set_up(url: str) -> None:
    connection = await _connect(url)
    async with connection:
        # Asked for again and again: to wait inside a statement would hold up the building of the indexes.
        while not await _first(connection, f"SELECT pg_try_advisory_lock({_SETTING_UP}) AS done"):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        if not await _first(connection, f"SELECT to_regnamespace('{SCHEMA}') IS NOT NULL AS done"):
            await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        await _into_schema(connection)
        if not await _first(connection, "SELECT to_regclass('owed') IS NOT NULL AS done"):
            await AsyncPostgresSaver(connection).setup()
            await connection.execute("CREATE TABLE owed AS SELECT false AS purge")
        else:
            await AsyncPostgresSaver(connection).setup()


async def _connect(url: str) -> AsyncConnection[DictRow]:
    return await AsyncConnection.connect(
        url, autocommit=True, row_factory=dict_row, connect_timeout=10, application_name="leadline"
    )


async def _into_schema(connection: AsyncConnection[Any]) -> None:
    await connection.execute(f"SET search_path TO {SCHEMA}")
    await connection.execute(f"SET lock_timeout TO '{LOCK_TIMEOUT_S}s'")


async def _first(connection: AsyncConnection[DictRow], statement: str) -> bool:
    row = await (await connection.execute(statement.encode())).fetchone()
    return bool(row and row["done"])


def _on(statement: str, table: str) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(table))


def _key(thread_id: str) -> int:
    data = hashlib.sha256(b"leadline thread\0" + thread_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(data[:8], "big", signed=True)


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
