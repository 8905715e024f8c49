"""Qdrant's segment engine in this process, over one folder of one collection.

The folder holds a shard, `shard-1`, with a manifest and a seal inside. Clearing makes the next shard and drops the old
one, so that nothing of it is left. What isn't a whole shard yet, or no more, has a name that ends in `.part`.

The engine replays its log after a crash. But it starts without a word on a shard whose files were cut short or lost
after the log had moved on, and then answers from what is left. So closing writes a seal, the size of every file, and
opening compares them before the engine may touch one. A shard that wasn't closed (the process was killed) has no seal.
Building an HNSW graph would hold the interpreter for its whole time, half a minute at 100,000 vectors: it is off.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from leadline.errors import LeadlineError, MissingExtra, StoreError
from leadline.stores import index_files, qdrant_calls, qdrant_files
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.qdrant_engine import Row, Shape
from leadline.stores.qdrant_payloads import CHUNK_ID, Expression, Kind, Payload

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, UpdateOperation

T = TypeVar("T")

FIRST = f"{qdrant_files.SHARD}1"
PAGE = 10_000
# What the engine says when the machine, not the file, is the reason: no permission, too many files, disk full,
# read-only.
MACHINE = tuple(f"(os error {number})" for number in (13, 24, 28, 30))


class EmbeddedEngine:
    """An Engine over the folder `folder`. Its calls run in threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = FIRST
        self._shape: Shape | None = None
        self._shard: EdgeShard | None = None
        self._writing = threading.Lock()

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    @property
    def most_indexes(self) -> int:
        """Few: each is nine files more that every write waits for."""
        return 8

    async def open(self) -> Shape | None:
        """Opens the shard if there is one. Raises StoreDamaged, or StoreError where another process has it."""
        return await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """Closes and seals the shard."""
        await asyncio.to_thread(self._close)

    async def create(self, shape: Shape) -> Shape:
        """Makes the first shard."""
        await asyncio.to_thread(self._create, shape, self._name)
        return shape

    async def index(self, path: str, kind: Kind) -> None:
        """Has a part of the payload indexed."""
        await asyncio.to_thread(self._write, qdrant_calls.field_index(path, kind))

    async def upsert(self, records: Sequence[ChunkRecord]) -> None:
        """Inserts or replaces points and waits for the disk."""
        await asyncio.to_thread(self._upsert, records)

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        """Which of the points there are."""
        found = await self._call(lambda shard: shard.retrieve(list(point_ids), with_payload=False, with_vector=False))
        return {str(point.id) for point in found}

    async def delete(self, point_ids: Sequence[str]) -> None:
        """Removes points and waits for the disk."""
        await asyncio.to_thread(self._delete, point_ids)

    async def page(self, after: str | None) -> tuple[list[Payload], str | None]:
        """A page of chunk ids."""
        from qdrant_edge import ScrollRequest

        request = ScrollRequest(offset=after, limit=PAGE, with_payload=[CHUNK_ID], with_vector=False)
        points, following = await self._call(lambda shard: shard.scroll(request))
        return [point.payload or {} for point in points], None if following is None else str(following)

    async def count(self) -> int:
        """How many points there are."""
        from qdrant_edge import CountRequest

        return await self._call(lambda shard: shard.count(CountRequest(exact=True)))

    async def clear(self) -> None:
        """Makes an empty shard and drops the old one with its files."""
        await asyncio.to_thread(self._clear)

    async def search(self, vector: Vector, n: int, expression: Expression | None, *, whole: bool) -> list[Row]:
        """The nearest points by comparison with all of them."""
        return await self._call(lambda shard: qdrant_calls.search(shard, vector, n, expression, whole))

    async def _call(self, call: Callable[[EdgeShard], T]) -> T:
        return await asyncio.to_thread(self._called, call)

    def _called(self, call: Callable[[EdgeShard], T]) -> T:
        shard = self._shard
        if shard is None:
            raise StoreError(f"The Qdrant store in {self._folder} isn't open.", hint="Use it inside `async with`.")
        with self._errors_named():
            return call(shard)

    def _open(self) -> Shape | None:
        try:
            import qdrant_edge  # noqa: F401 - better now than at the first record
        except ImportError:
            raise MissingExtra(
                "Qdrant in this process needs the package qdrant-edge-py.", hint="pip install 'leadline[qdrant]'"
            ) from None
        shards = qdrant_files.shards(self._folder)
        if not shards:
            return None
        self._name = shards[-1]
        self._shape = qdrant_files.read_shape(self._folder / self._name)
        qdrant_files.check_seal(self._folder / self._name)
        qdrant_files.ensure_room(self._folder, qdrant_files.TOUCH_MB)
        self._load()
        for leftover in [*shards[:-1], *qdrant_files.leftovers(self._folder)]:
            shutil.rmtree(self._folder / leftover)
        return self._shape

    def _load(self) -> None:
        from qdrant_edge import CountRequest, EdgeShard, Filter, HasVectorCondition

        with self._errors_named(opening=True):
            shard = EdgeShard.load(str(self._folder / self._name))
        qdrant_files.break_seal(self._folder / self._name)
        self._shard = shard
        with_vector = CountRequest(exact=True, filter=Filter(must=[HasVectorCondition("")]))
        points, vectors = self._called(lambda s: (s.count(CountRequest(exact=True)), s.count(with_vector)))
        if points != vectors:
            self._shard = None
            raise index_files.damaged(self._folder, f"of {points} chunks {points - vectors} have lost their vectors")

    def _close(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            with self._writing, self._errors_named():
                shard.close()
            qdrant_files.write_seal(self._folder / self._name)

    def _create(self, shape: Shape, name: str) -> None:
        qdrant_files.ensure_room(self._folder, qdrant_files.WRITE_MB)
        part = self._folder / f"{name}{qdrant_files.PART}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        with self._errors_named():
            qdrant_calls.make_shard(part, shape)
        qdrant_files.write_shape(part, shape)
        qdrant_files.rename(part, self._folder / name)
        self._name, self._shape = name, shape
        self._load()

    def _clear(self) -> None:
        with self._writing:
            old = self._folder / self._name
            assert self._shape is not None
            # Whoever is searching the old shard holds it until the search is over.
            self._create(self._shape, qdrant_files.after(self._name))
            part = old.with_name(f"{old.name}{qdrant_files.PART}")
            qdrant_files.rename(old, part)
            shutil.rmtree(part)

    def _upsert(self, records: Sequence[ChunkRecord]) -> None:
        from qdrant_edge import UpdateOperation

        qdrant_files.ensure_room(self._folder, qdrant_files.WRITE_MB)
        self._write(UpdateOperation.upsert_points(qdrant_calls.points(records)))

    def _delete(self, point_ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        self._write(UpdateOperation.delete_points(list(point_ids)))

    def _write(self, operation: UpdateOperation) -> None:
        """Writes through to the disk, and lets the engine rewrite a segment a fifth of which is deleted."""
        with self._writing:
            qdrant_files.ensure_room(self._folder, qdrant_files.TOUCH_MB)
            self._called(lambda shard: shard.update(operation))
            self._called(lambda shard: shard.flush())
            if qdrant_files.has_room_for_another(self._folder / self._name):
                self._called(lambda shard: shard.optimize())

    @contextmanager
    def _errors_named(self, *, opening: bool = False) -> Iterator[None]:
        """Turns what the engine raises, bare Exceptions and Rust's panics, into our own errors."""
        try:
            yield
        except LeadlineError:
            raise
        except Exception as error:
            text = str(error)
            if "WouldBlock" in text:
                raise StoreError(
                    f"The Qdrant store in {self._folder} is open in another place, and one at a time can have it.",
                    hint="Close the other one, or use a Qdrant server.",
                ) from error
            if opening and not any(reason in text for reason in MACHINE):
                raise index_files.damaged(self._folder, text) from error
            raise StoreError(f"Qdrant in {self._folder} could not do that: {text}.") from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            self._shard = None
            raise index_files.damaged(self._folder, str(error)) from error
