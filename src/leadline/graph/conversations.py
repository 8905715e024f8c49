"""The conversations of an installation: opened when first needed, one run at a time in each, listed and deleted.

Where they are kept may be down, slow, locked or damaged: a run then goes on without a memory, and says so. Knows how
long to wait and what a failure costs; `threads` knows what is kept.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)

from leadline.config import Settings
from leadline.deadline import within
from leadline.errors import ConfigError, MissingExtra, StoreError, ThreadElsewhere, ThreadError, ThreadUnknown
from leadline.graph.threads import COLLECTION, Threads, place_of, threads_path
from leadline.graph.threads_lock import busy
from leadline.graph.threads_sqlite import open_sqlite
from leadline.nodes.origins import StillThere, usable
from leadline.state import Result

log = logging.getLogger(__name__)

PART: Final = "checkpointer"  # what a run does without, in `degraded`
# Of the time there is: SQLite gives up first, so that nothing is stored after the run has said that it is not.
_SHARE: Final = 0.8
_STORE: Final = "The store of the conversations"

Open = Callable[[], AbstractAsyncContextManager[Threads]]


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A conversation in a list. `updated_at` is ISO 8601; `question` the first one; `turns` counts questions."""

    thread_id: str
    collection: str
    turns: int
    question: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class ThreadView:
    """A conversation as it may be shown: answers whose documents are gone are replaced by a note that says so.

    `messages` are {"role": "user" or "assistant", "text"}; `result` is that of the last finished turn.
    """

    info: ThreadInfo
    messages: list[dict[str, str]]
    result: Result | None


@dataclass(slots=True)
class Turn:
    """One run's use of its conversation. Without a `saver` it has no memory; `failed` says why, also later."""

    saver: "TurnSaver | None" = None
    failure: Exception | None = field(default=None)

    @property
    def failed(self) -> Exception | None:
        """What failed so far, at the beginning or at the end."""
        return self.failure or (self.saver.failed if self.saver else None)


class TurnSaver(BaseCheckpointSaver[Any]):
    """The checkpointer of one run, which begins from `stored`. It raises nothing: what fails is kept as `failed`."""

    def __init__(self, threads: Threads, stored: CheckpointTuple | None, timeout_s: float) -> None:
        super().__init__(serde=threads.serde)
        self.failed: Exception | None = None
        self._threads, self._stored, self._timeout_s = threads, stored, timeout_s

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """What the run begins from. It has no states before it: they are not kept."""
        wanted = get_checkpoint_id(config)
        if self._stored is None or wanted not in (None, self._stored.checkpoint["id"]):
            return None
        return self._stored._replace(parent_config=None)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores the state, within the time there is for it."""
        try:
            put = self._threads.aput(config, checkpoint, metadata, new_versions)
            return await within(self._timeout_s, put, _STORE)
        except Exception as error:  # noqa: BLE001 - a named degrade point: the run has its answer
            log.warning("A turn of a conversation was not kept: %s", error)
            self.failed = error
            return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores nothing: see the checkpointers."""

    def get_next_version(self, current: Any, channel: None) -> Any:
        """As the checkpointer counts."""
        return self._threads.get_next_version(current, channel)


class Conversations:
    """All conversations of an installation. Nothing is opened before it is needed, and what failed is tried again."""

    def __init__(self, opening: Open, *, timeout_s: float) -> None:
        self._open = opening
        self._timeout_s = timeout_s
        self._stack = AsyncExitStack()
        self._opening: asyncio.Task[Threads] | None = None
        self._busy: set[str] = set()

    async def threads(self) -> Threads:
        """The open checkpointer. Raises StoreError where it can't be opened in time; a later call tries again."""
        task = self._opening
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._opening = asyncio.ensure_future(self._stack.enter_async_context(self._open()))
        await asyncio.wait({task}, timeout=self._timeout_s)
        if not task.done():
            raise StoreError(f"The conversations could not be opened within {self._timeout_s:g} s.")
        return task.result()

    async def close(self) -> None:
        """Closes what was opened."""
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait({self._opening}, timeout=self._timeout_s)
        await within(self._timeout_s, self._stack.aclose(), _STORE)

    @asynccontextmanager
    async def turn(self, thread_id: str | None, collection: str) -> AsyncIterator[Turn | None]:
        """One run's turn in a conversation, alone in it; None without one.

        Raises ThreadBusy, and ThreadElsewhere where the conversation is about another collection. Where it can't be
        read the turn has no memory and keeps nothing, so that what is stored stays whole.
        """
        if thread_id is None:
            yield None
            return
        async with AsyncExitStack() as stack:
            stack.enter_context(self._alone_here(thread_id))
            yield await self._begin(thread_id, collection, stack)

    async def _begin(self, thread_id: str, collection: str, stack: AsyncExitStack) -> Turn:
        try:
            threads = await self.threads()
            await self._hold(threads, thread_id, stack)
            stored = await self._stored(threads, thread_id)
        except (ConfigError, ThreadError):
            raise
        except Exception as error:  # noqa: BLE001 - a named degrade point: the question is answered without a memory
            return Turn(failure=error)
        about = stored.metadata.get(COLLECTION, collection) if stored else collection
        if about != collection:
            raise ThreadElsewhere(
                f"The conversation {thread_id} is about the collection {about}, not {collection}.",
                hint=f"Ask in the collection {about}, or begin another conversation.",
            )
        return Turn(TurnSaver(threads, stored, self._timeout_s))

    async def _hold(self, threads: Threads, thread_id: str, stack: AsyncExitStack) -> None:
        alone = threads.alone_on(thread_id)
        await within(self._timeout_s, alone.__aenter__(), _STORE)
        stack.push_async_callback(self._release, alone)

    async def _release(self, alone: AbstractAsyncContextManager[None]) -> None:
        try:
            await within(self._timeout_s, _exited(alone), _STORE)
        except Exception as error:  # noqa: BLE001 - a named degrade: it is free when this process ends, at the latest
            log.warning("A conversation was not given back: %s", error)

    async def _stored(self, threads: Threads, thread_id: str) -> CheckpointTuple | None:
        return await within(self._timeout_s, threads.aget_tuple(place_of(thread_id)), _STORE)

    @contextmanager
    def _alone_here(self, thread_id: str) -> Iterator[None]:
        if thread_id in self._busy:
            raise busy(thread_id)
        self._busy.add(thread_id)
        try:
            yield
        finally:
            self._busy.discard(thread_id)

    async def listed(self) -> list[ThreadInfo]:
        """All conversations that can be read, the one used last first. Raises StoreError."""
        found = await within(self._timeout_s, _infos(await self.threads()), _STORE)
        return sorted(found, key=lambda info: info.updated_at, reverse=True)

    async def view(self, thread_id: str, still_there: StillThere) -> ThreadView:
        """One conversation. Raises ThreadUnknown, StoreError."""
        stored = await self._stored(await self.threads(), thread_id)
        if stored is None:
            raise _unknown(thread_id)
        values = stored.checkpoint["channel_values"]
        kept = await usable(values.get("messages", []), values.get("result"), still_there)
        said = [{"role": _role(message), "text": message.text} for message in kept.messages]
        return ThreadView(_info(stored), said, kept.result)

    async def delete(self, thread_id: str) -> None:
        """Removes a conversation, its bytes too. Raises ThreadUnknown, ThreadBusy, StoreError."""
        async with AsyncExitStack() as stack:
            stack.enter_context(self._alone_here(thread_id))
            threads = await self.threads()
            await self._hold(threads, thread_id, stack)
            if not await threads.delete(thread_id):
                raise _unknown(thread_id)
            await threads.purge()


async def _exited(alone: AbstractAsyncContextManager[None]) -> None:
    await alone.__aexit__(None, None, None)


async def _infos(threads: Threads) -> list[ThreadInfo]:
    return [_info(stored) async for stored in threads.last_states() if stored is not None]


def _info(stored: CheckpointTuple) -> ThreadInfo:
    messages: list[AnyMessage] = stored.checkpoint["channel_values"].get("messages", [])
    asked = [message.text for message in messages if isinstance(message, HumanMessage)]
    return ThreadInfo(
        thread_id=stored.config["configurable"]["thread_id"],
        collection=str(stored.metadata.get(COLLECTION, "")),
        turns=len(asked),
        question=asked[0] if asked else "",
        updated_at=stored.checkpoint["ts"],
    )


def _role(message: AnyMessage) -> str:
    return "user" if isinstance(message, HumanMessage) else "assistant"


def _unknown(thread_id: str) -> ThreadUnknown:
    return ThreadUnknown(f"There is no conversation {thread_id}.")


@asynccontextmanager
async def open_threads(settings: Settings, *, busy_s: float | None = None) -> AsyncIterator[Threads]:
    """The checkpointer that the settings name: a file in the data folder, made with it, or a PostgreSQL database.

    `busy_s`: how long to wait for another process that has it locked. Raises StoreDamaged, StoreError, ConfigError.
    """
    wait_s = settings.threads_timeout_s if busy_s is None else busy_s
    path = threads_path(settings)
    if path is not None:
        await asyncio.to_thread(settings.data_dir.mkdir, parents=True, exist_ok=True)
        async with open_sqlite(path, busy_s=_SHARE * wait_s) as in_file:
            yield in_file
        return
    assert settings.threads_url is not None, "conversations without a file are in a database"
    try:
        from leadline.graph.threads_postgres import open_postgres  # its packages are an extra
    except ImportError as error:
        raise MissingExtra(
            "Conversations in PostgreSQL need the packages langgraph-checkpoint-postgres and psycopg.",
            hint="Install them with `pip install 'leadline[postgres]'`.",
        ) from error
    async with open_postgres(settings.threads_url.get_secret_value(), timeout_s=wait_s) as in_database:
        yield in_database


@asynccontextmanager
async def open_conversations(settings: Settings) -> AsyncIterator[Conversations]:
    """The conversations of an installation for the length of the block; opened when the first one is used."""
    conversations = Conversations(lambda: open_threads(settings), timeout_s=settings.threads_timeout_s)
    try:
        yield conversations
    finally:
        try:
            await conversations.close()
        except Exception as error:  # noqa: BLE001 - a named degrade: there is nothing left to do with it
            log.warning("The store of the conversations was not closed in order: %s", error)
