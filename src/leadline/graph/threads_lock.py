"""One run at a time in a conversation, among all processes that have its file: a lock the system takes back itself.

Each conversation that has a run on has a file of its own here, locked by the process the run is in. The system gives
the lock up when the process ends, however it ends. The files are empty, and removed when their run ends.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.errors import ThreadBusy

if sys.platform == "win32":
    import msvcrt

    def _locked(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import errno
    import fcntl

    def _locked(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True


@contextmanager
def lock_thread(folder: Path, thread_id: str) -> Iterator[None]:
    """Holds the conversation for the length of the block. Raises ThreadBusy at once if it is held; OSError."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{hashlib.sha256(thread_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.lock"
    descriptor = _take(path)
    if descriptor is None:
        raise busy(thread_id)
    try:
        yield
    finally:
        try:
            if os.name != "nt":  # there a file that is open can't be removed
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _take(path: Path) -> int | None:
    """The descriptor that holds the lock; None where somebody else has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _locked(descriptor):
                os.close(descriptor)
                return None
            if os.name == "nt" or _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever had it before has removed it since it was opened here


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def busy(thread_id: str) -> ThreadBusy:
    """A run is on in this conversation, here or in another process."""
    return ThreadBusy(f"A run is already going on in the conversation {thread_id}.", hint="Wait for its end.")
