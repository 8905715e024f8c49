"""What Chroma stores beside a vector, and its own form of a filter.

The payload is the chunk id and the filter fields. Knows the quirks of Chroma's payloads.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from leadline.drafts import FieldValue
from leadline.errors import InvalidFilter
from leadline.stores import filters
from leadline.stores.base import ChunkRecord, Where

Payload = Mapping[str, Any]

# Joins a chunk id to the ordinal of its second and later vectors. No chunk id holds it.
SEPARATOR = "\x1f"
# Put before our own keys of the payload, and before fields whose names Chroma refuses.
OURS = "leadline:"
VECTORS = f"{OURS}vectors"
ORDINAL = f"{OURS}ordinal"
LARGEST_LIST = 1000
# Whole numbers up to here are the same as integers and as floats.
LARGEST_EXACT = 2**53


def vector_ids(chunk_id: str, count: int) -> list[str]:
    """The ids of a chunk's vectors: the chunk's own, then ordinals after it."""
    return [chunk_id if n == 0 else f"{chunk_id}{SEPARATOR}{n}" for n in range(count)]


def chunk_of(vector_id: str) -> str:
    """The chunk that a vector belongs to."""
    return vector_id.partition(SEPARATOR)[0]


def vector_count(payload: Payload | None) -> int:
    """How many vectors the chunk with this payload has; 0 without one."""
    return 0 if payload is None else int(payload.get(VECTORS, 1))


def payloads(record: ChunkRecord, stored: Payload) -> Iterator[dict[str, Any]]:
    """One payload a vector. Chroma merges payloads: None takes away what only the stored one has."""
    own = {_escape(key): value for key, value in filters.fields_of(record).items()}
    gone = {key: None for key in stored if key not in own}
    count = len(record.vectors)
    for ordinal in range(count):
        marks = {VECTORS: count, ORDINAL: ordinal} if count > 1 else {}
        yield {**gone, **own, **marks}


def batches(records: Sequence[ChunkRecord], limit: int) -> Iterator[list[ChunkRecord]]:
    """Records whose vectors together stay within what Chroma takes at once."""
    batch: list[ChunkRecord] = []
    vectors = 0
    for record in records:
        if batch and vectors + len(record.vectors) > limit:
            yield batch
            batch, vectors = [], 0
        batch.append(record)
        vectors += len(record.vectors)
    if batch:
        yield batch


def surplus(records: Sequence[ChunkRecord], stored: Mapping[str, Payload]) -> list[str]:
    """The ids of stored vectors that the records, which replace them, have no more."""
    return [
        vector_id
        for record in records
        for vector_id in vector_ids(record.chunk_id, vector_count(stored.get(record.chunk_id)))[len(record.vectors) :]
    ]


def native(where: Where | str | None) -> dict[str, Any] | None:
    """Chroma's form of a portable filter, or a wider one; None where it can't narrow anything.

    A text is Chroma's own form already, as JSON. Raises InvalidFilter for a text that isn't.
    """
    if isinstance(where, str):
        return _parsed(where)

    def joined(operator: str) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        return lambda parts: {operator: parts}

    return filters.narrow(where, leaf=_test, all_of=joined("$and"), any_of=joined("$or"))


def _parsed(text: str) -> dict[str, Any]:
    from chromadb.api.types import validate_where

    try:
        expression = json.loads(text)
        validate_where(expression)
    except ValueError as error:
        raise InvalidFilter(
            f"Not a Chroma `where` in JSON: {error}", hint='Write e.g. {"page": {"$gte": 3}}, or pass a mapping.'
        ) from error
    return dict(expression)


def _escape(key: str) -> str:
    refused = not key or key.startswith(("#", "$", "chroma:", OURS))
    return f"{OURS}field:{key}" if refused else key


def fields(payload: Payload) -> dict[str, FieldValue]:
    """The filter fields in a payload."""
    return {key.removeprefix(f"{OURS}field:"): value for key, value in payload.items() if key not in (VECTORS, ORDINAL)}


def _test(key: str, operator: str, operand: Any) -> dict[str, Any] | None:
    """Chroma's form of one test, or a wider one; None where it would be narrower.

    Chroma cuts fractions off before it compares with stored integers, knows no ranges of strings, and takes lists of
    one type only.
    """
    name = _escape(key)
    if operator in filters.RANGES:
        if isinstance(operand, str) or abs(operand) > LARGEST_EXACT:
            return None
        above = operator in ("$gt", "$gte")
        return {name: {"$gte": math.floor(operand)} if above else {"$lte": math.ceil(operand)}}
    operands = list(operand) if operator in ("$in", "$nin") else [operand]
    if len(operands) > LARGEST_LIST or not all(map(_is_exact, operands)):
        return None
    kinds: dict[type, list[Any]] = {}
    for item in operands:
        value = int(item) if isinstance(item, float) else item
        kinds.setdefault(type(value), []).append(value)
    negative = operator in ("$ne", "$nin")
    parts: list[dict[str, Any]] = [{name: {"$nin" if negative else "$in": values}} for values in kinds.values()]
    return parts[0] if len(parts) == 1 else {"$and" if negative else "$or": parts}


def _is_exact(value: FieldValue) -> bool:
    return isinstance(value, str) or (abs(value) <= LARGEST_EXACT and value == int(value))
