"""What can be told of an embedded Chroma folder from outside, before Chroma opens it.

Chroma answers wrongly, or takes the process down, when a file of one of its vector segments is cut short or gone, and
starts an empty database when the main file is missing. So the folder is looked at first, and never changed here.
"""

import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from leadline.errors import StoreDamaged
from leadline.stores import chroma_links

DATABASE = "chroma.sqlite3"
HEADER_FILE = "header.bin"
SEGMENT_FILES = (HEADER_FILE, "data_level0.bin", "length.bin", "link_lists.bin", "index_metadata.pickle")
HEADER_VERSION = 1


def check(folder: Path) -> None:
    """Raises StoreDamaged unless `folder` is empty, missing, or complete as far as sizes can tell."""
    segments = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    if segments and not (folder / DATABASE).is_file():
        raise damaged(folder, f"{DATABASE} is missing")
    if not (folder / DATABASE).is_file():
        return
    for segment, vectors in _saved(folder).items():
        _check_segment(folder, folder / segment, vectors)


def damaged(folder: Path, reason: str) -> StoreDamaged:
    """The error for a folder that can't be read."""
    return StoreDamaged(
        f"The Chroma folder {folder} can't be read: {reason}.",
        hint="Nothing in it was changed. Move it away and run `leadline verify --repair`: the catalog has the vectors.",
    )


def _saved(folder: Path) -> dict[str, int]:
    """Segment → how many vectors it must hold, of those that Chroma ever wrote out. Until then (1,000 vectors by
    default) its files are mere room: all is in the database's queue, and is read from there on opening."""
    query = """
        SELECT saved.segment_id, (
            SELECT count(*) FROM embeddings JOIN segments AS own ON own.id = embeddings.segment_id
            WHERE own.collection = ours.collection AND embeddings.seq_id <= saved.seq_id
        ) FROM max_seq_id AS saved JOIN segments AS ours ON ours.id = saved.segment_id WHERE ours.scope = 'VECTOR'
    """
    try:
        # Opened for writing too, so that SQLite may roll back what a killed process left half done.
        with closing(sqlite3.connect(f"{(folder / DATABASE).absolute().as_uri()}?mode=rw", uri=True)) as connection:
            return dict(connection.execute(query).fetchall())
    except sqlite3.Error as error:
        raise damaged(folder, f"{DATABASE}: {error}") from error


def _check_segment(folder: Path, segment: Path, expected: int) -> None:
    """The segment must be there, hold as many vectors as the database has seen go in, and can be followed."""
    sizes = {path.name: path.stat().st_size for path in segment.iterdir()} if segment.is_dir() else {}
    if not sizes and expected:
        raise damaged(folder, f"the segment {segment.name} is missing")
    if not sizes:
        return
    try:
        header = chroma_links.read_header((segment / HEADER_FILE).read_bytes())
    except (FileNotFoundError, struct.error):
        raise damaged(folder, f"{segment.name}/{HEADER_FILE} is missing or cut short") from None
    if header.version != HEADER_VERSION:
        raise damaged(folder, f"{segment.name}/{HEADER_FILE} has the unknown version {header.version}")
    if header.vectors < expected:
        raise damaged(folder, f"{segment.name} holds {header.vectors} vectors of {expected}")
    if header.vectors:  # else all of it is in the database yet
        _check_vectors(folder, segment, header, sizes)


def _check_vectors(folder: Path, segment: Path, header: chroma_links.Header, sizes: Mapping[str, int]) -> None:
    missing = [name for name in SEGMENT_FILES if name not in sizes]
    if missing:
        raise damaged(folder, f"{segment.name}/{missing[0]} is missing")
    if sizes["data_level0.bin"] < header.vectors * header.vector_bytes:
        raise damaged(folder, f"{segment.name}/data_level0.bin is cut short")
    if not sizes["index_metadata.pickle"]:
        raise damaged(folder, f"{segment.name}/index_metadata.pickle is empty")
    if fault := chroma_links.fault(segment, header):
        raise damaged(folder, f"{segment.name}/{fault}")
