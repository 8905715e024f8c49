"""Fetches the piece of the entity graph around a question's entities: two real hops, each bounded.

Chunks that mention the entities, the other entities of those chunks, and other chunks that mention these. Chunks that
fail the filter are never walked through. Very common entities lead nowhere: everything would be near everything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, union_all

from leadline.stores import filters
from leadline.stores.base import Where
from leadline.stores.catalog import batched
from leadline.stores.entity_degrees import Degree, degrees
from leadline.stores.entity_graph_schema import any_of, graph_chunks, graph_mentions, text_list
from leadline.stores.entity_walk import Mention, rarity, tie

ENOUGH_DIRECT = 200  # chunks the entities of the question lead to, the ones that mention them most
MOST_DIRECT = 1000  # however many are asked for
MOST_SEEDS = 16
MOST_BRIDGES = 30  # entities of the second hop
BRIDGES_AT_ONCE = 200  # entities looked at together to find them
MOST_FURTHER = 10  # chunks each of them leads to

Rows = Sequence[Sequence[Any]]  # the fields of mentions: few of them are needed as a `Mention`


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
_HOLDERS = select(graph_mentions.c.chunk_id).where(_MINE).order_by(*_FIRST)
_HOLDERS_WITH_FIELDS = (
    _HOLDERS.add_columns(graph_chunks.c.fields)
    .join(graph_chunks, _SAME_CHUNK)
    .where(graph_mentions.c.entity == bindparam("entity"))
)
_FURTHER = (
    select(*_MENTION)
    .where(_MINE, any_of(graph_mentions.c.entity, "entities"))
    .order_by(graph_mentions.c.entity.desc(), *_FIRST)
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

    def direct(self, seeds: Sequence[str], width: int) -> Rows:
        """All mentions in the chunks that pass the filter and mention one of the entities: of each entity the chunks
        that mention it most, `width` at most."""
        if not self.where:
            named = {f"entity{number}": seed for number, seed in enumerate(seeds)}
            return self._all(_mentions_near(len(seeds)), width=width, **named)
        chunk_ids = sorted({chunk_id for seed in seeds for chunk_id in self._passing_holders(seed, width)})
        return [row for batch in batched(chunk_ids) for row in self._all(_MENTIONS_OF, chunks=batch)]

    def _passing_holders(self, entity: str, limit: int) -> Iterator[str]:
        asked = {"collection": self.collection, "entity": entity}
        rows: Iterable[Sequence[Any]] = self.connection.execute(_HOLDERS_WITH_FIELDS, asked)
        return islice((chunk_id for chunk_id, fields in rows if filters.matches(self.where, fields)), limit)

    def further(self, entities: Sequence[str], limit: int, without: Set[str]) -> list[Mention]:
        """The mentions of several entities that few chunks mention, each in so many chunks at most: those that pass the
        filter and do so most often, leaving some chunks out."""
        statement = _FURTHER_WITH_FIELDS if self.where else _FURTHER
        mentions: list[Mention] = []
        left = dict.fromkeys(entities, limit)
        for row in self._all(statement, entities=text_list(entities)):
            chunk_id, entity = row[0], row[1]
            if left[entity] and chunk_id not in without and self._passes(row):
                left[entity] -= 1
                mentions.append(Mention(chunk_id, entity, row[2], row[3]))
        return mentions

    def _passes(self, row: Sequence[Any]) -> bool:
        return not self.where or filters.matches(self.where, row[4])

    def _all(self, statement: Select[Any], **values: object) -> Rows:
        return self.connection.execute(statement, {"collection": self.collection, **values}).all()


@cache
def _mentions_near(seeds: int) -> Select[Any]:
    """All mentions in the chunks that mention one of so many entities, of each entity the first chunks only."""
    each = [
        _HOLDERS.where(graph_mentions.c.entity == bindparam(f"entity{number}")).limit(bindparam("width")).subquery()
        for number in range(seeds)
    ]
    return select(*_MENTION).where(_MINE, graph_mentions.c.chunk_id.in_(union_all(*map(select, each))))


def fetch(reader: Reader, seeds: Mapping[str, int], total: int, k: int) -> Neighbourhood:
    """The neighbourhood of the known entities `seeds`, wide enough for `k` chunks where there are so many.

    `seeds` says in how many of the `total` chunks each of them is.
    """
    rarest = sorted(seeds, key=lambda seed: (seeds[seed], seed))[:MOST_SEEDS]
    rarities = {seed: rarity(seeds[seed], total) for seed in rarest}
    width = min(MOST_DIRECT, max(k, ENOUGH_DIRECT // len(rarest)))
    of_direct = reader.direct(rarest, width)
    direct = frozenset(chunk_id for chunk_id, _, _, _ in of_direct)
    bridges = _bridges(reader, [row for row in of_direct if row[1] not in rarities], total)
    further = reader.further(list(bridges), MOST_FURTHER, without=direct)
    rarities |= bridges
    mentions = [Mention._make(row) for row in of_direct if row[1] in rarities] + further
    return Neighbourhood(rarest, direct, mentions, rarities)


def _bridges(reader: Reader, others: Rows, total: int) -> dict[str, float]:
    """Entity → rarity, of the entities of the direct chunks that lead furthest.

    Begins with those that the chunks mention most, and ends where not even the rarest of the rest could lead further.
    """
    ties: dict[str, float] = {}
    for _, entity, times, part in others:
        ties[entity] = ties.get(entity, 0.0) + tie(times, part)
    order = sorted(ties, key=lambda entity: (-ties[entity], entity))
    rarities: dict[str, float] = {}
    strengths: dict[str, float] = {}
    best: list[str] = []
    for start in range(0, len(order), BRIDGES_AT_ONCE):
        if len(best) == MOST_BRIDGES and strengths[best[-1]] > ties[order[start]] * rarity(2, total):
            break
        for entity, (chunks, whole) in reader.degrees(order[start : start + BRIDGES_AT_ONCE]).items():
            if whole and 1 < chunks <= _degree_cap(total):
                rarities[entity] = rarity(chunks, total)
                strengths[entity] = ties[entity] * rarities[entity]
        best = sorted(strengths, key=lambda entity: (-strengths[entity], entity))[:MOST_BRIDGES]
    return {entity: rarities[entity] for entity in best}


def _degree_cap(total: int) -> int:
    """In how many chunks an entity may be for the second hop to go through it."""
    return min(100, max(8, total // 5))
