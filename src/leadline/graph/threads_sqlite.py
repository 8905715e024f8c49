"""Conversations in a file: LangGraph's SQLite checkpointer, with the last state of each."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from leadline.errors import StoreDamaged, StoreError
from leadline.graph.threads import in_use, without_passages
from leadline.graph.threads_lock import lock_thread

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S: Final = 30.0
# SQLite keeps a number for the application's own use.
_OWE_PURGE: Final = "PRAGMA user_version = 1"
_OWE_NO_PURGE: Final = "PRAGMA user_version = 0"


class SqliteThreads(AsyncSqliteSaver):
    """A checkpointer that keeps the last state of a conversation, without the working keys of its runs.

    `locks` is the folder of the locks of those that have a run on.
    """

    def __init__(self, connection: aiosqlite.Connection, locks: Path) -> None:
        super().__init__(connection)
        self._locks = locks

    @asynccontextmanager
    async def alone_on(self, thread_id: str) -> AsyncIterator[None]:
        """See `Threads.alone_on`."""
        lock = lock_thread(self._locks, thread_id)
        await asyncio.to_thread(lock.__enter__)
        try:
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(lock.__exit__, None, None, None))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores the state in the place of the former one, which may hold what has been taken out of this."""
        async with self._whole():
            stored = await super().aput(config, without_passages(checkpoint), metadata, new_versions)
        try:
            await self._drop_before(stored)
        except sqlite3.OperationalError as error:
            log.warning("The former state of a conversation is left for its next turn to remove: %s", error)
        return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores nothing: a run that was left unfinished is never resumed, the next question begins anew."""

    async def last_states(self) -> AsyncIterator[CheckpointTuple | None]:
        """See `Threads.last_states`."""
        async with self.lock, self.conn.execute("SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints") as rows:
            threads = await rows.fetchall()
        for thread_id, namespace in threads:
            try:
                stored = await self.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}})
            except sqlite3.Error:
                raise
            except Exception as error:  # noqa: BLE001 - a named degrade: the others can be read
                log.warning("The conversation %s can't be read: %s", thread_id, error)
                stored = None
            yield stored

    async def rewrite(self, stored: CheckpointTuple, values: dict[str, Any]) -> None:
        """See `Threads.rewrite`."""
        checkpoint: Checkpoint = {
            **stored.checkpoint,
            "channel_values": {**stored.checkpoint["channel_values"], **values},
        }
        kind, data = self.serde.dumps_typed(without_passages(checkpoint))
        place = stored.config["configurable"]
        async with self._whole(), self.lock:
            await self.conn.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ?"
                " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
                (kind, data, place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]),
            )
            await self.conn.execute(_OWE_PURGE)
            await self.conn.commit()
        await self._drop_before(stored.config)

    async def delete(self, thread_id: str) -> bool:
        """See `Threads.delete`."""
        async with self._whole(), self.lock:
            found = await self.conn.execute("DELETE FROM checkpoints WHERE thread_id = ?", (thread_id,))
            await self.conn.execute("DELETE FROM writes WHERE thread_id = ?", (thread_id,))
            if found.rowcount > 0:
                await self.conn.execute(_OWE_PURGE)
            await self.conn.commit()
        return found.rowcount > 0

    async def purge(self) -> None:
        """Writes the file anew, without a byte of what was taken out of it. Raises StoreError.

        Deleted rows are overwritten, but SQLite leaves copies where it has moved rows between pages.
        """
        async with self.lock:
            try:
                await self.conn.execute(_OWE_PURGE)
                await self.conn.execute("VACUUM")
                if await self._number("PRAGMA wal_checkpoint(TRUNCATE)"):
                    raise in_use("it is being read")
                await self.conn.execute(_OWE_NO_PURGE)
            except sqlite3.OperationalError as error:
                raise in_use(str(error)) from error

    async def owes_purge(self) -> bool:
        """See `Threads.owes_purge`."""
        async with self.lock:
            return await self._number("PRAGMA user_version") > 0

    @asynccontextmanager
    async def _whole(self) -> AsyncIterator[None]:
        """What breaks off half-way is taken back: an open transaction would keep every other process waiting."""
        try:
            yield
        except BaseException:  # also when cancelled: the statement goes on in the connection's thread
            await asyncio.shield(self._roll_back())
            raise

    async def _roll_back(self) -> None:
        async with self.lock:
            with suppress(sqlite3.Error, ValueError):  # ValueError: the connection is closed
                await self.conn.rollback()

    async def _number(self, statement: str) -> int:
        async with self.conn.execute(statement) as rows:
            row = await rows.fetchone()
        return int(row[0]) if row else 0

    async def _drop_before(self, stored: RunnableConfig) -> None:
        place = stored["configurable"]
        thread = (str(place["thread_id"]), place["checkpoint_ns"])
        async with self._whole(), self.lock:
            await self.conn.execute(
                "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?",
                (*thread, place["checkpoint_id"]),
            )
            await self.conn.execute("DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ?", thread)
            await self.conn.commit()


@asynccontextmanager
async def open_sqlite(path: Path, *, busy_s: float = BUSY_TIMEOUT_S) -> AsyncIterator[SqliteThreads]:
    """Opens, or makes, the file of the conversations. Its folder must exist. Raises StoreDamaged, StoreError.

    Whoever finds it locked by another process waits `busy_s` seconds.
    """
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(aiosqlite.connect(path, timeout=busy_s))
            await connection.execute("PRAGMA secure_delete = ON")
            saver = SqliteThreads(connection, path.with_suffix(".locks"))
            await saver.setup()
        except sqlite3.OperationalError as error:  # locked, read-only, no room
            raise StoreError(f"The conversations in {path} can't be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            hint = "It was left as it is. Move it away to begin new conversations; the documents are not in it."
            raise StoreDamaged(f"The conversations in {path} can't be read: {error}.", hint=hint) from error
        yield saver
