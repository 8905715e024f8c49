"""Chroma in this process, over a folder. Its client is synchronous, so its calls run in threads.

Chroma takes no lock: two processes on one folder lose vectors without an error, so only one may have it open.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings
from chromadb.errors import ChromaError, InternalError, NotFoundError

from leadline.errors import StoreError
from leadline.stores import chroma_files, index_files, room
from leadline.stores.chroma_client import Vanished, no_database
from leadline.stores.chroma_database import DATABASE
from leadline.stores.chroma_undo import Undo

# Chroma 1.5.9 may never return from a write to a full disk, so it isn't let near one.
# It keeps what is written in its queue, its journal and its index at the same time, and beside it the chunks' fields.
COPIES = 3
FIELDS = 2**20
MARGIN = 32 * 2**20
# Methods of a collection that Chroma may save after.
CHANGES = ("upsert", "delete")
# What the system says when it lets nobody write: no sign that the files are damaged.
OF_THE_SYSTEM = ("disk is full", "disk I/O error", "readonly database", "unable to open database", "locked", "os error")


class EmbeddedChroma:
    """A ChromaClient over a folder."""

    def __init__(self, folder: Path, tenant: str, database: str) -> None:
        self._folder = folder
        self._tenant = tenant
        self._database = database
        self._client: Any = None
        self._undo = Undo(folder, self.check_room)
        self._failed = False

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    async def open(self) -> None:
        """Looks the folder over, then opens it."""
        opening = asyncio.create_task(asyncio.to_thread(self._open))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:  # a thread can't be: what it opened is closed again
            await asyncio.wait([opening])
            if opening.exception() is None:
                await self.close()
            raise

    async def close(self) -> None:
        """Closes the folder."""
        await asyncio.to_thread(self._close)

    async def batch_limit(self) -> int:
        """What SQLite's limit of variables a statement leaves."""
        return int(await self.call(self._client.get_max_batch_size))

    async def find(self, name: str) -> Any | None:
        """The collection, or None."""
        try:
            return await self.call(self._client.get_collection, name=name, embedding_function=None)
        except Vanished:
            return None

    async def create(self, name: str, configuration: Mapping[str, Any], metadata: Mapping[str, Any]) -> Any:
        """Makes the collection."""
        self.check_room(0)
        return await self.call(
            self._client.create_collection,
            name=name,
            configuration=dict(configuration),
            metadata=dict(metadata),
            embedding_function=None,
        )

    async def drop(self, name: str) -> None:
        """Removes the collection."""
        try:
            await self.call(self._client.delete_collection, name=name)
        except Vanished:
            return

    async def call(self, method: Callable[..., Any], **arguments: Any) -> Any:
        """Calls in a thread."""
        reading = method.__name__.startswith(("get", "query", "count"))
        with self._errors_named(reading=reading):
            if method.__name__ in CHANGES:
                return await asyncio.to_thread(self._change, method, arguments)
            return await asyncio.to_thread(method, **arguments)

    def check_room(self, size: int, growth: int = 0) -> None:
        """Raises StoreError unless the disk has room for `size` bytes of vectors and what Chroma needs besides.

        `growth` is by how much a save makes its files longer.
        """
        more = COPIES * size + growth + FIELDS
        files = (path for pattern in ("*", "*/*") for path in self._folder.glob(pattern) if path.is_file())
        longest = max((path.stat().st_size for path in files), default=0)
        lacking = room.lacking(self._folder, more + MARGIN, largest=longest + more)
        if lacking:
            raise StoreError(
                f"The disk of the Chroma folder {self._folder} is full: {lacking}. Nothing of what it holds is lost.",
                hint="Make room on it and try again.",
            )

    def _change(self, method: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if self._failed:  # what it is given now it may acknowledge and then lose
            raise StoreError(
                f"Chroma at {self._folder} could not write and takes no more changes until it is opened anew.",
                hint="Make room on its disk and start again.",
            )
        with self._system_named():
            growth = self._undo.before(len(arguments["ids"]))
            if growth:
                self.check_room(0, growth)
        try:
            result = method(**arguments)
        except InternalError as error:
            self._failed = any(sign in str(error) for sign in OF_THE_SYSTEM)
            raise
        with self._system_named():
            self._undo.after()
        return result

    def _open(self) -> None:
        with self._system_named():
            self._undo.open()
        try:
            self._look_over()
            with self._errors_named(reading=True):
                self._client = self._connected()
        except BaseException:
            self._undo.release()
            raise

    def _close(self) -> None:
        try:
            self._client.close()
        except BaseException:
            self._undo.release()
            raise
        self._undo.close()

    def _look_over(self) -> None:
        with self._system_named():
            chroma_files.check(self._folder)
            self._folder.mkdir(parents=True, exist_ok=True)
            if not (self._folder / DATABASE).exists():
                self.check_room(0)

    def _connected(self) -> Any:
        settings = Settings(anonymized_telemetry=False)
        try:
            return chromadb.PersistentClient(str(self._folder), settings, self._tenant, self._database)
        except NotFoundError:
            raise no_database(self.place, self._tenant, self._database) from None

    def _could_not(self, error: Exception) -> StoreError:
        return StoreError(
            f"Chroma at {self._folder} could not do it: {error}. Nothing of what it held is lost.",
            hint="Look whether its disk is full and whether this user may write there, and try again.",
        )

    @contextmanager
    def _system_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise index_files.unusable(self._folder, error) from error
        except sqlite3.Error as error:
            if any(sign in str(error) for sign in OF_THE_SYSTEM):
                raise self._could_not(error) from error
            raise chroma_files.damaged(self._folder, f"{DATABASE}: {error}") from error

    @contextmanager
    def _errors_named(self, *, reading: bool) -> Iterator[None]:
        try:
            yield
        except NotFoundError as error:
            raise Vanished(f"Chroma at {self._folder} has it no more: {error}.") from error
        except InternalError as error:
            if reading and not any(sign in str(error) for sign in OF_THE_SYSTEM):
                raise chroma_files.damaged(self._folder, str(error)) from error
            raise self._could_not(error) from error
        except ChromaError as error:
            raise StoreError(f"Chroma at {self._folder} refused: {error}.") from error
