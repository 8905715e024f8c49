"""Conversations on disk: LangGraph's SQLite checkpointer, without the text of passages.

Knows which keys of the state hold passages only while a run works. They are cleared when a run ends; here they are
kept from the disk as well when a run is cancelled or breaks.
"""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from leadline.errors import StoreDamaged, StoreError

WORKING_KEYS = frozenset({"candidates", "documents", "context", "evidence"})


class ThreadSaver(AsyncSqliteSaver):
    """A checkpointer that leaves the working keys of a run out of what it stores."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores the checkpoint without passages."""
        values = {key: value for key, value in checkpoint["channel_values"].items() if key not in WORKING_KEYS}
        kept: Checkpoint = {**checkpoint, "channel_values": values}
        return await super().aput(config, kept, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores what an unfinished step wrote, without passages."""
        kept = [(channel, value) for channel, value in writes if channel not in WORKING_KEYS]
        await super().aput_writes(config, kept, task_id, task_path)


@asynccontextmanager
async def open_threads(path: Path) -> AsyncIterator[ThreadSaver]:
    """Opens, or makes, the file of the conversations. Its folder must exist. Raises StoreDamaged, StoreError."""
    async with AsyncExitStack() as stack:
        try:
            saver = ThreadSaver(await stack.enter_async_context(aiosqlite.connect(path)))
            await saver.setup()
        except sqlite3.OperationalError as error:  # locked, read-only, no room
            raise StoreError(f"The conversations in {path} can't be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            hint = "It was left as it is. Move it away to begin new conversations; the documents are not in it."
            raise StoreDamaged(f"The conversations in {path} can't be read: {error}.", hint=hint) from error
        yield saver
