"""Conversations in a file: LangGraph's SQLite checkpointer, with the last state of each.

What every run does is one turn of the connection's thread. With an await for each statement, all runs of a busy server
would wait for the event loop many times over, one after the other.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from leadline.errors import StoreDamaged, StoreError
from leadline.graph.threads import in_use, without_passages
from leadline.graph.threads_lock import lock_thread

log = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_TIMEOUT_S: Final = 30.0
# SQLite keeps a number for the application's own use.
_OWE_PURGE: Final = "PRAGMA user_version = 1"
_OWE_NO_PURGE: Final = "PRAGMA user_version = 0"


class _Plain(SqliteSaver):
    """LangGraph's, used in one thread, which leaves the end of a transaction to others."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - LangGraph's name
        """A cursor, and no commit after it."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


class SqliteThreads(AsyncSqliteSaver):
    """A checkpointer that keeps the last state of a conversation, without the working keys of its runs.

    `locks` is the folder of the locks of those that have a run on.
    """

    def __init__(self, connection: aiosqlite.Connection, locks: Path) -> None:
        super().__init__(connection)
        self._locks = locks
        self._plain = _Plain(connection._conn, serde=self.serde)
        self._plain.is_setup = True  # by this one's
        # Locks wait for no other thread's work: a pool that is shared may be busy with models.
        self._locker = ThreadPoolExecutor(1, "leadline-thread-locks")

    @asynccontextmanager
    async def alone_on(self, thread_id: str) -> AsyncIterator[None]:
        """See `Threads.alone_on`."""
        lock, loop = lock_thread(self._locks, thread_id), asyncio.get_running_loop()
        await loop.run_in_executor(self._locker, lock.__enter__)
        try:
            yield
        finally:
            await asyncio.shield(loop.run_in_executor(self._locker, lock.__exit__, None, None, None))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As LangGraph's."""
        return await self._at_once(lambda: self._plain.get_tuple(config))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores the state in the place of the former one, which may hold what has been taken out of this."""
        kept = without_passages(checkpoint)

        def put() -> RunnableConfig:
            stored = self._plain.put(config, kept, metadata, new_versions)
            self._drop_before(stored)
            return stored

        return await self._at_once(put)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores nothing: a run that was left unfinished is never resumed, the next question begins anew."""

    async def last_states(self) -> AsyncIterator[CheckpointTuple | None]:
        """See `Threads.last_states`."""
        threads = await self._at_once(
            lambda: self._plain.conn.execute("SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints").fetchall()
        )
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

        def update() -> None:
            self._plain.conn.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ?"
                " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
                (kind, data, place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]),
            )
            self._plain.conn.execute(_OWE_PURGE)
            self._drop_before(stored.config)

        await self._at_once(update)

    async def delete(self, thread_id: str) -> bool:
        """See `Threads.delete`."""

        def remove() -> bool:
            found = self._plain.conn.execute("DELETE FROM checkpoints WHERE thread_id = ?", (thread_id,)).rowcount > 0
            self._plain.conn.execute("DELETE FROM writes WHERE thread_id = ?", (thread_id,))
            if found:
                self._plain.conn.execute(_OWE_PURGE)
            return found

        return await self._at_once(remove)

    async def purge(self) -> None:
        """Writes the file anew, without a byte of what was taken out of it. Raises StoreError.

        Deleted rows are overwritten, but SQLite leaves copies where it has moved rows between pages.
        """

        def rewrite_file() -> None:
            try:
                self._plain.conn.execute(_OWE_PURGE)
                self._plain.conn.execute("VACUUM")
                if self._number("PRAGMA wal_checkpoint(TRUNCATE)"):
                    raise in_use("it is being read")
                self._plain.conn.execute(_OWE_NO_PURGE)
            except sqlite3.OperationalError as error:
                raise in_use(str(error)) from error

        await self._at_once(rewrite_file)

    async def owes_purge(self) -> bool:
        """See `Threads.owes_purge`."""
        return await self._at_once(lambda: self._number("PRAGMA user_version") > 0)

    async def _at_once(self, work: Callable[[], T]) -> T:
        """What `work` gives, as one transaction: no other's statement comes between its own.

        It is taken back where it fails, and where nobody waits for it any more: an open transaction would keep every
        other process waiting.
        """
        left = threading.Event()

        def whole() -> T:
            try:
                done = work()
                if left.is_set():
                    raise TimeoutError("Nobody waits for it any more.")
                self._plain.conn.commit()
                return done
            except BaseException:
                with suppress(sqlite3.Error):
                    self._plain.conn.rollback()
                raise

        try:
            done: T = await self.conn._execute(whole)  # type: ignore[no-untyped-call]  # else a turn for each statement
        except asyncio.CancelledError:
            left.set()
            raise
        return done

    def _number(self, statement: str) -> int:
        row = self._plain.conn.execute(statement).fetchone()
        return int(row[0]) if row else 0

    def _drop_before(self, stored: RunnableConfig) -> None:
        place = stored["configurable"]
        thread = (str(place["thread_id"]), place["checkpoint_ns"])
        self._plain.conn.execute(
            "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?",
            (*thread, place["checkpoint_id"]),
        )
        self._plain.conn.execute("DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ?", thread)


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
