"""The host of a shared engine: has it open, and answers the calls of other processes.

Runs on threads of its own, so that it answers whatever the program around it is busy with.
"""

import asyncio
import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Coroutine
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, Final, TypeVar

from leadline.stores import shared_messages
from leadline.stores.base import VectorStore

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOPBACK: Final = "127.0.0.1"
BACKLOG: Final = 64
METHODS: Final = frozenset(
    {"ensure_ready", "upsert", "existing_ids", "all_ids", "delete", "count", "clear", "stats", "search"}
)


def mark(path: Path) -> str:
    """Tells the index in `path` from a copy of it, but not from itself after its folder was moved."""
    lock = lock_file(path).stat()
    return f"{lock.st_dev}:{lock.st_ino}"


def lock_file(path: Path) -> Path:
    """What the host of the index in `path` holds locked."""
    return path.with_name(f"{path.name}.lock")


def host_file(path: Path) -> Path:
    """Where the host of the index in `path` says how it is reached. Only the owner of the folder can read it."""
    return path.with_name(f"{path.name}.host")


class Host:
    """An engine, open on a loop of its own, and the port it is served at."""

    def __init__(self, store: VectorStore, path: Path) -> None:
        self._store = store
        self._path = path
        self._secret = secrets.token_bytes(32)
        self._loop = asyncio.new_event_loop()
        self._running = threading.Thread(target=self._loop.run_forever, name="leadline-host", daemon=True)
        self._listener: Listener | None = None
        self._accepting = threading.Thread(target=self._accept, name="leadline-host-door", daemon=True)
        self._state = threading.Lock()
        self._calls: set[threading.Thread] = set()
        self._stopping = False

    async def start(self) -> None:
        """Opens the engine and serves it. Raises what opening it raises, and is stopped then."""
        self._running.start()
        try:
            await self._on_loop(self._store.__aenter__())
            try:
                await asyncio.to_thread(self._announce)
            except BaseException:
                await self._on_loop(self._store.__aexit__(None, None, None))
                raise
        except BaseException:
            await asyncio.to_thread(self._end_loop)
            raise

    async def call(self, method: str, *args: Any, **options: Any) -> Any:
        """A call of this process."""
        return await self._on_loop(getattr(self._store, method)(*args, **options))

    async def stop(self) -> None:
        """Answers what was asked, then closes the engine. Nobody finds this host any more."""
        try:
            await asyncio.to_thread(self._close_door)
        finally:
            try:
                await self._on_loop(self._store.__aexit__(None, None, None))
            finally:
                await asyncio.to_thread(self._end_loop)

    async def _on_loop(self, call: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._running.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _announce(self) -> None:
        self._listener = Listener((LOOPBACK, 0), backlog=BACKLOG)
        self._accepting.start()
        told = {"port": self._listener.address[1], "secret": self._secret.hex(), "pid": os.getpid()}
        told["of"] = mark(self._path)
        temporary = self._path.with_name(f"{self._path.name}.host-new")
        temporary.unlink(missing_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(told, file)
        temporary.replace(host_file(self._path))

    def _close_door(self) -> None:
        assert self._listener is not None
        host_file(self._path).unlink(missing_ok=True)
        with self._state:
            self._stopping = True
        with socket.create_connection(self._listener.address):  # wakes the thread that waits for one
            pass
        self._accepting.join()
        self._listener.close()
        for call in list(self._calls):
            call.join()

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._stopping:
            try:
                connection = self._listener.accept()
            except OSError as error:  # the caller went away again
                log.info("A call to the index in %s could not be taken: %s", self._path, error)
                continue
            threading.Thread(target=self._serve, args=(connection,), name="leadline-host-call", daemon=True).start()

    def _serve(self, connection: "Connection[Any, Any]") -> None:
        """One call of another process; anybody who doesn't know the secret is turned away."""
        try:
            with connection:
                shared_messages.hurry(connection)
                deliver_challenge(connection, self._secret)
                answer_challenge(connection, self._secret)
                if self._admitted():
                    connection.send_bytes(self._answer(connection.recv_bytes()))
        except (OSError, EOFError, AuthenticationError) as error:
            if not self._stopping:  # the last call is one's own, which only wakes the listener
                log.info("A call to the index in %s was not finished: %s", self._path, error or type(error).__name__)
        finally:
            self._calls.discard(threading.current_thread())

    def _admitted(self) -> bool:
        """Whether a call may still be made; one that may is waited for."""
        with self._state:
            if not self._stopping:
                self._calls.add(threading.current_thread())
            return not self._stopping

    def _answer(self, request: bytes) -> bytes:
        try:
            method, args, options = shared_messages.unpacked(request)
            if method == "ping":
                return shared_messages.packed_result(None)
            if method not in METHODS:
                raise ValueError(f"no method {method!r}")
            call = getattr(self._store, method)(*args, **options)
            return shared_messages.packed_result(asyncio.run_coroutine_threadsafe(call, self._loop).result())
        except Exception as error:  # noqa: BLE001 - a named degrade: raised again by the process that asked
            return shared_messages.packed_error(error)
