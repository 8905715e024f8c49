"""Names each moment at which a process changes what stands in a data folder, and kills it at one of them.

A write step is: a statement that ends a transaction of SQLite, or is one; a file made, opened to be written, moved or
removed; a writing call of an index, which may write by other means. The moment is right before it; a call of an index
also has one right after it. Knows Python's and SQLite's hooks, and nothing of what is stored.
"""

import os
import re
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from inspect import CO_GENERATOR, iscoroutinefunction
from pathlib import Path
from types import FrameType
from typing import Any, Final

FOLDER_EVENTS: Final = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink"})
WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
STORE_CALLS: Final = ("ensure_ready", "upsert", "delete", "clear")
READING: Final = ("BEGIN", "SELECT", "WITH", "EXPLAIN", "SAVEPOINT", "RELEASE", "--")
WRITING_PRAGMAS: Final = ("wal_checkpoint", "journal_mode")
RANDOM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}")


def kill() -> None:
    """No chance to clean up."""
    os.kill(os.getpid(), signal.SIGKILL)


class Steps:
    """The write steps of this process under `folder`, from `arm` on. Kills it at the one called `deadly`.

    Without one `names` has, in order, each that finds another content in the folder than the one before: killed at
    any other, the process would leave the same files.
    """

    def __init__(self, folder: Path, deadly: str | None) -> None:
        self.names: list[str] = []
        self._folder = str(folder)
        self._deadly = deadly
        self._counts: Counter[str] = Counter()
        self._before = b""
        self._armed = False
        self._one = threading.RLock()

    def install(self) -> None:
        """From now on there are steps. For the rest of the process."""
        sys.addaudithook(self._on_event)
        _trace_connections(self._on_statement)
        for store in _stores():
            for name in STORE_CALLS:
                setattr(store, name, self._around(f"{store.__name__}.{name}", getattr(store, name)))

    def arm(self) -> None:
        """The steps before don't count."""
        self._armed = True

    def step(self, label: str, *, always: bool = False) -> None:
        """A moment, told from others by its name."""
        with self._one:
            if not self._armed:
                return
            self._counts[label] += 1
            name = f"{label} {self._counts[label]}"
            if name == self._deadly:
                kill()
            if self._deadly is None:
                self._armed = False  # to look is no step
                state = content(Path(self._folder))
                self._armed = True
                if always or state != self._before:
                    self.names.append(name)
                    self._before = state

    def _around(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*args: Any, **kwargs: Any) -> Any:
            self.step(f"before {label}")
            result = await call(*args, **kwargs)
            self.step(f"after {label}")
            return result

        return called

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._armed or (event not in FOLDER_EVENTS and not (event == "open" and args[2] & WRITING)):
            return
        for path in _paths(event, args):
            if path.startswith(self._folder):
                self.step(f"{event} {RANDOM.sub('*', path[len(self._folder) :])}")
                return

    def _on_statement(self, connection: sqlite3.Connection, statement: str) -> None:
        if not self._armed:
            return
        word = statement.lstrip().split(None, 1)[0].upper()
        if word == "PRAGMA":
            writes = any(pragma in statement for pragma in WRITING_PRAGMAS)
        else:
            writes = word in ("COMMIT", "END") or not (connection.in_transaction or word.startswith(READING))
        if writes:
            self.step(f"{word} of {_caller(sys._getframe())}")


def content(folder: Path) -> bytes:
    """A digest of all files. What SQLite keeps in shared memory is left out: it is made anew after a crash."""
    digest = blake2b()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path).encode())
        if path.is_file() and not path.name.endswith("-shm"):
            with suppress(FileNotFoundError):  # another thread is at work
                digest.update(path.read_bytes())
    return digest.digest()


def _paths(event: str, args: tuple[Any, ...]) -> list[str]:
    """The places an event is about, absolute."""
    if event in ("os.rename", "os.link"):
        given = [(args[0], args[2]), (args[1], args[3])]
    elif event == "os.symlink":
        given = [(args[1], args[2])]
    elif event == "open":
        given = [(args[0], -1)]
    else:
        given = [(args[0], args[-1])]  # the last is the open folder that the name is in
    return [_absolute(path, folder) for path, folder in given if isinstance(path, (str, bytes, os.PathLike))]


def _absolute(path: Any, folder: int) -> str:
    name = os.fsdecode(path)
    if folder >= 0:
        return str(Path(f"/proc/self/fd/{folder}").readlink() / name)
    return str(Path(name).absolute())


def _caller(frame: FrameType | None) -> str:
    """The function of Leadline that asked for it; the blocks it is wrapped in, and the threads, say nothing."""
    while frame is not None:
        code = frame.f_code
        if "/leadline/" in code.co_filename and not code.co_flags & CO_GENERATOR:
            return f"{Path(code.co_filename).stem}.{code.co_name}"
        frame = frame.f_back
    return "?"


def _trace_connections(told: Callable[[sqlite3.Connection, str], None]) -> None:
    connect = sqlite3.connect

    def connected(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **kwargs)
        connection.set_trace_callback(lambda statement: told(connection, statement))
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        module.connect = connected  # type: ignore[attr-defined]  # for the rest of this process


def _stores() -> list[type[Any]]:
    """The classes of indexes that are loaded; not the one that only passes calls on to another process."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith("leadline.stores.")]
    found = {item for module in modules for item in vars(module).values() if isinstance(item, type)}
    return [
        each
        for each in found
        if all(iscoroutinefunction(each.__dict__.get(name)) for name in STORE_CALLS)
        and each.__name__ != "SharedVectorStore"
        and not getattr(each, "_is_protocol", False)
    ]
