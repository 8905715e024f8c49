"""What Pinecone stores beside a vector, and its own form of a filter.

The payload is the chunk id and the filter fields. What Pinecone's metadata can't hold as it is (names with a `$`,
whole numbers that a double rounds, numbers that aren't finite) goes into one text beside the rest. Knows the limits of
Pinecone's metadata; calls nothing of it.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from leadline.drafts import FieldValue
from leadline.stores import filters
from leadline.stores.base import ChunkRecord, Where

Metadata = Mapping[str, Any]
Filter = dict[str, Any]

# Put before the id of a chunk's second and later vectors, so that one listing by prefix finds them all. A quoted id
# never begins with it.
FURTHER = "#"
OURS = "leadline:"
VECTORS = f"{OURS}vectors"
REST = f"{OURS}rest"
# A double holds every whole number up to here.
LARGEST_EXACT = 2**53
LARGEST_LIST = 10_000
# Per upsert: 1,000 records and 2 MB, less some room for what is around them.
RECORDS_AT_ONCE = 1000
BYTES_AT_ONCE = 1_900_000


def vector_ids(chunk_id: str, count: int) -> list[str]:
    """The ids of a chunk's vectors: the chunk's own in ASCII, then one with each ordinal."""
    own = quote(chunk_id, safe=":/=@+,")
    return [own if n == 0 else f"{FURTHER}{n}{FURTHER}{own}" for n in range(count)]


def chunk_of(vector_id: str) -> str:
    """The chunk that a vector belongs to."""
    return unquote(vector_id.rpartition(FURTHER)[2])


def vector_count(metadata: Metadata | None) -> int:
    """How many vectors the chunk with this payload has; 0 without one."""
    return 0 if metadata is None else int(metadata.get(VECTORS, 1))


def batches(records: Iterable[ChunkRecord]) -> Iterator[list[dict[str, Any]]]:
    """The vectors of the records with their payloads, in parts that Pinecone takes at once."""
    part: list[dict[str, Any]] = []
    room = BYTES_AT_ONCE
    for each in (each for record in records for each in _vectors(record)):
        size = len(json.dumps(each).encode())
        if part and (len(part) == RECORDS_AT_ONCE or size > room):
            yield part
            part, room = [], BYTES_AT_ONCE
        part.append(each)
        room -= size
    if part:
        yield part


def _vectors(record: ChunkRecord) -> Iterator[dict[str, Any]]:
    count = len(record.vectors)
    metadata = {**_metadata(record), **({VECTORS: count} if count > 1 else {})}
    for vector_id, vector in zip(vector_ids(record.chunk_id, count), record.vectors, strict=True):
        yield {"id": vector_id, "values": vector.tolist(), "metadata": metadata}


def _metadata(record: ChunkRecord) -> dict[str, Any]:
    given = filters.fields_of(record)
    plain = {key: value for key, value in given.items() if _is_plain(key) and _is_exact(value)}
    rest = {key: value for key, value in given.items() if key not in plain}
    return {**plain, REST: json.dumps(rest)} if rest else plain


def fields(metadata: Metadata) -> dict[str, FieldValue]:
    """The filter fields in a payload."""
    rest: dict[str, FieldValue] = json.loads(metadata.get(REST, "{}"))
    return rest | {key: value for key, value in metadata.items() if key not in (REST, VECTORS)}


def native(where: Where | None) -> Filter | None:
    """Pinecone's form of a filter, or a wider one; None where it can't narrow anything."""

    def joined(operator: str) -> Callable[[list[Filter]], Filter]:
        return lambda parts: {operator: parts}

    return filters.narrow(where, leaf=_test, all_of=joined("$and"), any_of=joined("$or"))


def _is_plain(key: str) -> bool:
    return bool(key) and not key.startswith(("$", OURS))


def _is_exact(value: FieldValue) -> bool:
    return isinstance(value, str) or (math.isfinite(value) and abs(value) <= LARGEST_EXACT)


def _test(key: str, operator: str, operand: Any) -> Filter | None:
    if not _is_plain(key):
        return None
    if operator in filters.RANGES:
        return _range(key, operator, operand)
    operands = list(operand) if operator in ("$in", "$nin") else [operand]
    if len(operands) > LARGEST_LIST or not all(map(_is_exact, operands)):
        return None
    if operator in ("$eq", "$in"):
        return _joined("$or", _equalities(key, operands, "$eq", "$in"))
    # Whether Pinecone's $ne lets a record without the field through isn't written down; $exists is.
    unequal = _joined("$and", _equalities(key, operands, "$ne", "$nin"))
    return {"$or": [{key: {"$exists": False}}, unequal]}


def _equalities(key: str, operands: Sequence[FieldValue], one: str, many: str) -> list[Filter]:
    """A test for each kind of operand: a list in Pinecone holds strings or numbers, no booleans."""
    strings = [item for item in operands if isinstance(item, str)]
    numbers = [item for item in operands if not isinstance(item, str | bool)]
    tests: list[Filter] = [{key: {one: truth}} for truth in (False, True) if any(item is truth for item in operands)]
    for same in (strings, numbers):
        if same:
            tests.append({key: {one: same[0]} if len(same) == 1 else {many: same}})
    return tests


def _range(key: str, operator: str, operand: Any) -> Filter | None:
    """Numbers alone: Pinecone knows no order of strings. A number it can't hold may be in range as well."""
    if isinstance(operand, str):
        return None
    if not _is_exact(operand):
        operator, operand = ("$gte" if operator.startswith("$g") else "$lte"), float(operand)
    return {"$or": [{key: {operator: operand}}, {REST: {"$exists": True}}]}


def _joined(operator: str, parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else {operator: parts}
