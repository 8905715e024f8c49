"""A random walk over a small piece of the entity graph: personalised PageRank. Pure.

The walk starts at the entities of the question, goes from an entity to a chunk that mentions it, the more often the
likelier, and from a chunk to its entities, the rarer in the collection the likelier; at each step it may start again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAMPING = 0.85
STEPS = 50
# A mention of a word of a longer name (Fox of Dana Fox) weighs so much of a mention of the name itself.
PART_WEIGHT = 0.5


class Mention(NamedTuple):
    """An edge: a chunk mentions an entity `times` times; `part`: only as a word of longer names."""

    chunk_id: str
    entity: str
    times: int
    part: bool


def rarity(chunks: int, total: int) -> float:
    """The weight of an entity that `chunks` of `total` chunks mention."""
    return math.log(1 + total / max(1, chunks))


def tie(times: int, part: bool) -> float:
    """How strongly a mention ties its chunk to its entity, however rare that is: repetition counts less and less."""
    return math.log1p(times) * (PART_WEIGHT if part else 1)


def walk(mentions: Iterable[Mention], seeds: Iterable[str], rarities: Mapping[str, float]) -> dict[str, float]:
    """Chunk id → share of the walk spent there. Empty without a mention of a seed. Linear in the mentions.

    No two mentions are of the same entity in the same chunk.
    """
    import numpy as np

    edges = sorted(mentions)
    chunks = {chunk_id: number for number, chunk_id in enumerate(dict.fromkeys(edge[0] for edge in edges))}
    entities = {entity: number for number, entity in enumerate(sorted({edge[1] for edge in edges}), len(chunks))}
    starts = {entities[seed]: rarities[seed] for seed in sorted(set(seeds)) if seed in entities}
    if not starts:
        return {}
    again = np.zeros(len(chunks) + len(entities))
    again[list(starts)] = list(starts.values())
    again *= (1 - DAMPING) / again.sum()
    ends = np.array([[chunks[edge[0]] for edge in edges], [entities[edge[1]] for edge in edges]])
    weights = np.array([tie(times, part) * rarities[entity] for _, entity, times, part in edges])
    shares = _spread(ends, weights, again).tolist()
    return {chunk_id: round(shares[number], 12) for chunk_id, number in chunks.items()}


def _spread(ends: NDArray[Any], weights: NDArray[Any], again: NDArray[Any]) -> NDArray[Any]:
    """Node → share, after `STEPS` steps over edges that go both ways; with `again` the walk starts anew."""
    import numpy as np

    size = len(again)
    leaving, entering = ends.ravel(), ends[::-1].ravel()
    weighed = np.tile(weights, 2)
    chances = DAMPING * weighed / np.bincount(leaving, weighed, size)[leaving]
    share = np.full(size, 1 / size)
    moved = np.empty_like(chances)
    for _ in range(STEPS):
        share.take(leaving, out=moved, mode="clip")  # of the modes the one that makes no copy
        moved *= chances
        share = np.bincount(entering, moved, size)
        share += again
    return share
