"""What can be told of an embedded Chroma folder from outside, before Chroma opens it.

Chroma answers wrongly, or takes the process down, when a file of one of its vector segments is cut short or gone, and
starts an empty database when the main file is missing. So the folder is looked at first, and never changed here.
"""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from leadline.errors import StoreDamaged

DATABASE = "chroma.sqlite3"
HEADER_FILE = "header.bin"
SEGMENT_FILES = (HEADER_FILE, "data_level0.bin", "length.bin", "link_lists.bin", "index_metadata.pickle")
# The start of hnswlib's header: version, offset of level 0, capacity, vectors, bytes a vector.
HEADER = struct.Struct("<IQQQQ")
HEADER_VERSION = 1
HEADER_BYTES = 100


def check(folder: Path) -> None:
    """Raises StoreDamaged unless `folder` is empty, missing, or complete as far as sizes can tell."""
    segments = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    if segments and not (folder / DATABASE).is_file():
        raise damaged(folder, f"{DATABASE} is missing")
    for segment in segments:
        _check_segment(folder, segment)


def damaged(folder: Path, reason: str) -> StoreDamaged:
    """The error for a folder that can't be read."""
    return StoreDamaged(
        f"The Chroma folder {folder} can't be read: {reason}.",
        hint="Nothing in it was changed. Move it away and run `leadline verify --repair`: the catalog has the vectors.",
    )


def _was_saved(folder: Path, segment: Path) -> bool:
    """Whether Chroma ever wrote the segment out. Until then (1,000 vectors by default) its files are mere room for
    vectors, which are all in the database's queue; on opening they are read from there."""
    try:
        # Opened for writing too, so that SQLite may roll back what a killed process left half done.
        with closing(sqlite3.connect(f"{(folder / DATABASE).absolute().as_uri()}?mode=rw", uri=True)) as connection:
            query = "SELECT 1 FROM max_seq_id WHERE segment_id = ?"
            return connection.execute(query, (segment.name,)).fetchone() is not None
    except sqlite3.Error as error:
        raise damaged(folder, f"{DATABASE}: {error}") from error


def _check_segment(folder: Path, segment: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in segment.iterdir()}
    if not sizes or not _was_saved(folder, segment):
        return
    header = (segment / HEADER_FILE).read_bytes() if HEADER_FILE in sizes else b""
    if len(header) < HEADER_BYTES:
        raise damaged(folder, f"{segment.name}/{HEADER_FILE} is missing or cut short")
    version, _, _, vectors, vector_bytes = HEADER.unpack_from(header)
    if version != HEADER_VERSION:
        raise damaged(folder, f"{segment.name}/{HEADER_FILE} has the unknown version {version}")
    if not vectors:  # nothing was moved here yet: all of it is in the database
        return
    missing = [name for name in SEGMENT_FILES if name not in sizes]
    if missing:
        raise damaged(folder, f"{segment.name}/{missing[0]} is missing")
    if sizes["data_level0.bin"] < vectors * vector_bytes:
        raise damaged(folder, f"{segment.name}/data_level0.bin is cut short")
    if not sizes["index_metadata.pickle"]:
        raise damaged(folder, f"{segment.name}/index_metadata.pickle is empty")
