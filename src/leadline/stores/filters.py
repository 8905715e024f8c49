"""The portable filter: what a `where` means, in every leg.

Plain JSON: `{"key": value}`, `{"key": {"$gte": 3, "$lt": 9}}`, `{"$and": [...]}`, `{"$or": [...]}`, `{"$not": {...}}`;
several keys in one mapping all have to hold, and `{}` holds for everything. A string, a number and a boolean are never
equal to each other; 1 and 1.0 are. Ranges take numbers, or strings in code point order (ISO dates). A field that isn't
there, or is of another kind than the operand, fails every test but `$ne` and `$nin`, which it passes.

Knows no engine: a backend asks `narrow` for an expression of its own that lets at least the right chunks through, and
keeps what `matches` says.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leadline.drafts import FieldValue
from leadline.errors import InvalidFilter
from leadline.stores.base import ChunkRecord, Where

Expression = TypeVar("Expression")

RANGES: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
NEGATIONS = {"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in"}
OPERATORS = (*NEGATIONS, *RANGES)
CONNECTIVES = ("$and", "$or", "$not")
# What a signed 64-bit integer column holds.
INTEGER_BOUND = 2**63
# Filters in filters; each costs every reader of one a call.
MOST_NESTED = 50


def fields_of(record: ChunkRecord) -> dict[str, FieldValue]:
    """What a filter may test of a record: its fields, its chunk_id and its doc_id."""
    return {**record.fields, "chunk_id": record.chunk_id, "doc_id": record.doc_id}


def storable(value: object) -> bool:
    """Whether every index can keep the value as a field: a string, a boolean, a finite float or a 64-bit integer."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -INTEGER_BOUND <= value < INTEGER_BOUND
    return isinstance(value, str)


def check(where: Where | None) -> None:
    """Raises InvalidFilter, naming the bad part, unless `where` is in the portable form."""
    _check(where, MOST_NESTED)


def _check(where: Where | None, left: int) -> None:
    if where is None:
        return
    if not left:
        raise InvalidFilter(f"Bad filter: more than {MOST_NESTED} filters stand in one another.")
    if not isinstance(where, Mapping):
        raise _invalid(where, "a filter is a mapping")
    for key, value in where.items():
        if key in ("$and", "$or"):
            if not isinstance(value, list | tuple) or not value:
                raise _invalid({key: value}, f"{key} takes a list of one or more filters")
            for part in value:
                _check(part, left - 1)
        elif key == "$not":
            if value is None:
                raise _invalid({key: value}, "$not takes a filter")
            _check(value, left - 1)
        else:
            _check_field(key, value)


def fields_in(where: Where | None) -> set[str]:
    """The fields that a (checked) filter tests."""
    found: set[str] = set()
    for key, value in (where or {}).items():
        if key == "$not":
            found |= fields_in(value)
        elif key in CONNECTIVES:
            found = found.union(*map(fields_in, value))
        else:
            found.add(key)
    return found


def matches(where: Where | None, fields: Mapping[str, FieldValue]) -> bool:
    """Whether `fields` pass the (checked) filter."""
    return all(_holds(key, value, fields) for key, value in (where or {}).items())


def narrow(
    where: Where | None,
    *,
    leaf: Callable[[str, str, Any], Expression | None],
    all_of: Callable[[list[Expression]], Expression],
    any_of: Callable[[list[Expression]], Expression],
) -> Expression | None:
    """An engine's expression that no chunk fails which `matches` lets through; None where it can't narrow anything.

    `leaf(key, operator, operand)` gives the engine's form of one test, or None; negations have been moved into the
    operators. `all_of` and `any_of` join two or more expressions.
    """
    return _Narrowing(leaf, all_of, any_of).mapping(where or {}, negated=False)


@dataclass(frozen=True, slots=True)
class _Narrowing(Generic[Expression]):
    leaf: Callable[[str, str, Any], Expression | None]
    all_of: Callable[[list[Expression]], Expression]
    any_of: Callable[[list[Expression]], Expression]

    def mapping(self, where: Where, *, negated: bool) -> Expression | None:
        return self._every([self._item(key, value, negated) for key, value in where.items()], negated)

    def _item(self, key: str, value: Any, negated: bool) -> Expression | None:
        match key:
            case "$and":
                return self._every([self.mapping(part, negated=negated) for part in value], negated)
            case "$or":
                return self._every([self.mapping(part, negated=negated) for part in value], not negated)
            case "$not":
                return self.mapping(value, negated=not negated)
            case _:
                return self._every([self._test(key, *test, negated) for test in _tests(value)], negated)

    def _test(self, key: str, operator: str, operand: Any, negated: bool) -> Expression | None:
        if not negated:
            return self.leaf(key, operator, operand)
        return self.leaf(key, NEGATIONS[operator], operand) if operator in NEGATIONS else None

    def _every(self, parts: Sequence[Expression | None], negated: bool) -> Expression | None:
        """All of the parts; negated, any of them (De Morgan): then one part that can't narrow spoils the whole."""
        known = [part for part in parts if part is not None]
        if not known or (negated and len(known) < len(parts)):
            return None
        if len(known) == 1:
            return known[0]
        return self.any_of(known) if negated else self.all_of(known)


def _holds(key: str, value: Any, fields: Mapping[str, FieldValue]) -> bool:
    match key:
        case "$and":
            return all(matches(part, fields) for part in value)
        case "$or":
            return any(matches(part, fields) for part in value)
        case "$not":
            return not matches(value, fields)
        case _:
            return all(_passes(fields.get(key), operator, operand) for operator, operand in _tests(value))


def _tests(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else [("$eq", value)]


def _passes(value: FieldValue | None, operator: str, operand: Any) -> bool:
    match operator:
        case "$eq":
            return _equal(value, operand)
        case "$ne":
            return not _equal(value, operand)
        case "$in":
            return any(_equal(value, item) for item in operand)
        case "$nin":
            return not any(_equal(value, item) for item in operand)
        case _:
            kind = _kind(value)
            return kind in ("number", "string") and kind == _kind(operand) and RANGES[operator](value, operand)


def _equal(value: Any, operand: Any) -> bool:
    return _kind(value) == _kind(operand) and bool(value == operand)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "nothing"


def _check_field(key: Any, value: Any) -> None:
    if not isinstance(key, str) or not key or key.startswith("$"):
        raise _invalid({key: value}, f"{key!r} is neither a field nor one of the operators")
    tests = _tests(value)
    if not tests:
        raise _invalid({key: value}, "a test names an operator")
    for operator, operand in tests:
        if operator not in OPERATORS:
            raise _invalid({key: value}, f"{operator!r} is not one of the operators")
        if operator in ("$in", "$nin"):
            if not isinstance(operand, list | tuple) or not operand:
                raise _invalid({key: value}, f"{operator} takes a list of one or more values")
            for item in operand:
                _check_value(key, operator, item)
        else:
            _check_value(key, operator, operand)


def _check_value(key: str, operator: str, operand: Any) -> None:
    kind = _kind(operand)
    if kind == "nothing":
        raise _invalid({key: {operator: operand}}, "a value is a string, a number or a boolean")
    if kind == "boolean" and operator in RANGES:
        raise _invalid({key: {operator: operand}}, "a range takes a number or a string")
    if isinstance(operand, float) and not math.isfinite(operand):
        raise _invalid({key: {operator: operand}}, "a number is finite")
    if isinstance(operand, int) and not -INTEGER_BOUND <= operand < INTEGER_BOUND:
        raise _invalid({key: {operator: operand}}, "an integer fits into 64 bits")


def _invalid(part: Any, why: str) -> InvalidFilter:
    return InvalidFilter(
        f"Bad filter at {part!r}: {why}.",
        hint=f'Write {{"field": value}} with {", ".join(OPERATORS)}, joined by {", ".join(CONNECTIVES)}.',
    )
