"""Fetches the piece of the entity graph around a question's entities: two real hops, each bounded.

Chunks that mention the entities, the other entities of those chunks, and other chunks that mention these. Chunks that
fail the filter are never walked through. Very common entities lead nowhere: everything would be near everything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from leadline.stores import filters
from leadline.stores.base import Where
from leadline.stores.catalog import batched
from leadline.stores.entity_degrees import Degree, degrees
from leadline.stores.entity_graph_schema import graph_chunks, graph_mentions
from leadline.stores.entity_walk import Mention, rarity, weight

ENOUGH_DIRECT = 200  # chunks the entities of the question lead to, the ones that mention them most
MOST_DIRECT = 1000  # however many are asked for
MOST_SEEDS = 16
MOST_BRIDGES = 30  # entities of the second hop
BRIDGES_AT_ONCE = 100  # entities looked at together to find them
MOST_FURTHER = 10  # chunks each of them leads to


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Mentions to walk over; `direct` are the chunks that mention one of `seeds`; entity → rarity."""

    seeds: Sequence[str]
    direct: frozenset[str]
    mentions: Sequence[Mention]
    rarities: Mapping[str, float]


# Statements are made once: to put a statement together takes longer than to find what it asks for.
_MENTION = (graph_mentions.c.chunk_id, graph_mentions.c.entity, graph_mentions.c["count"], graph_mentions.c.part)
_MINE = graph_mentions.c.collection == bindparam("collection")
_IN_CHUNKS = graph_mentions.c.chunk_id.in_(bindparam("chunks", expanding=True))
_MENTIONS_OF = select(*_MENTION).where(_MINE, _IN_CHUNKS)
_FIRST = (graph_mentions.c["count"].desc(), graph_mentions.c.chunk_id.desc())  # the order of the index, backwards
_SAME_CHUNK = (graph_chunks.c.collection == graph_mentions.c.collection) & (
    graph_chunks.c.chunk_id == graph_mentions.c.chunk_id
)
_HOLDERS = select(*_MENTION).where(_MINE, graph_mentions.c.entity == bindparam("entity")).order_by(*_FIRST)
_HOLDERS_WITH_FIELDS = _HOLDERS.add_columns(graph_chunks.c.fields).join(graph_chunks, _SAME_CHUNK)
_FURTHER = (
    select(*_MENTION)
    .where(_MINE, graph_mentions.c.entity.in_(bindparam("entities", expanding=True)))
    .order_by(graph_mentions.c.entity, *_FIRST)
)
_FURTHER_WITH_FIELDS = _FURTHER.add_columns(graph_chunks.c.fields).join(graph_chunks, _SAME_CHUNK)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the graph of a collection in one transaction; `where` is what chunks must pass.

    `counted`: whether the degrees of its entities were noted.
    """

    connection: Connection
    collection: str
    where: Where | None
    counted: bool

    def degrees(self, entities: Sequence[str]) -> dict[str, Degree]:
        """Entity → in how many chunks it is; those that none mentions are left out."""
        return degrees(self.connection, self.collection, entities, counted=self.counted)

    def holders(self, entity: str, limit: int) -> Iterator[Mention]:
        """The mentions of an entity in chunks that pass the filter, most frequent first, read as far as needed."""
        rows = self._ask(_HOLDERS_WITH_FIELDS if self.where else _HOLDERS, entity=entity)
        return islice(self._passing(rows), limit)

    def further(self, entities: Sequence[str], limit: int, without: frozenset[str]) -> Iterator[Mention]:
        """As `holders`, of several entities that few chunks mention, and leaving some chunks out."""
        statement = _FURTHER_WITH_FIELDS if self.where else _FURTHER
        for batch in batched(entities):
            rows = (row for row in self._all(statement, entities=batch) if row[0] not in without)
            for _, mentions in groupby(self._passing(rows), key=lambda mention: mention.entity):
                yield from islice(mentions, limit)

    def _passing(self, rows: Iterable[Sequence[Any]]) -> Iterator[Mention]:
        return (
            Mention(*mention)
            for *mention, fields in (row if self.where else (*row, None) for row in rows)
            if not self.where or filters.matches(self.where, fields)
        )

    def mentions_of(self, chunk_ids: Sequence[str]) -> Iterator[Mention]:
        """All mentions in these chunks."""
        for batch in batched(chunk_ids):
            for row in self._all(_MENTIONS_OF, chunks=batch):
                yield Mention(*row)

    def _ask(self, statement: Select[Any], **values: object) -> Iterable[Sequence[Any]]:
        """Reads row by row, as far as it is asked."""
        return self.connection.execute(statement, {"collection": self.collection, **values})

    def _all(self, statement: Select[Any], **values: object) -> Sequence[Sequence[Any]]:
        return self.connection.execute(statement, {"collection": self.collection, **values}).all()


def fetch(reader: Reader, seeds: Mapping[str, int], total: int, k: int) -> Neighbourhood:
    """The neighbourhood of the known entities `seeds`, wide enough for `k` chunks where there are so many.

    `seeds` says in how many of the `total` chunks each of them is.
    """
    rarest = sorted(seeds, key=lambda seed: (seeds[seed], seed))[:MOST_SEEDS]
    rarities = {seed: rarity(seeds[seed], total) for seed in rarest}
    width = min(MOST_DIRECT, max(k, ENOUGH_DIRECT // len(rarest)))
    direct = frozenset(mention.chunk_id for seed in rarest for mention in reader.holders(seed, width))
    of_direct = list(reader.mentions_of(sorted(direct)))
    bridges = _bridges(reader, [mention for mention in of_direct if mention.entity not in rarities], total)
    further = list(reader.further(list(bridges), MOST_FURTHER, without=direct))
    rarities |= bridges
    mentions = [mention for mention in of_direct if mention.entity in rarities] + further
    return Neighbourhood(rarest, direct, mentions, rarities)


def _bridges(reader: Reader, others: Sequence[Mention], total: int) -> dict[str, float]:
    """Entity → rarity, of the entities of the direct chunks that lead furthest.

    Begins with those that the chunks mention most, and ends where not even the rarest of the rest could lead further.
    """
    of_entity: dict[str, list[Mention]] = {}
    for mention in others:
        of_entity.setdefault(mention.entity, []).append(mention)
    ties = {entity: sum(weight(each, {entity: 1.0}) for each in of) for entity, of in of_entity.items()}
    order = sorted(ties, key=lambda entity: (-ties[entity], entity))
    known: dict[str, float] = {}
    strengths: dict[str, float] = {}
    best: list[str] = []
    for start in range(0, len(order), BRIDGES_AT_ONCE):
        possible = ties[order[start]] * rarity(2, total) * (1 + 1e-9)
        if len(best) == MOST_BRIDGES and strengths[best[-1]] > possible:
            break
        asked = order[start : start + BRIDGES_AT_ONCE]
        for entity, (chunks, whole) in reader.degrees(asked).items():
            if whole and 1 < chunks <= _degree_cap(total):
                known[entity] = rarity(chunks, total)
                strengths[entity] = sum(weight(each, known) for each in of_entity[entity])
        best = sorted(strengths, key=lambda entity: (-strengths[entity], entity))[:MOST_BRIDGES]
    return {entity: known[entity] for entity in best}


def _degree_cap(total: int) -> int:
    """In how many chunks an entity may be for the second hop to go through it."""
    return min(100, max(8, total // 5))
