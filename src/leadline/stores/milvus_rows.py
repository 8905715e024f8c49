"""What Milvus stores of a chunk, and its own form of a filter.

A chunk is one row, and one more for each further vector. Knows the quirks of Milvus's expressions; calls nothing of
it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from leadline.errors import StoreError
from leadline.stores import filters
from leadline.stores.base import ChunkRecord, Where, has_usable_vectors

Row = dict[str, Any]
Metric = Literal["COSINE", "L2", "IP"]

# The fields of a collection.
ROW, CHUNK, PART, FIELDS, VECTOR, TERMS, WORDS = "id", "chunk_id", "part", "fields", "vector", "terms", "words"
# The part of a row that has no vector of its own: it is there to be found by its words.
WORDS_ONLY: Final = -1
MAX_ID_BYTES: Final = 1024
MAX_TERMS_BYTES: Final = 65_535
# Ids in an expression and rows in a page. Milvus returns at most 16,384 rows at once.
PAGE: Final = 4000
# Rows of one write. A server takes 64 MB in a message.
BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 16 * 2**20

PLAIN = re.compile(r"[^A-Za-z0-9_.:-]")
ESCAPED = re.compile(r"=([0-9a-f]+)=")
# Milvus Lite doesn't undo the escapes of control characters, and both split a key at brackets.
UNSAFE_KEY = re.compile(r"""["'\\\[\]\x00-\x1f]""")
CONTROL = re.compile(r"[\x00-\x1f]")
# Values in one test of an expression.
LONGEST_LIST: Final = 5000
# Whole numbers below it are the same as integers and as floats.
LARGEST_EXACT: Final = 2**53


@dataclass(frozen=True, slots=True)
class Shape:
    """What a collection is made for: vectors of one width and metric (0: none), words of one analyser ("": none)."""

    dimension: int
    metric: str
    analyzer: str

    def described(self) -> str:
        """The form that is kept with the collection."""
        metric = self.metric if self.dimension else ""
        return json.dumps(
            {"leadline": 1, "dimension": self.dimension, "metric": metric, "analyzer": self.analyzer}, sort_keys=True
        )

    @classmethod
    def read(cls, description: str) -> Shape | None:
        """The shape kept with a collection; None for one of somebody else's."""
        try:
            kept = json.loads(description)
            if kept["leadline"] != 1:
                return None
            return cls(int(kept["dimension"]), str(kept["metric"]), str(kept["analyzer"]))
        except (ValueError, TypeError, KeyError):
            return None


def key_of(chunk_id: str) -> str:
    """A chunk id in letters that stand for themselves in every expression; plain ids stay as they are.

    Milvus Lite takes no apostrophe in a key.
    """
    return PLAIN.sub(lambda sign: f"={sign.group().encode().hex()}=", chunk_id)


def chunk_of(key: str) -> str:
    """The chunk id that a key stands for."""
    return ESCAPED.sub(lambda code: bytes.fromhex(code.group(1)).decode(), key)


def rows_of(record: ChunkRecord, shape: Shape, terms: Sequence[str]) -> list[Row]:
    """The rows of a chunk. Only the first one has its words: they count once.

    Without a usable vector it has one row, never found by its placeholder. Raises StoreError for what is too long.
    """
    key = key_of(record.chunk_id)
    own: Row = {CHUNK: key, FIELDS: filters.fields_of(record)}
    vectors: Sequence[Any] = record.vectors if has_usable_vectors(record) else ()
    first = 0 if vectors or not shape.dimension else WORDS_ONLY
    placeholder = np.eye(1, shape.dimension, dtype=np.float32)[0] if shape.dimension else None
    rows = []
    for part in range(first, max(len(vectors), first + 1)):
        row = {**own, ROW: key if part < 1 else f"{key}#{part}", PART: part}
        if shape.dimension:
            vector = np.asarray(vectors[part] if vectors else placeholder, dtype=np.float32)
            row[VECTOR] = vector.tolist()
        if shape.analyzer:
            row[TERMS] = " ".join(terms) if part < 1 else ""
        rows.append(row)
    _check_length(record.chunk_id, rows[0])
    return rows


def _check_length(chunk_id: str, row: Row) -> None:
    for field, limit in ((ROW, MAX_ID_BYTES - 20), (TERMS, MAX_TERMS_BYTES)):
        if (size := len(row.get(field, "").encode())) > limit:
            raise StoreError(
                f"The chunk {chunk_id[:80]!r} is too long for Milvus: {size} bytes of {field}, {limit} at most.",
                hint="Make the chunks smaller.",
            )


def batches(records: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """The rows of several chunks in writes that a server takes, those of one chunk together."""
    batch: list[Row] = []
    size = 0
    for rows in records:
        weight = sum(10 * len(row.get(VECTOR, ())) + len(row.get(TERMS, "")) + len(str(row[FIELDS])) for row in rows)
        if batch and (len(batch) + len(rows) > BATCH_ROWS or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.extend(rows)
        size += weight
    if batch:
        yield batch


def one_of(field: str, values: Sequence[str]) -> str:
    """The expression for a field that has one of these keys."""
    return f"{field} in {json.dumps(list(values))}"


def expression(where: Where | str | None) -> str:
    """Milvus's form of a filter, or a wider one; "" where it can't narrow anything. Text is one already."""
    if isinstance(where, str):
        return where.strip()
    return filters.narrow(where, leaf=_test, all_of=both, any_of=_either) or ""


def both(parts: Iterable[str]) -> str:
    """The expression for all that isn't empty of `parts`."""
    return " and ".join(f"({part})" for part in parts if part)


def _either(parts: Iterable[str]) -> str:
    return " or ".join(f"({part})" for part in parts)


def passes(where: Where | str | None, row: Mapping[str, Any]) -> bool:
    """Whether a row, as Milvus returns it, passes the portable filter."""
    return isinstance(where, str) or filters.matches(where, row[FIELDS])


def _test(key: str, operator: str, operand: Any) -> str | None:
    """Milvus's form of one test; None where there is none that all versions read alike.

    They differ in what a negation makes of a field that isn't there.
    """
    if operator in ("$ne", "$nin") or not key or UNSAFE_KEY.search(key):
        return None
    name = f"{FIELDS}[{json.dumps(key, ensure_ascii=False)}]"
    if operator in filters.RANGES:
        sign = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}[operator]
        literal = _literal(operand)
        return None if literal is None else f"{name} {sign} {literal}"
    operands = operand if operator == "$in" else [operand]
    if len(operands) > LONGEST_LIST:
        return None
    kinds: dict[type, list[str]] = {}
    for item in operands:
        literal = _literal(item)
        if literal is None:
            return None
        value = int(item) if isinstance(item, float) and item.is_integer() else item
        kinds.setdefault(type(value), []).append(literal)
    parts = [f"{name} {_among(literals)}" for literals in kinds.values()]
    return parts[0] if len(parts) == 1 else _either(parts)


def _among(literals: list[str]) -> str:
    return f"== {literals[0]}" if len(literals) == 1 else f"in [{', '.join(literals)}]"


def _literal(value: Any) -> str | None:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return None if CONTROL.search(value) else json.dumps(value, ensure_ascii=False)
        case _:
            if not math.isfinite(value) or abs(value) >= LARGEST_EXACT:
                return None
            return str(int(value)) if value == int(value) else repr(float(value))
