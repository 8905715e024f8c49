"""Metadata filters and scores over records in memory, as Pinecone documents them, and a 400 for every other form."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Body = dict[str, Any]


class Refused(Exception):
    """An answer that is an error: status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def only(body: Body, *keys: str) -> None:
    """Refuses a body with other keys than these."""
    if unknown := set(body) - set(keys):
        raise Refused(400, f"unknown: {sorted(unknown)}")


def score(metric: str, a: Any, b: Any) -> float:
    """What Pinecone calls the score of two vectors."""
    match metric:
        case "cosine":
            return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
        case "dotproduct":
            return float(a @ b)
        case _:
            return float(((a - b) ** 2).sum())


def passes(condition: Body, metadata: Mapping[str, Any], *, missing_is_unequal: bool = False) -> bool:
    """Whether a metadata filter lets a record through."""

    def holds(key: str, value: Any) -> bool:
        if key in ("$and", "$or"):
            if not value:
                raise Refused(400, f"{key} is a list of filters")
            of = [passes(part, metadata, missing_is_unequal=missing_is_unequal) for part in value]
            return all(of) if key == "$and" else any(of)
        tests = value if isinstance(value, dict) else {"$eq": value}
        return all(tested(metadata.get(key), *test, missing_is_unequal) for test in tests.items())

    return all(holds(key, value) for key, value in condition.items())


def tested(value: Any, operator: str, operand: Any, missing_is_unequal: bool) -> bool:
    """One test of a metadata filter; strings, numbers and booleans are never equal to each other."""
    check_operand(operator, operand)
    if operator == "$exists":
        return (value is not None) is operand
    if value is None:
        return missing_is_unequal and operator in ("$ne", "$nin")
    operands = operand if isinstance(operand, list) else [operand]
    equal = any(kind(value) == kind(each) and value == each for each in operands)
    match operator:
        case "$eq" | "$in":
            return equal
        case "$ne" | "$nin":
            return not equal
        case _ if kind(value) != kind(operand):
            return False
        case _:
            bounds = {
                "$gt": value > operand,
                "$gte": value >= operand,
                "$lt": value < operand,
                "$lte": value <= operand,
            }
            return bool(bounds[operator])


def check_operand(operator: str, operand: Any) -> None:
    """The operand that each operator is documented to take."""
    anything = {"string", "number", "boolean"}
    wanted = {"$eq": anything, "$ne": anything, "$in": anything - {"boolean"}, "$nin": anything - {"boolean"}}
    wanted |= {"$exists": {"boolean"}, **{bound: {"number"} for bound in ("$gt", "$gte", "$lt", "$lte")}}
    operands = operand if operator in ("$in", "$nin") else [operand]
    if (
        operator not in wanted
        or not operands
        or len(operands) > 10_000
        or not {kind(x) for x in operands} <= wanted[operator]
    ):
        raise Refused(400, f"{operator} doesn't take {operand!r}")


def kind(value: Any) -> str:
    """The kind of a metadata value."""
    return {bool: "boolean", int: "number", float: "number", str: "string"}[type(value)]
