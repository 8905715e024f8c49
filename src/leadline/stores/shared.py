"""One vector engine for several processes: whoever comes first has it open, and serves the others.

For engines that two processes must not have open over one folder at once, such as embedded Chroma: they would lose
each other's vectors without an error. A lock file says who the host is; the system frees it when the host ends, however
it ends. The others reach the host at a port of 127.0.0.1 and prove, both sides to each other, that they know a secret
which only the owner of the folder can read. When the host goes, one of the others takes its place and the calls under
way are made again: every call of a store may be repeated.

Knows no engine and no catalog; who may write is the lease's business.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterable, Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, answer_challenge, deliver_challenge
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from filelock import FileLock, Timeout

from leadline.errors import StoreError
from leadline.stores import index_files, shared_messages, steps
from leadline.stores.base import ChunkRecord, Failed, Hit, Policy, Stats, Vector, VectorStore, Where
from leadline.stores.shared_host import LOOPBACK, Host, host_file, lock_file, mark

if TYPE_CHECKING:
    from leadline.stores.steps import Step

ANSWER_S = 120.0  # a host that says nothing for so long is given up
GREETING_S = 5.0
JOIN_S = 60.0  # as long as it may take to open a large index
POLL_S = 0.05


class SharedVectorStore:
    """A VectorStore over `path` that any number of processes may have open at once.

    `make` makes the engine's own store; it is called in the process that becomes the host. A count of `delete` may be
    too low if the host ended in the middle of it.
    """

    def __init__(self, make: Callable[[], VectorStore], *, path: Path, policy: Policy | None = None) -> None:
        self._make = make
        self._path = path
        self._policy = policy or Policy()
        self._lock = FileLock(lock_file(path), thread_local=False)
        self._host: Host | None = None
        self._joining = asyncio.Lock()
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        try:
            await self._join()
        except BaseException:
            self._open = False
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._open = False
        async with self._joining:
            host, self._host = self._host, None
            if host is None:
                return
            try:
                await host.stop()
            finally:
                await asyncio.to_thread(self._lock.release)

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates or validates, as the engine's own store does."""
        await self._call("ensure_ready", dimension)

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces; returns how many were refused for a vector that can't be used."""
        return cast("int", await self._call("upsert", records))

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a vector."""
        return cast("set[str]", await self._call("existing_ids", ids))

    async def all_ids(self) -> set[str]:
        """The chunk ids of all vectors."""
        return cast("set[str]", await self._call("all_ids"))

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes chunks with all of their vectors; returns how many were there."""
        return cast("int", await self._call("delete", ids))

    async def count(self) -> int:
        """How many chunks have a vector."""
        return cast("int", await self._call("count"))

    async def clear(self) -> None:
        """Removes everything, for good."""
        await self._call("clear")

    async def stats(self) -> Stats:
        """What the engine's own store says."""
        return cast("Stats", await self._call("stats"))

    async def search(self, vector: Vector, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first."""
        return cast("list[Hit]", await self._call("search", vector, k=k, where=where))

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> Step:
        """A lazy step that stores what comes; see `VectorStore.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(
        self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False, allow_empty: bool = False
    ) -> Step:
        """A lazy step that stores what comes and removes what didn't; see `VectorStore.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    async def _call(self, method: str, *args: Any, **options: Any) -> Any:
        while self._open:
            if self._host is not None:
                return await self._host.call(method, *args, **options)
            try:
                return await asyncio.to_thread(self._ask, method, args, options)
            except (OSError, EOFError, AuthenticationError):  # the host has gone, or is going
                await self._join()
        raise StoreError(f"The index in {self._path} isn't open.", hint="Use it inside `async with`.")

    async def _join(self) -> None:
        """Becomes the host, or finds one that answers. Raises StoreError if neither can be."""
        deadline = time.monotonic() + JOIN_S
        async with self._joining:
            while self._host is None and not await asyncio.to_thread(self._answers):
                if await asyncio.to_thread(self._took_lock):
                    self._host = await self._become_host()
                elif time.monotonic() > deadline:
                    raise StoreError(
                        f"Another process has the index in {self._path} open and doesn't answer.",
                        hint=f"Its number is in {host_file(self._path)}: end it, or wait for its end.",
                    )
                else:
                    await asyncio.sleep(POLL_S)

    async def _become_host(self) -> Host:
        try:
            host = Host(self._make(), self._path)
            await host.start()
            return host
        except BaseException:
            await asyncio.to_thread(self._lock.release)
            raise

    def _took_lock(self) -> bool:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            raise index_files.unusable(self._path, error) from error
        return True

    def _answers(self) -> bool:
        try:
            self._ask("ping", (), {})
        except (OSError, EOFError, AuthenticationError):
            return False
        return True

    def _ask(self, method: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """One call of the host. Raises what the host's store raised; OSError or EOFError if there is no host."""
        port, secret = _address(self._path)
        with Client((LOOPBACK, port)) as connection:
            shared_messages.hurry(connection)
            if not connection.poll(GREETING_S):
                raise EOFError("not a host")  # a program that took the port of one that was killed
            answer_challenge(connection, secret)
            deliver_challenge(connection, secret)
            connection.send_bytes(shared_messages.packed([method, list(args), options]))
            if not connection.poll(ANSWER_S):
                raise StoreError(
                    f"The process that has the index in {self._path} open does not answer.",
                    hint=f"Its number is in {host_file(self._path)}: end it, and try again.",
                )
            return shared_messages.result(connection.recv_bytes())


def _address(path: Path) -> tuple[int, bytes]:
    try:
        told = json.loads(host_file(path).read_bytes())
        if told["of"] != mark(path):  # it came with a copy of the folder: that host has the original open
            raise KeyError("of")
        return int(told["port"]), bytes.fromhex(told["secret"])
    except (ValueError, KeyError, TypeError) as error:  # left by a host that was killed while it wrote
        raise FileNotFoundError(str(host_file(path))) from error
