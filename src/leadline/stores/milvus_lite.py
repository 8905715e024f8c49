"""Milvus Lite: the engine over one local file, a process of this machine that ends with the last one that uses it.

Knows how milvus-lite 2.5 is started, shared and ended; nothing of what is said to it. It listens on a socket in a
folder that only this user can open. Whoever uses a file holds a shared lock beside it, which the system takes back from
the dead; the engine waits for that lock to be its own, and then goes.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from leadline.errors import ConfigError, MissingExtra, StoreError

START_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.01
NAME = re.compile(r"[A-Za-z0-9._-]{1,36}")
FOLDER: Final = "leadline-milvus-"
SOCKET: Final = "milvus.sock"


@dataclass(slots=True)
class _Engine:
    socket: Path
    lock: IO[bytes]
    users: int


_engines: dict[Path, _Engine] = {}
_started: list[subprocess.Popen[bytes]] = []  # kept, so that the system can tell their end
_changing = threading.Lock()


def start(file: Path) -> str:
    """The address of the engine over `file`, which is made if it isn't there. Blocks until it answers.

    Any number of threads and processes may ask for one file; each `start` needs a `stop`. Raises StoreError,
    ConfigError and MissingExtra.
    """
    file = file.absolute()
    if not NAME.fullmatch(file.name):
        raise ConfigError(
            f"Milvus Lite can't keep its data in a file called {file.name!r}.",
            hint="Letters, digits, dots, - and _; at most 36 of them.",
        )
    with _changing:
        engine = _engines.get(file)
        if engine is None or not _answers(engine.socket):
            engine = _engines[file] = _join(file, engine)
        engine.users += 1
        return f"unix:{engine.socket}"


def stop(file: Path) -> None:
    """Gives the engine over `file` up. The last one to do so waits for its end."""
    file = file.absolute()
    with _changing:
        engine = _engines.get(file)
        if engine is None:
            return
        engine.users -= 1
        if engine.users < 1:
            del _engines[file]
            # Of a folder that was removed, nobody starts another engine.
            with _alone(file) if file.parent.is_dir() else nullcontext():
                _leave(engine)


def binary() -> Path:
    """The engine's program. Raises MissingExtra where milvus-lite isn't installed, or is a version without one."""
    found = importlib.util.find_spec("milvus_lite")  # importing it needs more packages than running it does
    path = Path(found.origin).parent / "lib" / "milvus" if found and found.origin else None
    if path is None or not path.is_file():
        raise MissingExtra(
            "Milvus in a local file needs the package milvus-lite, version 2.5.",
            hint="pip install 'leadline[milvus-lite]', or set the url of a Milvus server.",
        )
    return path


def command(file: Path, address: str, logs: Path) -> tuple[list[str], dict[str, str]]:
    """What starts the engine over `file`, and its environment. It logs its errors into the folder `logs`."""
    program = binary()
    libraries = dict.fromkeys(("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"), str(program.parent))
    logging = {"GLOG_log_dir": str(logs), "GLOG_minloglevel": "2"}  # by default all goes into /tmp
    return [str(program), str(file), address, "ERROR"], {**os.environ, **libraries, **logging}


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(f".{file.name}.{ending}")


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """While one process starts or ends an engine, no other one does."""
    with _beside(file, "change").open("ab") as change:
        fcntl.lockf(change, fcntl.LOCK_EX)
        yield


def _join(file: Path, former: _Engine | None) -> _Engine:
    """The engine that another process started, or a new one. `former` is ours that has died."""
    binary()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _alone(file):
            lock = former.lock if former else _beside(file, "lock").open("a+b")
            try:
                fcntl.lockf(lock, fcntl.LOCK_SH)  # an engine about to go is waited for
                return _Engine(_running(file) or _spawn(file), lock, former.users if former else 0)
            except BaseException:
                if former is None:
                    lock.close()
                raise
    except OSError as error:
        raise StoreError(f"Milvus Lite can't keep its data in {file}: {error.strerror}.") from error


def _running(file: Path) -> Path | None:
    """The socket of the engine that is running; what a dead one left is removed."""
    try:
        place, _, mark = _beside(file, "at").read_text().partition("\n")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    if mark != _mark(file):  # a copy of the folder: the engine has the original
        return None
    path = Path(place)
    if _answers(path):
        return path
    _remove_folder(path)
    return None


def _mark(file: Path) -> str:
    """Tells a file from its copies, but not from itself under another name."""
    told = _beside(file, "lock").stat()
    return f"{told.st_dev}:{told.st_ino}"


def _spawn(file: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=FOLDER))
    path = folder / SOCKET
    arguments, environment = command(file, f"unix:{path}", folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - a program of a package we asked for
            [*arguments, str(_beside(file, "lock"))],
            cwd=file.parent,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt at the terminal is for us, not for the data
        )
    _started[:] = [*(one for one in _started if one.poll() is None), process]
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _answers(path):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            said = (folder / "log").read_bytes()[-500:].decode(errors="replace").strip()
            _remove_folder(path)
            raise StoreError(
                f"Milvus Lite did not start over {file}: {said or f'status {process.returncode}'}.",
                hint="The file is left as it is. If it is damaged, move it away and build the index again.",
            )
        time.sleep(POLL_S)
    _beside(file, "at").write_text(f"{path}\n{_mark(file)}")
    return path


def _leave(engine: _Engine) -> None:
    try:
        fcntl.lockf(engine.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        engine.lock.close()  # others use it
        return
    engine.lock.close()
    deadline = time.monotonic() + END_TIMEOUT_S
    while _answers(engine.socket) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    _remove_folder(engine.socket)


def _remove_folder(path: Path) -> None:
    folder = path.parent
    if folder.name.startswith(FOLDER) and folder.parent == Path(tempfile.gettempdir()):
        shutil.rmtree(folder, ignore_errors=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except PermissionError as error:
            raise StoreError(f"Another user of this machine runs Milvus Lite at {path}.") from error
        except OSError:
            return False
    return True
