"""What an OpenSearch index holds: its mapping, a chunk as documents, and the portable filter as Query DSL.

A chunk's first document has the chunk id as its `_id`: it carries the text, the first vector and how many vectors
there are. Each further vector is a document of its own, because filters on nested vectors mean different things from
one OpenSearch version to the next. Text and vectors are left out of `_source`: they are searched, never returned.

`fields` holds one keyword a filter field: `lang=de` for a string, `draft?true` for a boolean, and `page#…` with a
number spelt so that its order as text is its order as a number. So every portable filter has an exact form, fields may
have any name, and an index never grows columns. A native query may use `chunk_id` and `fields`:
`{"prefix": {"fields": "file_name=report"}}`. Calls nothing of OpenSearch.
"""

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from leadline.drafts import FieldValue
from leadline.errors import InvalidFilter
from leadline.stores import filters
from leadline.stores.base import ChunkRecord, Where

Metric = Literal["cosine", "l2", "ip"]
Query = dict[str, Any]

FORMAT = 1
SPACES: Mapping[Metric, str] = {"cosine": "cosinesimil", "l2": "l2", "ip": "innerproduct"}
# Joins a chunk id to the ordinal of its second and later vectors. No chunk id holds it.
SEPARATOR = "\x1f"
STRING, NUMBER, BOOLEAN = "=", "#", "?"
# Longer names and strings are cut and told apart by a hash: Lucene refuses terms of more than 32,766 bytes.
LONGEST_NAME = 500
LONGEST_STRING = 4000


def index_body(*, dimension: int, metric: Metric, analyzer: str) -> dict[str, Any]:
    """Settings and mapping of a new index; without a `dimension`, one for words alone."""
    properties: dict[str, Any] = {
        "chunk_id": {"type": "keyword"},
        "vectors": {"type": "integer"},
        "fields": {"type": "keyword"},
        "text": {"type": "text", "analyzer": analyzer},
    }
    if dimension:
        properties["vector"] = {
            "type": "knn_vector",
            "dimension": dimension,
            "method": {"name": "hnsw", "engine": "lucene", "space_type": SPACES[metric]},
        }
    mappings = {
        "dynamic": "strict",
        "_meta": {"leadline": FORMAT},
        "_source": {"excludes": ["text", "vector"]},
        "properties": properties,
    }
    return {"settings": {"index": {"knn": True}} if dimension else {}, "mappings": mappings}


def vector_ids(chunk_id: str, count: int) -> list[str]:
    """The `_id`s of a chunk's documents: the chunk's own, then ordinals after it."""
    return [chunk_id, *(f"{chunk_id}{SEPARATOR}{n}" for n in range(1, count))]


def chunk_of(document_id: str) -> str:
    """The chunk that a document belongs to."""
    return document_id.partition(SEPARATOR)[0]


def documents(record: ChunkRecord, *, with_vectors: bool) -> Iterator[tuple[str, str]]:
    """The `_id` and JSON of each document of a chunk."""
    shared = {"chunk_id": record.chunk_id, "fields": terms(filters.fields_of(record))}
    vectors = [vector.tolist() for vector in record.vectors] if with_vectors else []
    first = {**shared, "vectors": len(vectors), "text": record.text}
    bodies = [{**shared, "vector": vector} for vector in vectors] or [{}]
    bodies[0] = {**first, **bodies[0]}
    for document_id, body in zip(vector_ids(record.chunk_id, len(vectors)), bodies, strict=True):
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        # One lone surrogate would make all documents of a bulk unreadable.
        yield document_id, text.encode("utf-8", "replace").decode()


def terms(fields: Mapping[str, FieldValue]) -> list[str]:
    """What `fields` holds of a chunk. Not-a-number has no term: it equals nothing, not even itself."""
    return [_term(name, value) for name, value in fields.items() if value == value]


def filter_query(where: Where) -> Query:
    """The exact Query DSL form of a (checked) portable filter."""
    return _all_of([_part(key, value) for key, value in where.items()])


def _all_of(parts: list[Query]) -> Query:
    return parts[0] if len(parts) == 1 else {"bool": {"filter": parts}} if parts else {"match_all": {}}


def _part(key: str, value: Any) -> Query:
    match key:
        case "$and":
            return _all_of([filter_query(part) for part in value])
        case "$or":
            return {"bool": {"should": [filter_query(part) for part in value], "minimum_should_match": 1}}
        case "$not":
            return _none_of(filter_query(value))
        case _:
            tests = value.items() if isinstance(value, Mapping) else [("$eq", value)]
            return _all_of([_test(key, operator, operand) for operator, operand in tests])


def _none_of(query: Query) -> Query:
    return {"bool": {"must_not": [query]}}


def _test(name: str, operator: str, operand: Any) -> Query:
    match operator:
        case "$eq":
            return {"term": {"fields": _term(name, operand)}}
        case "$ne":
            return _none_of({"term": {"fields": _term(name, operand)}})
        case "$in":
            return {"terms": {"fields": [_term(name, item) for item in operand]}}
        case "$nin":
            return _none_of({"terms": {"fields": [_term(name, item) for item in operand]}})
        case _:
            return {"range": {"fields": _bounds(name, operator.removeprefix("$"), operand)}}


def _bounds(name: str, operator: str, operand: str | float) -> dict[str, str]:
    """A range of terms that stays within one field and one kind of value."""
    if isinstance(operand, str) and len(operand) > LONGEST_STRING:
        raise InvalidFilter(
            f"Bad filter: {name!r} is compared with a string of {len(operand)} characters.",
            hint=f"In OpenSearch a range takes at most {LONGEST_STRING}.",
        )
    mark = STRING if isinstance(operand, str) else NUMBER
    start = _name(name) + mark
    end = _name(name) + chr(ord(mark) + 1)
    bound = {operator: _term(name, operand)}
    return {"gte": start, **bound} if operator in ("lt", "lte") else {**bound, "lt": end}


def _term(name: str, value: FieldValue) -> str:
    match value:
        case bool():
            return f"{_name(name)}{BOOLEAN}{'true' if value else 'false'}"
        case int() | float():
            return f"{_name(name)}{NUMBER}{sortable(value)}"
        case _:
            return f"{_name(name)}{STRING}{_cut(value, LONGEST_STRING)}"


def _name(name: str) -> str:
    for sign in ("%", STRING, NUMBER, BOOLEAN):
        name = name.replace(sign, f"%{ord(sign):02x}")
    return _cut(name, LONGEST_NAME)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:longest]}…{digest}"


def sortable(number: float) -> str:
    """A number as text whose order is that of the numbers, exact for whole numbers of 64 bits; 1 and 1.0 are equal."""
    try:
        near = float(number) + 0.0  # minus zero is zero
    except OverflowError:
        near = math.copysign(math.inf, 1 if number > 0 else -1)
    (bits,) = struct.unpack(">Q", struct.pack(">d", near))
    ordered = bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63
    rest = int(number) - int(near) if isinstance(number, int) and math.isfinite(near) else 0
    return f"{ordered:016x}{max(-0x8000, min(rest, 0x7FFF)) + 0x8000:04x}"
