"""The bytes of uploaded files, in a folder beside the catalog: under their hash, never under a name somebody gave.

Bytes are there as long as a document in any collection has them, or a job still needs them. They come and go inside
write transactions of the catalog, so that nothing is swept that another process is just putting in. Knows no names, no
jobs and no documents but by that hash.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO, Final, Self

from sqlalchemy import Connection, select

from leadline.errors import StoreError
from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_job_rows import ACTIVE
from leadline.stores.catalog_schema import job_items, versions
from leadline.stores.lease import process_start, this_process

FOLDER: Final = "uploads"
_INCOMING: Final = "incoming-"
_HASH: Final = re.compile("[0-9a-f]{64}")
_ABANDONED_S: Final = 3600.0  # nothing was written to it for so long, by a process that can't be looked up from here


def folder_of(catalog: Catalog) -> Path:
    """Where the bytes are; need not be there."""
    return catalog.path.parent / FOLDER


def path_of(catalog: Catalog, file_hash: str) -> Path:
    """Where the bytes with this hash are, if they are kept."""
    return folder_of(catalog) / file_hash


def size_of(catalog: Catalog, file_hash: str) -> int | None:
    """How many bytes; None where they are not kept."""
    if not _HASH.fullmatch(file_hash):  # whoever puts in drafts of their own may call anything a hash
        return None
    try:
        return path_of(catalog, file_hash).stat().st_size
    except OSError:
        return None


class Incoming:
    """A file that is being received: written under a name of the server's own until it is whole. A context manager;
    what is not kept by its end is removed.

    All calls block. `file_hash` is the sha256 of what was written so far.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._digest = hashlib.sha256()
        self._path = folder_of(catalog) / _new_name()
        self._file: IO[bytes] | None = None
        self.bytes = 0

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Nobody else's to read, and no link is followed.
            self._file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except OSError as error:
            raise _unwritable(error) from error
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # of a full disk: what was written is removed anyway
                self._file.close()
        self._path.unlink(missing_ok=True)

    @property
    def file_hash(self) -> str:
        """The name under which the bytes are kept."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Adds bytes. Raises StoreError."""
        assert self._file is not None, "used inside its block"
        try:
            self._file.write(data)
        except OSError as error:
            raise _unwritable(error) from error
        self._digest.update(data)
        self.bytes += len(data)

    def close(self) -> None:
        """All of it is on disk when this returns. Raises StoreError."""
        assert self._file is not None, "used inside its block"
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise _unwritable(error) from error

    def keep(self) -> None:
        """Puts the file in its place. Inside the write transaction that makes somebody need it."""
        try:
            self._path.replace(path_of(self._catalog, self.file_hash))
        except OSError as error:
            raise _unwritable(error) from error


def kept_of(catalog: Catalog, doc_ids: Sequence[str]) -> list[str]:
    """The hashes of bytes that are kept and that a version of these documents has, live or not."""
    if not folder_of(catalog).is_dir():
        return []
    found: set[str] = set()
    with catalog.read() as connection:
        for batch in batched(doc_ids):
            query = select(versions.c.file_hash).where(versions.c.doc_id.in_(batch))
            found.update(connection.execute(query).scalars())
    return [file_hash for file_hash in found if size_of(catalog, file_hash) is not None]


def drop_unused(catalog: Catalog, hashes: Sequence[str]) -> int:
    """Removes those of these bytes that no document has and no job needs any more; returns how many."""
    if not hashes:
        return 0
    gone = 0
    with catalog.write_cache() as connection:
        for batch in batched(list(dict.fromkeys(hashes))):
            for file_hash in set(batch) - _used(connection, batch):
                with suppress(FileNotFoundError):
                    path_of(catalog, file_hash).unlink()
                    gone += 1
    return gone


def tidy(catalog: Catalog) -> int:
    """Removes what interrupted uploads left, and all bytes that nobody needs. For when a server starts."""
    abandoned = [path for path in _files(catalog) if path.name.startswith(_INCOMING) and _is_abandoned(path)]
    for path in abandoned:
        path.unlink(missing_ok=True)
    whole = [path.name for path in _files(catalog) if _HASH.fullmatch(path.name)]
    return len(abandoned) + drop_unused(catalog, whole)


def _used(connection: Connection, hashes: Sequence[str]) -> set[str]:
    of_versions = select(versions.c.file_hash).where(versions.c.file_hash.in_(hashes))
    of_jobs = select(job_items.c.file_hash).where(
        job_items.c.file_hash.in_(hashes), job_items.c.status.in_(ACTIVE), job_items.c.deleted == 0
    )
    return {*connection.execute(of_versions).scalars(), *connection.execute(of_jobs).scalars()}


def _files(catalog: Catalog) -> Iterator[Path]:
    folder = folder_of(catalog)
    return folder.iterdir() if folder.is_dir() else iter(())


def _new_name() -> str:
    """Says who writes it, so that what a killed process left is known."""
    return f"{_INCOMING}{_here()}-{os.getpid()}-{process_start(os.getpid()) or 0}-{token_hex(8)}"


def _here() -> str:
    me = this_process()
    return hashlib.sha256(f"{me.host} {me.realm}".encode()).hexdigest()[:12]


def _is_abandoned(path: Path) -> bool:
    host, pid, started, _ = path.name.removeprefix(_INCOMING).split("-")
    if host == _here() and started != "0":
        return process_start(int(pid)) != started
    return time.time() - path.stat().st_mtime > _ABANDONED_S


def _unwritable(error: OSError) -> StoreError:
    return StoreError(
        f"The upload could not be stored: {error.strerror}.", hint="Nothing of it was kept. Is the server's disk full?"
    )
