"""A random walk over a small piece of the entity graph: personalised PageRank. Pure.

The walk starts at the entities of the question, goes from an entity to a chunk that mentions it, the more often the
likelier, and from a chunk to its entities, the rarer in the collection the likelier; at each step it may start again.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DAMPING = 0.85
STEPS = 50
# A mention of a word of a longer name (Fox of Dana Fox) weighs so much of a mention of the name itself.
PART_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Mention:
    """An edge: a chunk mentions an entity `count` times; `part`: only as a word of longer names."""

    chunk_id: str
    entity: str
    count: int
    part: bool


def rarity(chunks: int, total: int) -> float:
    """The weight of an entity that `chunks` of `total` chunks mention."""
    return math.log(1 + total / max(1, chunks))


def weight(mention: Mention, rarities: Mapping[str, float]) -> float:
    """How strongly a mention ties its chunk to its entity: repetition counts, but less and less."""
    return math.log1p(mention.count) * rarities[mention.entity] * (PART_WEIGHT if mention.part else 1)


def walk(mentions: Iterable[Mention], seeds: Iterable[str], rarities: Mapping[str, float]) -> dict[str, float]:
    """Chunk id → share of the walk spent there. Empty without a mention of a seed. Linear in the mentions."""
    import numpy as np

    weights = {(each.chunk_id, each.entity): weight(each, rarities) for each in mentions}
    edges = sorted(weights)
    chunks = _numbered({chunk_id for chunk_id, _ in edges}, 0)
    entities = _numbered({entity for _, entity in edges}, len(chunks))
    starts = {entities[seed]: rarities[seed] for seed in sorted(set(seeds)) if seed in entities}
    if not starts:
        return {}
    size = len(chunks) + len(entities)
    ends = np.array([[chunks[chunk_id], entities[entity]] for chunk_id, entity in edges]).T
    leaving, entering = ends.ravel(), ends[::-1].ravel()  # each edge both ways
    weighed = np.tile([weights[edge] for edge in edges], 2)
    chances = DAMPING * weighed / np.bincount(leaving, weighed, size)[leaving]
    again = np.zeros(size)
    again[list(starts)] = list(starts.values())
    again *= (1 - DAMPING) / again.sum()
    share = np.full(size, 1 / size)
    for _ in range(STEPS):
        share = np.bincount(entering, share[leaving] * chances, size) + again
    return {
        chunk_id: round(part, 12) for chunk_id, part in zip(chunks, share.tolist(), strict=False)
    }  # chunks come first


def _numbered(names: Iterable[str], first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(names), first)}
