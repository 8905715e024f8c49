"""What the Qdrant store needs of Qdrant, whether it runs in this process or as a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.qdrant_payloads import Expression, Kind, Payload

Metric = Literal["cosine", "l2", "ip"]

# Qdrant's names.
DISTANCES = {"cosine": "Cosine", "l2": "Euclid", "ip": "Dot"}
METRICS: dict[str, Metric] = {"Cosine": "cosine", "Euclid": "l2", "Dot": "ip"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a stored collection was made with. `metric` is Qdrant's own name where it isn't one of ours."""

    metric: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Row:
    """One point found. `score` is Qdrant's: a distance for `l2`, else a similarity."""

    payload: Payload
    score: float


class Engine(Protocol):
    """One collection. Every call but `open` and `close` is made after `open` or `create` gave it a shape.

    What a call wrote is durable when it returns. Raises StoreError and its kinds, nothing of a client's own.
    """

    @property
    def place(self) -> str:
        """Where it is, for messages; without anything secret."""
        ...

    @property
    def most_indexes(self) -> int:
        """How many fields are worth an index. A filter on a further one is tested on every chunk: right, and slower."""
        ...

    async def open(self) -> Shape | None:
        """Connects; the shape of the stored collection, None if there is none yet."""
        ...

    async def close(self) -> None: ...

    async def create(self, shape: Shape) -> Shape:
        """Makes the collection; the shape it has, which is another's where somebody else was faster."""
        ...

    async def index(self, path: str, kind: Kind) -> None:
        """Has a part of the payload indexed, for fast filters; does nothing if it is."""
        ...

    async def upsert(self, records: Sequence[ChunkRecord]) -> None:
        """Inserts or replaces whole points."""
        ...

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        """Which of the points there are."""
        ...

    async def delete(self, point_ids: Sequence[str]) -> None: ...

    async def page(self, after: str | None) -> tuple[list[Payload], str | None]:
        """A page of payloads (the chunk ids), and where the next one starts; None after the last."""
        ...

    async def count(self) -> int: ...

    async def clear(self) -> None:
        """Removes all points; the shape stays."""
        ...

    async def search(self, vector: Vector, n: int, expression: Expression | None, *, whole: bool) -> list[Row]:
        """The `n` nearest points that pass the expression, best first. `whole`: with all fields, not the id alone."""
        ...
