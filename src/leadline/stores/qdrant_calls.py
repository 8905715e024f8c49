"""How the embedded Qdrant engine is spoken to: our records, filters and shapes in its own types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.qdrant_engine import DISTANCES, Row, Shape
from leadline.stores.qdrant_payloads import CHUNK_ID, Expression, Kind, payload, point_id

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, Point, UpdateOperation


def make_shard(folder: Path, shape: Shape) -> None:
    """Makes an empty shard in an empty folder, and closes it."""
    from qdrant_edge import (
        Distance,
        EdgeConfig,
        EdgeOptimizersConfig,
        EdgeShard,
        EdgeVectorParams,
        MultiVectorComparator,
        MultiVectorConfig,
    )

    vectors = EdgeVectorParams(
        size=shape.dimension,
        distance=getattr(Distance, DISTANCES[shape.metric]),
        multivector_config=MultiVectorConfig(MultiVectorComparator.MaxSim),
    )
    no_graph = EdgeOptimizersConfig(indexing_threshold=0, default_segment_number=1)
    EdgeShard.create(str(folder), EdgeConfig(vectors=vectors, optimizers=no_graph)).close()


def points(records: Sequence[ChunkRecord]) -> list[Point]:
    """One point a record."""
    from qdrant_edge import Point

    return [Point(point_id(r.chunk_id), [_floats(v) for v in r.vectors], payload(r)) for r in records]


def field_index(path: str, kind: Kind) -> UpdateOperation:
    """The operation that has a part of the payload indexed."""
    from qdrant_edge import PayloadSchemaType, UpdateOperation

    types = {"keyword": PayloadSchemaType.Keyword, "float": PayloadSchemaType.Float}
    return UpdateOperation.create_field_index(path, types[kind])


def search(shard: EdgeShard, vector: Vector, n: int, expression: Expression | None, whole: bool) -> list[Row]:
    """The `n` nearest points, by comparison with all of them."""
    from qdrant_edge import Query, SearchParams, SearchRequest

    request = SearchRequest(
        Query.Nearest([_floats(vector)]),
        limit=min(n, shard.info().points_count + 1),  # the engine makes room for as many as it is told
        filter=None if expression is None else filter_of(expression),
        params=SearchParams(exact=True),
        with_payload=True if whole else [CHUNK_ID],
    )
    return [Row(point.payload or {}, point.score) for point in shard.search(request)]


def filter_of(expression: Expression) -> Filter:
    """The engine's form of a filter as Qdrant's REST interface writes it."""
    from qdrant_edge import Filter

    clauses: dict[str, Any] = {clause: [_condition(part) for part in parts] for clause, parts in expression.items()}
    return Filter(**clauses)


def _condition(expression: Expression) -> Any:
    from qdrant_edge import FieldCondition, MatchAny, RangeFloat

    match expression:
        case {"key": key, "range": bounds}:
            return FieldCondition(key, range=RangeFloat(**bounds))
        case {"key": key, "match": {"any": values}}:
            return FieldCondition(key, match=MatchAny(values))
        case _:
            return filter_of(expression)


def _floats(vector: Vector) -> list[float]:
    numbers: list[float] = np.asarray(vector, dtype=np.float64).tolist()
    return numbers
