"""What Qdrant stores beside a chunk's vectors, and its own form of a filter, as the JSON of its REST interface.

One point a chunk, its vectors a multivector. The payload is the chunk id and the filter fields, sorted by kind: in
Qdrant a test on one kind of value then never meets another one. Calls nothing of Qdrant.
"""

import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal

from leadline.drafts import FieldValue
from leadline.stores import filters
from leadline.stores.base import ChunkRecord, Where

Expression = dict[str, Any]
Payload = Mapping[str, Any]
# What an index over a part of the payload holds, in Qdrant's names.
Kind = Literal["keyword", "float"]

CHUNK_ID = "chunk_id"
STRINGS, NUMBERS, BOOLEANS = "strings", "numbers", "booleans"
# As text: the embedded engine takes a boolean in a filter for a number.
TRUTHS = {True: "true", False: "false"}
LARGEST_LIST = 1000
# Qdrant compares numbers as floats; below this a whole number is the same as an integer and as a float.
LARGEST_EXACT = 2**53
# Qdrant's ids are numbers or UUIDs; a chunk's is made of its id in this namespace.
NAMESPACE = uuid.UUID("5f3c1f0e-5a4c-5a53-9d0b-6a1f2a7f6c11")


def point_id(chunk_id: str) -> str:
    """The id of a chunk's point."""
    return str(uuid.uuid5(NAMESPACE, chunk_id))


def payload(record: ChunkRecord) -> dict[str, Any]:
    """What is stored beside a chunk's vectors. Numbers that JSON has no form for (infinite ones) are left out."""
    stored: dict[str, Any] = {CHUNK_ID: record.chunk_id}
    for key, value in filters.fields_of(record).items():
        if key != CHUNK_ID and not (isinstance(value, float) and not math.isfinite(value)):
            stored.setdefault(_kind(value), {})[key] = TRUTHS[value] if isinstance(value, bool) else value
    return stored


def fields(stored: Payload) -> dict[str, FieldValue]:
    """The filter fields in a payload."""
    found: dict[str, FieldValue] = {CHUNK_ID: stored[CHUNK_ID]}
    for kind in (STRINGS, NUMBERS):
        found.update(stored.get(kind) or {})
    found.update({key: value == TRUTHS[True] for key, value in (stored.get(BOOLEANS) or {}).items()})
    return found


def paths(record: ChunkRecord) -> dict[str, Kind]:
    """Where in the payload a record's fields are that a filter of ours can reach, and what is there; its ids first."""
    found: dict[str, Kind] = {CHUNK_ID: "keyword", _path(STRINGS, "doc_id"): "keyword"}
    for key, value in filters.fields_of(record).items():
        if _is_quotable(key):
            kind = _kind(value)
            found[_path(kind, key)] = "float" if kind == NUMBERS else "keyword"
    return found


def native(where: Where | None) -> Expression | None:
    """Qdrant's form of a filter, or a wider one; None where it can't narrow anything."""

    def joined(clause: str) -> Callable[[list[Expression]], Expression]:
        return lambda parts: {clause: parts}

    found = filters.narrow(where, leaf=_test, all_of=joined("must"), any_of=joined("should"))
    return None if found is None else {"must": [found]}


def _kind(value: FieldValue) -> str:
    if isinstance(value, bool):
        return BOOLEANS
    return STRINGS if isinstance(value, str) else NUMBERS


def _test(key: str, operator: str, operand: Any) -> Expression | None:
    """Qdrant's form of one test, or a wider one; None where it has none: for ranges of strings, and for field names
    that can't be quoted."""
    if not _is_quotable(key):
        return None
    if operator in filters.RANGES:
        return None if isinstance(operand, str) else _range(key, operator, operand)
    operands = list(operand) if operator in ("$in", "$nin") else [operand]
    negative = operator in ("$ne", "$nin")
    if len(operands) > LARGEST_LIST or (negative and not all(map(_is_exact, operands))):
        return None
    parts = _equal_to_any(key, operands)
    if negative:
        return {"must_not": parts}
    return parts[0] if len(parts) == 1 else {"should": parts}


def _range(key: str, operator: str, operand: float) -> Expression:
    # A large bound may be rounded onto the value that it parts from others: let that one through too.
    name = operator[1:] if _is_exact(operand) else f"{operator[1:3]}e"
    return {"key": _path(NUMBERS, key), "range": {name: float(operand)}}


def _equal_to_any(key: str, operands: list[FieldValue]) -> list[Expression]:
    strings = [item for item in operands if isinstance(item, str)]
    truths = [TRUTHS[item] for item in operands if isinstance(item, bool)]
    texts = [(STRINGS, strings), (BOOLEANS, truths)]
    parts: list[Expression] = [{"key": _path(kind, key), "match": {"any": some}} for kind, some in texts if some]
    for item in operands:
        if not isinstance(item, str | bool):
            parts.append({"key": _path(NUMBERS, key), "range": {"gte": float(item), "lte": float(item)}})
    return parts


def _path(kind: str, key: str) -> str:
    """Where a field is in the payload; quoted, a dot in its name is a dot."""
    return CHUNK_ID if (kind, key) == (STRINGS, CHUNK_ID) else f'{kind}."{key}"'


def _is_quotable(key: str) -> bool:
    return bool(key) and '"' not in key and "\\" not in key


def _is_exact(value: FieldValue) -> bool:
    return isinstance(value, str) or abs(value) < LARGEST_EXACT
