"""Milvus Lite: the engine over one local file, run as a process that ends with the one that started it.

Knows how milvus-lite 2.5 is started and stopped; nothing of what is said to it. It listens on a socket in a folder
that only this user can open. Two processes can't have one file.
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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from leadline.errors import ConfigError, MissingExtra, StoreError

START_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = 10.0
# A killed process's engine ends by itself, but not at once.
LOCK_TIMEOUT_S: Final = 5.0
POLL_S: Final = 0.02
NAME = re.compile(r"[A-Za-z0-9._-]{1,36}")


@dataclass(slots=True)
class _Engine:
    process: subprocess.Popen[bytes]
    lock: IO[bytes]
    folder: Path
    users: int = 1

    @property
    def url(self) -> str:
        return f"unix:{self.folder / 'milvus.sock'}"


_engines: dict[Path, _Engine] = {}
_starting = threading.Lock()


def start(file: Path) -> str:
    """The address of the engine over `file`, which is made if it isn't there. Blocks until it answers.

    Each `start` needs a `stop`. Raises StoreError, also when another process has the file; MissingExtra.
    """
    file = file.absolute()
    with _starting:
        engine = _engines.get(file)
        if engine is not None and engine.process.poll() is None:
            engine.users += 1
            return engine.url
        if engine is not None:
            _end(engine)
        _engines[file] = _start(file)
        return _engines[file].url


def stop(file: Path) -> None:
    """Gives the engine over `file` up; the last to do so ends it."""
    file = file.absolute()
    with _starting:
        engine = _engines.get(file)
        if engine is None:
            return
        engine.users -= 1
        if engine.users < 1:
            del _engines[file]
            _end(engine)


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


def command(file: Path, address: str) -> tuple[list[str], dict[str, str]]:
    """What starts the engine over `file`, and its environment."""
    program = binary()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent), "DYLD_LIBRARY_PATH": str(program.parent)}
    return [str(program), str(file), address, "ERROR"], environment


def _start(file: Path) -> _Engine:
    if not NAME.fullmatch(file.name):
        raise ConfigError(
            f"Milvus Lite can't keep its data in a file called {file.name!r}.",
            hint="Letters, digits, dots, - and _; at most 36 of them.",
        )
    binary()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock_file = file.with_name(f".{file.name}.lock")
        lock = lock_file.open("ab")
    except OSError as error:
        raise StoreError(f"Milvus Lite can't keep its data in {file}: {error.strerror}.") from error
    folder: Path | None = None
    try:
        _take(lock, file)
        folder = Path(tempfile.mkdtemp(prefix="leadline-milvus-"))
        arguments, environment = command(file, f"unix:{folder / 'milvus.sock'}")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - a program of a package we asked for
                [*arguments, str(lock_file)],  # when it gets this lock, its starter is gone, and it ends itself
                cwd=file.parent,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupt at the terminal is for us, not for the data
            )
        engine = _Engine(process, lock, folder)
        _wait_until_ready(engine, file)
    except BaseException:
        lock.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return engine


def _take(lock: IO[bytes], file: Path) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"Another process has the Milvus Lite file {file}.",
                    hint="End it, or run one Milvus server for both and set its url.",
                ) from None
            time.sleep(POLL_S)
        else:
            return


def _wait_until_ready(engine: _Engine, file: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _answers(engine.folder / "milvus.sock"):
        if engine.process.poll() is not None or time.monotonic() > deadline:
            engine.process.kill()
            engine.process.wait()
            said = (engine.folder / "log").read_bytes()[-500:].decode(errors="replace").strip()
            raise StoreError(
                f"Milvus Lite did not start over {file}: {said or f'status {engine.process.returncode}'}.",
                hint="The file is left as it is. If it is damaged, move it away and build the index again.",
            )
        time.sleep(POLL_S)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def _end(engine: _Engine) -> None:
    engine.process.terminate()
    try:
        engine.process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        engine.process.kill()
        engine.process.wait()
    engine.lock.close()
    shutil.rmtree(engine.folder, ignore_errors=True)
