"""An HNSW index saved beside the vectors it is made of, so that it needn't be built again when a store is opened.

The vectors' own file says which saved index goes with it, by a hash of all of its bytes: another one, a cut one or a
missing one is never read, and the index is made of the vectors instead. Knows bytes and names; knows no FAISS.
"""

import hashlib
from pathlib import Path

from leadline.stores import index_files
from leadline.stores.sqlite_file import SqliteFile

TABLE = (
    "CREATE TABLE IF NOT EXISTS saved_index (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), hash TEXT NOT NULL);"
)
NAME = "hnsw-{}.faiss"


def newest(file: SqliteFile) -> str:
    """The hash of the saved index that goes with the vectors; empty where none does."""
    return "".join(str(row[0]) for row in file.rows("SELECT hash FROM saved_index"))


def read(folder: Path, wanted: str) -> bytes | None:
    """The saved index with this hash; None if there is none such."""
    try:
        content = _place(folder, wanted).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise index_files.unusable(folder, error) from error
    return content if hashlib.sha256(content).hexdigest() == wanted else None


def write(file: SqliteFile, content: bytes) -> str:
    """Saves an index in place of the one before; returns its hash. A crash leaves the one or the other."""
    digest = hashlib.sha256(content).hexdigest()
    try:
        index_files.write_atomically(_place(file.folder, digest), content)
    except OSError as error:
        raise index_files.unusable(file.folder, error) from error
    with file.transaction() as connection:
        connection.execute("INSERT OR REPLACE INTO saved_index VALUES (1, ?)", (digest,))
    _remove_others(file.folder, digest)
    return digest


def remove(file: SqliteFile) -> None:
    """Removes every saved index."""
    with file.transaction() as connection:
        connection.execute("DELETE FROM saved_index")
    _remove_others(file.folder, "")


def _place(folder: Path, digest: str) -> Path:
    return folder / NAME.format(digest[:16])


def _remove_others(folder: Path, kept: str) -> None:
    for path in folder.glob(NAME.format("*")):
        if path != _place(folder, kept):
            path.unlink(missing_ok=True)
