"""Conversations in a LangGraph checkpointer: what is kept of them, and what each checkpointer of them can do.

Knows which keys of the state the next turn needs. Everything else is of one run, and may hold text of passages that no
answer cites; it is kept from the disk also when a run is cancelled or breaks. `threads_sqlite` and `threads_postgres`
are the checkpointers: each keeps the last state of a conversation, and none before it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from leadline.config import Settings
from leadline.errors import StoreError
from leadline.state import RAGState

FILE: Final = "threads.db"
COLLECTION: Final = "collection"  # in a state's metadata: what the conversation is about
# The other keys of the state are reset at the start of each run.
KEPT_KEYS: Final = frozenset({"messages", "result"})
WORKING_KEYS: Final = frozenset(RAGState.__annotations__) - KEPT_KEYS


class Threads(Protocol):
    """A checkpointer of conversations. Its own methods raise StoreError, LangGraph's whatever its database raises."""

    serde: SerializerProtocol

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None: ...

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig: ...

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None: ...

    def get_next_version(self, current: Any, channel: None) -> Any: ...

    def alone_on(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Holds a conversation, among all processes; it is free again when the process ends. Raises ThreadBusy."""
        ...

    def last_states(self) -> AsyncIterator[CheckpointTuple | None]:
        """The last state of each conversation; None where it can't be read."""
        ...

    async def rewrite(self, stored: CheckpointTuple, values: dict[str, Any]) -> None:
        """Puts other values into a stored state, under its own id: a run that began from it goes on undisturbed."""
        ...

    async def delete(self, thread_id: str) -> bool:
        """Removes a conversation; whether there was one. Its bytes go with the next `purge`."""
        ...

    async def purge(self) -> None:
        """Writes what is stored anew, without a byte of what was taken out of it, as far as the database can."""
        ...

    async def owes_purge(self) -> bool:
        """Whether something was taken out, and nothing was written anew since."""
        ...


def without_passages(checkpoint: Checkpoint) -> Checkpoint:
    """The state as it may be stored."""
    values = {key: value for key, value in checkpoint["channel_values"].items() if key not in WORKING_KEYS}
    if "result" in values:  # what was looked at and not cited, and queries made of its words
        values["result"] = {**values["result"], "context": [], "queries": []}
        values["result"].pop("record", None)  # it names what was found, and holds the queries too
    return {**checkpoint, "channel_values": values}


def place_of(thread_id: str) -> RunnableConfig:
    """Where LangGraph finds the conversation."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def in_use(why: str) -> StoreError:
    """What was taken out could not be written over."""
    return StoreError(
        f"What was taken out of the conversations can still be in a file beside them: {why}.",
        hint="No answer uses it. The next deletion overwrites it, when no other process has the file.",
    )


def threads_path(settings: Settings) -> Path | None:
    """The file of the conversations; None where they are in a database."""
    return settings.data_dir / FILE if settings.threads_url is None else None
