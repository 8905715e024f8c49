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
    """Chunk id → share of the walk spent there. Empty without a mention of a seed. Quadratic in the nodes."""
    import networkx as nx  # and numpy beneath it
    import numpy as np

    graph = nx.Graph()
    for mention in sorted(mentions, key=lambda each: (each.chunk_id, each.entity)):
        graph.add_edge(("chunk", mention.chunk_id), ("entity", mention.entity), weight=weight(mention, rarities))
    starts = {("entity", seed): rarities[seed] for seed in sorted(seeds) if ("entity", seed) in graph}
    if not starts:
        return {}
    nodes = sorted(graph)
    step = np.asarray(nx.google_matrix(graph, DAMPING, personalization=starts, nodelist=nodes, weight="weight"))
    share = np.full(len(nodes), 1 / len(nodes))
    for _ in range(STEPS):
        share = share @ step
    return {name: round(float(part), 12) for (kind, name), part in zip(nodes, share, strict=True) if kind == "chunk"}
