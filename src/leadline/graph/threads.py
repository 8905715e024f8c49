"""Conversations on disk: LangGraph's SQLite checkpointer, with the last state of each and of that only what is said.

Knows which keys of the state the next turn needs. Everything else is of one run, and may hold text of passages that no
answer cites; it is kept from the disk also when a run is cancelled or breaks.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from leadline.errors import StoreDamaged, StoreError
from leadline.state import RAGState

log = logging.getLogger(__name__)

FILE: Final = "threads.db"
BUSY_TIMEOUT_S: Final = 30.0
# The other keys of the state are reset at the start of each run.
KEPT_KEYS: Final = frozenset({"messages", "result"})
WORKING_KEYS: Final = frozenset(RAGState.__annotations__) - KEPT_KEYS
# SQLite keeps a number for the application's own use.
_OWE_PURGE: Final = "PRAGMA user_version = 1"
_OWE_NO_PURGE: Final = "PRAGMA user_version = 0"


class ThreadSaver(AsyncSqliteSaver):
    """A checkpointer that keeps the last state of a conversation, without the working keys of its runs."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores the state in the place of the former one, which may hold what has been taken out of this."""
        stored = await super().aput(config, _without_passages(checkpoint), metadata, new_versions)
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
        """The last state of each conversation; None where it can't be read."""
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
        """Puts other values into a stored state, under its own id: a run that began from it goes on undisturbed."""
        checkpoint: Checkpoint = {
            **stored.checkpoint,
            "channel_values": {**stored.checkpoint["channel_values"], **values},
        }
        kind, data = self.serde.dumps_typed(_without_passages(checkpoint))
        place = stored.config["configurable"]
        async with self.lock:
            await self.conn.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ?"
                " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
                (kind, data, place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]),
            )
            await self.conn.execute(_OWE_PURGE)
            await self.conn.commit()
        await self._drop_before(stored.config)

    async def purge(self) -> None:
        """Writes the file anew, without a byte of what was taken out of it. Raises StoreError.

        Deleted rows are overwritten, but SQLite leaves copies where it has moved rows between pages.
        """
        async with self.lock:
            try:
                await self.conn.execute(_OWE_PURGE)
                await self.conn.execute("VACUUM")
                if await self._number("PRAGMA wal_checkpoint(TRUNCATE)"):
                    raise _in_use("it is being read")
                await self.conn.execute(_OWE_NO_PURGE)
            except sqlite3.OperationalError as error:
                raise _in_use(str(error)) from error

    async def owes_purge(self) -> bool:
        """Whether something was taken out, and the file has not been written anew since."""
        async with self.lock:
            return await self._number("PRAGMA user_version") > 0

    async def _number(self, statement: str) -> int:
        async with self.conn.execute(statement) as rows:
            row = await rows.fetchone()
        return int(row[0]) if row else 0

    async def _drop_before(self, stored: RunnableConfig) -> None:
        place = stored["configurable"]
        thread = (str(place["thread_id"]), place["checkpoint_ns"])
        async with self.lock:
            await self.conn.execute(
                "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?",
                (*thread, place["checkpoint_id"]),
            )
            await self.conn.execute("DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ?", thread)
            await self.conn.commit()


def _without_passages(checkpoint: Checkpoint) -> Checkpoint:
    values = {key: value for key, value in checkpoint["channel_values"].items() if key not in WORKING_KEYS}
    if "result" in values:  # what was looked at and not cited, and queries made of its words
        values["result"] = {**values["result"], "context": [], "queries": []}
    return {**checkpoint, "channel_values": values}


def _in_use(why: str) -> StoreError:
    return StoreError(
        f"What was taken out of the conversations can still be in a file beside them: {why}.",
        hint="No answer uses it. The next deletion overwrites it, when no other process has the file.",
    )


@asynccontextmanager
async def open_threads(path: Path) -> AsyncIterator[ThreadSaver]:
    """Opens, or makes, the file of the conversations. Its folder must exist. Raises StoreDamaged, StoreError."""
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(aiosqlite.connect(path, timeout=BUSY_TIMEOUT_S))
            await connection.execute("PRAGMA secure_delete = ON")
            saver = ThreadSaver(connection)
            await saver.setup()
        except sqlite3.OperationalError as error:  # locked, read-only, no room
            raise StoreError(f"The conversations in {path} can't be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            hint = "It was left as it is. Move it away to begin new conversations; the documents are not in it."
            raise StoreDamaged(f"The conversations in {path} can't be read: {error}.", hint=hint) from error
        yield saver
