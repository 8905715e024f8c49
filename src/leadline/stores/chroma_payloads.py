"""What Chroma stores beside a vector, and its own form of a filter.

The payload is the chunk id and the filter fields. Knows the quirks of Chroma's payloads; calls nothing of it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from leadline.drafts import FieldValue
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


def native(where: Where | None) -> dict[str, Any] | None:
    """Chroma's form of a filter, or a wider one; None where it can't narrow anything."""

    def joined(operator: str) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        return lambda parts: {operator: parts}

    return filters.narrow(where, leaf=_test, all_of=joined("$and"), any_of=joined("$or"))


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
