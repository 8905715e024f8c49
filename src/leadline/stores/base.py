"""The store contract: what goes in, what comes out, and the methods every backend has.

All stores are asynchronous and opened with `async with`; constructing one does no I/O. Indexes hold chunk ids and
filter fields, never text: the catalog does. Scores are a store's own, higher is better everywhere, and are never
compared across stores.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from leadline.drafts import FieldValue
from leadline.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from leadline.records import Document
    from leadline.stores.steps import Step

Vector = NDArray[np.float32]
Where = Mapping[str, Any]
Stats = dict[str, Any]

# Every engine keeps such an id; some take no longer ones, and lose them without a word.
LONGEST_ID = 512


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """What an index is given for one chunk.

    `text` is the embedded text (prefix included): analysed by lexical and graph stores, not kept. `vectors` may be
    more than one; search counts the best per chunk. `fields` can be filtered on.
    """

    chunk_id: str
    doc_id: str
    text: str = ""
    vectors: tuple[Vector, ...] = ()
    fields: Mapping[str, FieldValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """What an index gives back: `rank` is 0-based, `score` is the store's own scale, higher is better."""

    chunk_id: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class SavedChunk:
    """What a save yields for each record. `cached`: the store held it already, and it was not written again."""

    record: ChunkRecord
    cached: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of an item that could not be made: what it was, and why. A stream that has one prunes nothing."""

    item: str
    error: str


@dataclass(frozen=True, slots=True)
class Policy:
    """How a save works through its stream.

    A batch is written when it has `batch_size` records, or `window_s` seconds after its first one came; `concurrency`
    batches are under way at once. A batch that fails is tried `retries` times more. `recreate_cache` writes every
    record, also those the store holds, and embeds again what has a stored vector.
    """

    batch_size: int = 256
    window_s: float = 0.5
    concurrency: int = 1
    retries: int = 0
    recreate_cache: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.concurrency < 1 or self.retries < 0 or self.window_s < 0:
            raise ConfigError(
                f"{self} can't be worked by.",
                hint="batch_size and concurrency are at least 1, retries and window_s at least 0.",
            )


def has_usable_vectors(record: ChunkRecord) -> bool:
    """Whether a record has vectors, each finite and not all zero: the ones a vector store takes in."""
    return bool(record.vectors) and all(np.isfinite(vector).all() and np.any(vector) for vector in record.vectors)


def check_ids(records: Sequence[ChunkRecord]) -> None:
    """Raises StoreError, naming a bad one, unless each chunk id is 1 to 512 characters of UTF-8 without NUL."""
    for record in records:
        chunk_id = record.chunk_id
        if not 0 < len(chunk_id) <= LONGEST_ID or any(
            sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in chunk_id
        ):
            raise StoreError(
                f"{chunk_id[:80]!r} can't be a chunk's id.",
                hint=f"It has 1 to {LONGEST_ID} characters, no NUL and no half of a surrogate pair.",
            )


def check_question(vector: Vector) -> None:
    """Raises StoreError for a question's vector that nothing can be near to: not finite, or all zero."""
    if not np.isfinite(vector).all() or not np.any(vector):
        raise StoreError(
            "A question's vector must be finite and not all zero.", hint="The embedding model gave no usable vector."
        )


class Store(Protocol):
    """The methods all four kinds of store share."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    async def ensure_ready(self, dimension: int = 0) -> None:
        """Creates or validates; idempotent. Another width, metric or analyser than stored: ManifestMismatch.

        `dimension` is the vectors' width; stores without vectors ignore it.
        """
        ...

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Inserts or replaces by chunk id; of repeated ids the last wins. Returns how many records were refused
        (non-finite or all-zero vectors). Splits by the backend's own batch limit; nothing of a record refused is
        kept."""
        ...

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` are stored. One round trip a batch; never guesses."""
        ...

    async def all_ids(self) -> set[str]:
        """Every id, complete; empty when nothing was created yet."""
        ...

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes by id; unknown ids and an empty list are fine. Returns how many were really there."""
        ...

    async def count(self) -> int:
        """How many chunks are stored."""
        ...

    async def clear(self) -> None:
        """Removes everything, for good: nothing of it comes back after a restart. Metric and width stay."""
        ...

    async def stats(self) -> Stats:
        """Figures for people: at least `backend` and `count`."""
        ...

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> Step:
        """A step that stores the records of `upstream` when it is iterated or run; nothing happens before.

        The index step alone: it writes this index, not the catalog. A record the store has already is not written
        again. Each is yielded once its batch is stored; of an id that comes twice in a batch the last one counts, and
        both are yielded. Without a usable vector a vector store refuses a record: ItemFailed, and it isn't yielded.

        `skip_existing`: an upstream that embeds or reads text (`steps.Unfinished`) does so only for ids the store
        lacks; the others come back as they are: id and fields, perhaps without text and vectors. Ids say nothing of the
        model, so each embedding configuration needs a store of its own. Closed early, what was read is stored. Raises
        StoreError when a batch fails after the retries.
        """
        ...

    def sync(
        self,
        upstream: AsyncIterable[ChunkRecord | Failed],
        *,
        skip_existing: bool = False,
        allow_empty: bool = False,
    ) -> Step:
        """Like `save`; then removes what the run did not yield, unless it raised, was stopped early, had a failed item
        or was empty (without `allow_empty`). A DocumentsPruned event says what was removed, or why nothing was.

        The stream must hold all that the store is to keep: one store for each stream that is synced.
        """
        ...


class VectorStore(Store, Protocol):
    """Dense retrieval."""

    async def search(self, vector: Vector, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks nearest to `vector`, best first, filtered before the cut."""
        ...


class LexicalStore(Store, Protocol):
    """Keyword retrieval."""

    async def lexical_search(self, text: str, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks that share a term with `text`, best first, filtered before the cut."""
        ...


class JointStore(VectorStore, LexicalStore, Protocol):
    """Dense and keyword retrieval over one index. A chunk without a usable vector is kept for its words."""


class GraphStore(Store, Protocol):
    """Retrieval over the entity graph."""

    async def search(self, text: str, *, k: int, where: Where | None = None) -> list[Hit]:
        """At most `k` chunks that mention the entities of `text` or share entities with those that do."""
        ...


class ChunkStore(Store, Protocol):
    """The text of chunks by id: the one place where it is kept."""

    async def fetch(self, ids: Sequence[str]) -> dict[str, str]:
        """Chunk id → text, in the order of `ids`, read in one batch. Ids it doesn't have are left out."""
        ...


class Retriever(Protocol):
    """One leg of retrieval over an open store: hits with their text fetched."""

    @property
    def name(self) -> str:
        """The leg: `vector`, `bm25`, `graph`, or a new one's own name."""
        ...

    async def search(self, query: str, *, k: int, where: Where | None = None) -> list[Document]:
        """At most `k` documents, best first, `metadata["found_by"]` holding this leg's rank and score. Raises
        StoreError."""
        ...
