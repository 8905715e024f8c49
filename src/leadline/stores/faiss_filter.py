"""Which chunks of the FAISS store's file pass a filter: narrowed by SQLite, decided by `filters`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from leadline.stores import filters
from leadline.stores.base import Where
from leadline.stores.sqlite_file import SqliteFile

SQL_RANGES = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
LONGEST = 1000
Condition = tuple[str, list[Any]]


def passing(file: SqliteFile, where: Where, chunk_ids: Sequence[str] | None = None) -> set[str]:
    """The chunks that pass, among `chunk_ids`, or among all."""
    if chunk_ids is not None:
        condition: Condition | None = ("chunk_id IN (SELECT value FROM json_each(?))", [json.dumps(list(chunk_ids))])
    else:
        condition = filters.narrow(where, leaf=_test, all_of=_joined("AND"), any_of=_joined("OR"))
    sql, values = condition or ("1", [])
    rows = file.rows(f"SELECT chunk_id, fields FROM chunks WHERE {sql}", *values)  # noqa: S608 - made of our own words
    return {chunk_id for chunk_id, fields in rows if filters.matches(where, json.loads(fields))}


def _joined(word: str) -> Any:
    def join(parts: list[Condition]) -> Condition:
        return f"({f' {word} '.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]

    return join


def _test(key: str, operator: str, operand: Any) -> Condition | None:
    """One test in SQL, or a wider one. To SQLite true is 1, so what isn't 1 can't be left to it, but what is 1 can."""
    operands = list(operand) if operator == "$in" else [operand]
    if (
        operator in ("$ne", "$nin")
        or len(operands) > LONGEST
        or '"' in key
        or not all(map(_is_plain, [key, *operands]))
    ):
        return None
    path = f'$."{key}"'
    # A number that isn't finite makes no JSON for SQLite: such a chunk is let through.
    field = "json_valid(fields) = 0 OR json_extract(fields, ?)"
    if operator in SQL_RANGES:
        return f"({field} {SQL_RANGES[operator]} ?)", [path, operand]
    return f"({field} IN ({', '.join('?' * len(operands))}))", [path, *operands]


def _is_plain(value: Any) -> bool:
    """Whether SQLite takes the value as it is: text without halves of characters, signs of escapes or zeros."""
    return not isinstance(value, str) or (value.isprintable() and "\\" not in value)
