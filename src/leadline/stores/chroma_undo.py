"""Takes back what Chroma was saving when its process was killed.

Embedded Chroma writes the files of a vector segment in place, every `sync_threshold` changes, and notes in its database
only then up to which change they hold. Killed in between, it leaves files that are neither the old nor the new ones,
while the changes still stand in its queue. So before a write that may come to such a save the files are copied, under a
name that says up to which change they hold. A copy whose number is still the one in the database is put back before
the next opening; Chroma then makes the later changes again. A save costs one copy of its segment's files.

Changes no vector by itself, and must not run beside an open Chroma but between its calls.
"""

import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import StoreError
from leadline.stores import chroma_database, chroma_links

FOLDER = "leadline-undo"
DEFAULT_THRESHOLD = 1000
# Bytes of a vector's component, and at most of what the files hold of each vector besides: links, id and number.
WORD, LINKS = 4, 1000
THRESHOLD = re.compile(r'"sync_threshold":\s*(\d+)')
# Each vector segment, up to which change its files hold, how many changes wait in the queue, and its collection's
# settings, which say how many make Chroma save.
SEGMENTS = """
SELECT segments.id, COALESCE(saved.seq_id, 0),
    (SELECT count(*) FROM embeddings_queue WHERE embeddings_queue.seq_id > COALESCE(saved.seq_id, 0)),
    COALESCE(collections.dimension, 0), collections.*
FROM segments JOIN collections ON collections.id = segments.collection
LEFT JOIN max_seq_id saved ON saved.segment_id = segments.id WHERE segments.scope = 'VECTOR'
"""


# Of the folders that this process has open: by how many clients, each of which may be in the middle of a save, and how
# many more changes any of them may make before one saves.
_clients: Counter[Path] = Counter()
_rooms: dict[Path, int] = {}
_alone = threading.RLock()


@dataclass(frozen=True)
class _Segment:
    """A vector segment as the database has it. `room` is how many more changes are made before one may save, `waiting`
    how many were made since the last save, of vectors of `width`."""

    name: str
    saved: int
    room: int
    waiting: int
    width: int


class Undo:
    """The copies of one Chroma folder. `check_room` raises where so many bytes can't be written."""

    def __init__(self, folder: Path, check_room: Callable[[int], None]) -> None:
        self._folder = folder
        self._copies = folder / FOLDER
        self._check_room = check_room

    def open(self) -> None:
        """To be called before Chroma opens the folder: puts back what a killed process was saving.

        Raises OSError, sqlite3.Error, and what `check_room` raises; else `release` or `close` is to be called.
        """
        with _alone:
            if not _clients[self._key]:
                self._put_back()
                _rooms[self._key] = 0
                self.before(0)  # opened, Chroma makes the changes of its queue, and may save then
            _clients[self._key] += 1

    def release(self) -> None:
        """To be called when Chroma could not be opened, or closed. Keeps the copies."""
        with _alone:
            _clients[self._key] -= 1

    def before(self, changes: int) -> int:
        """To be called before so many changes; by how many bytes a save may make the files longer, 0 where none comes.

        Raises as `open`; nothing was changed then.
        """
        with _alone:
            _rooms[self._key] = _rooms.get(self._key, 0) - changes
            if _rooms[self._key] > 0:
                return 0
            segments = list(self._segments())
            _rooms[self._key] = min((segment.room for segment in segments), default=1) - changes
            due = [segment for segment in segments if segment.room <= changes]
            for segment in due:
                self._copy(segment)
            return sum((segment.waiting + changes) * (WORD * segment.width + LINKS) for segment in due)

    def after(self) -> None:
        """To be called after a change: a copy is of no use once Chroma has saved.

        Raises StoreError where the system wrote only a part of it, which Chroma doesn't notice.
        """
        with _alone:
            if not self._copies.is_dir():
                return
            current = {f"{segment.name}@{segment.saved}": segment.name for segment in self._segments()}
            saved = [copy for copy in self._copies.iterdir() if copy.name not in current]
            for copy in saved:
                shutil.rmtree(copy)
            names = {copy.name.partition("@")[0] for copy in saved}.intersection(current.values())
            broken = sorted(name for name in names if not chroma_links.is_whole(self._folder / name))
        if broken:
            raise StoreError(
                f"The disk of the Chroma folder {self._folder} didn't take all that was saved in {', '.join(broken)}. "
                "Until the next save it is only in the memory of this process.",
                hint="Make room there and go on writing, or start again and run `leadline verify --repair`.",
            )

    def close(self) -> None:
        """To be called when Chroma was closed in order."""
        with _alone:
            self.release()
            if _clients[self._key] or not self._copies.is_dir():
                return
            for copy in list(self._copies.iterdir()):
                # Half of a copy must not pass for one, should this process be killed now.
                shutil.rmtree(copy.rename(copy.with_name(f"gone-{copy.name.replace('@', '-')}")))
            self._copies.rmdir()

    @property
    def _key(self) -> Path:
        return self._folder.resolve()

    def _put_back(self) -> None:
        if not self._copies.is_dir():
            return
        saved = {f"{segment.name}@{segment.saved}": segment.name for segment in self._segments()}
        for copy in list(self._copies.iterdir()):
            if copy.name not in saved:  # the save came to its end, or the copying didn't
                shutil.rmtree(copy)
                continue
            segment = self._folder / saved[copy.name]
            shutil.rmtree(segment, ignore_errors=True)
            shutil.copytree(copy, segment)

    def _segments(self) -> Iterator[_Segment]:
        for name, saved, waiting, width, *settings in chroma_database.rows(self._folder, SEGMENTS):
            found = [int(each) for text in settings for each in THRESHOLD.findall(str(text))]
            yield _Segment(name, int(saved), min(found, default=DEFAULT_THRESHOLD) - waiting, waiting, width)

    def _copy(self, segment: _Segment) -> None:
        copy = self._copies / f"{segment.name}@{segment.saved}"
        if copy.is_dir():
            return
        original = self._folder / segment.name
        self._check_room(sum(path.stat().st_size for path in original.glob("*")))
        unfinished = copy.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for path in original.glob("*"):
            shutil.copyfile(path, unfinished / path.name)
        unfinished.rename(copy)
