"""The hash that a result has of itself, by which a record that somebody edited is told from one as it was written.

Knows what makes two JSON documents the same. It is no signature: whoever edits a record can hash it anew.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.graph.tracing import Node
from leadline.state import RAGState, RAGUpdate, Result

KEY = "result_hash"  # in the result's `record`


def hash_of_result(result: Mapping[str, Any]) -> str:
    """Tells this result, all but its own hash, from any other: 32 hexadecimal digits.

    Blanks, the order of keys and the spelling of a number make no other one: a browser writes 1.0 as 1.
    """
    record = result.get("record")
    bare = {name: value for name, value in record.items() if name != KEY} if isinstance(record, Mapping) else record
    plain = json.loads(json.dumps({**result, "record": bare}, default=str), parse_float=_number)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]


def _number(written: str) -> float:
    value = float(written)
    return int(value) if value.is_integer() else value


def sealed(result: Result) -> Result:
    """The result with its hash in its record; one without a record as it is."""
    if "record" not in result:
        return result
    return cast(Result, {**result, "record": {**result["record"], KEY: hash_of_result(result)}})


def sealing(node: Callable[[RAGState, Runtime[RunContext]], Awaitable[RAGUpdate]]) -> Node:
    """The node, whose result is sealed as the last thing that is done to it."""

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        update = await node(state, runtime)
        return {**update, "result": sealed(update["result"])} if "result" in update else update

    return run
