"""Fetches the piece of the entity graph around a question's entities: two real hops, each bounded.

Chunks that mention the entities, the other entities of those chunks, and other chunks that mention these. Chunks that
fail the filter are never walked through. Very common entities lead nowhere: everything would be near everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, Row, Select, cast, func, select

from leadline.stores import filters
from leadline.stores.base import Where
from leadline.stores.catalog import batched
from leadline.stores.entity_graph_schema import graph_chunks, graph_mentions
from leadline.stores.entity_walk import Mention, rarity, weight

ENOUGH_DIRECT = 200  # chunks the entities of the question lead to, the ones that mention them most
MOST_DIRECT = 1000  # however many are asked for
MOST_SEEDS = 16
MOST_BRIDGES = 30  # entities of the second hop
MOST_FURTHER = 10  # chunks each of them leads to


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Mentions to walk over; `direct` are the chunks that mention one of `seeds`; entity → rarity."""

    seeds: Sequence[str]
    direct: frozenset[str]
    mentions: Sequence[Mention]
    rarities: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Reader:
    connection: Connection
    collection: str
    where: Where | None

    def total(self) -> int:
        """How many chunks the collection has."""
        of_collection = graph_chunks.c.collection == self.collection
        return self.connection.execute(select(func.count()).select_from(graph_chunks).where(of_collection)).scalar_one()

    def frequencies(self, entities: Sequence[str]) -> dict[str, tuple[int, bool]]:
        """Entity → how many chunks mention it, and whether any names it as a whole."""
        found: dict[str, tuple[int, bool]] = {}
        columns = graph_mentions.c
        for batch in batched(entities):
            statement = (
                select(columns.entity, func.count(), func.min(cast(columns.part, Integer)))
                .where(columns.collection == self.collection, columns.entity.in_(batch))
                .group_by(columns.entity)
            )
            for entity, chunks, only_parts in self.connection.execute(statement):
                found[entity] = (chunks, not only_parts)
        return found

    def holders(self, entity: str, limit: int, without: frozenset[str] = frozenset()) -> Iterator[Mention]:
        """The mentions of an entity in chunks that pass the filter, most frequent first."""
        kept = 0
        for row in self.connection.execute(_holders(self.collection, entity)):
            if kept == limit:
                return
            if row.chunk_id not in without and filters.matches(self.where, row.fields):
                kept += 1
                yield _mention(row)

    def mentions_of(self, chunk_ids: Sequence[str]) -> Iterator[Mention]:
        """All mentions in these chunks."""
        columns = graph_mentions.c
        for batch in batched(chunk_ids):
            statement = select(graph_mentions).where(columns.collection == self.collection, columns.chunk_id.in_(batch))
            yield from map(_mention, self.connection.execute(statement))


def fetch(connection: Connection, collection: str, seeds: Sequence[str], where: Where | None, k: int) -> Neighbourhood:
    """The neighbourhood of the known entities `seeds`, wide enough for `k` chunks where there are so many."""
    reader = _Reader(connection, collection, where)
    total = reader.total()
    frequencies = reader.frequencies(seeds)
    rarest = sorted(seeds, key=lambda seed: (frequencies[seed][0], seed))[:MOST_SEEDS]
    rarities = {seed: rarity(frequencies[seed][0], total) for seed in rarest}
    width = min(MOST_DIRECT, max(k, ENOUGH_DIRECT // len(rarest)))
    direct = frozenset(mention.chunk_id for seed in rarest for mention in reader.holders(seed, width))
    of_direct = list(reader.mentions_of(sorted(direct)))
    bridges = _bridges(reader, of_direct, rarities, total)
    further = [mention for entity in bridges for mention in reader.holders(entity, MOST_FURTHER, without=direct)]
    rarities |= bridges
    mentions = [mention for mention in of_direct if mention.entity in rarities] + further
    return Neighbourhood(rarest, direct, mentions, rarities)


def _bridges(reader: _Reader, of_direct: Sequence[Mention], seeds: Mapping[str, float], total: int) -> dict[str, float]:
    """Entity → rarity, of the entities of the direct chunks that lead furthest."""
    others = [mention for mention in of_direct if mention.entity not in seeds]
    cap = _degree_cap(total)
    known = {
        entity: rarity(chunks, total)
        for entity, (chunks, is_whole) in reader.frequencies(sorted({each.entity for each in others})).items()
        if 1 < chunks <= cap and is_whole
    }
    strengths = dict.fromkeys(known, 0.0)
    for mention in others:
        if mention.entity in known:
            strengths[mention.entity] += weight(mention, known)
    best = sorted(strengths, key=lambda entity: (-strengths[entity], entity))[:MOST_BRIDGES]
    return {entity: known[entity] for entity in best}


def _degree_cap(total: int) -> int:
    """In how many chunks an entity may be for the second hop to go through it."""
    return min(100, max(8, total // 5))


def _holders(collection: str, entity: str) -> Select[tuple[str, str, int, bool, dict[str, object]]]:
    columns = graph_mentions.c
    return (
        select(columns.chunk_id, columns.entity, columns["count"], columns.part, graph_chunks.c.fields)
        .join(
            graph_chunks,
            (graph_chunks.c.collection == columns.collection) & (graph_chunks.c.chunk_id == columns.chunk_id),
        )
        .where(columns.collection == collection, columns.entity == entity)
        .order_by(columns["count"].desc(), columns.chunk_id.desc())  # the order of the index, backwards
    )


def _mention(row: Row[tuple[object, ...]]) -> Mention:
    values = row._mapping
    return Mention(values["chunk_id"], values["entity"], values["count"], values["part"])
