"""What the processes that share an engine say to each other: calls, results and errors as JSON.

Nothing in a message can run code where it is read.
"""

import base64
import json
import socket
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from leadline import errors
from leadline.stores.base import ChunkRecord, Hit


def hurry(connection: "Connection[Any, Any]") -> None:
    """Has small messages sent at once; the system would hold each back for 40 ms."""
    door = socket.socket(fileno=connection.fileno())
    try:
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    finally:
        door.detach()  # the connection goes on owning it


def packed(value: Any) -> bytes:
    """A value as bytes: numbers, strings, lists, mappings, sets, vectors, records (without their text) and hits."""
    return json.dumps(_plain(value), separators=(",", ":")).encode()


def unpacked(data: bytes) -> Any:
    """The value again. Sequences come as lists."""
    return _value(json.loads(data))


def packed_error(error: Exception) -> bytes:
    """An error as bytes, for `result` to raise on the other side."""
    known = isinstance(error, errors.LeadlineError)
    name = type(error).__name__
    text, hint = (error.message, error.hint) if known else (f"{name}: {error}", "")  # type: ignore[attr-defined]  # known
    return packed({"error": [name if known else "StoreError", text, hint]})


def packed_result(value: Any) -> bytes:
    """A result as bytes, for `result` to return on the other side."""
    return packed({"result": value})


def result(data: bytes) -> Any:
    """What a call gave: returned or raised."""
    answer = unpacked(data)
    if "error" not in answer:
        return answer["result"]
    name, message, hint = answer["error"]
    kind = getattr(errors, name, errors.StoreError)
    raise kind(message, hint=hint)


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return {"vector": base64.b64encode(np.asarray(value, dtype="<f4").tobytes()).decode()}
        case ChunkRecord():
            parts = [value.chunk_id, value.doc_id, list(value.vectors), dict(value.fields)]
            return {"record": [_plain(part) for part in parts]}
        case Hit():
            return {"hit": [value.chunk_id, value.score, value.rank]}
        case set() | frozenset():
            return {"set": sorted(value)}
        case Mapping():
            return {"map": {key: _plain(part) for key, part in value.items()}}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(part) for part in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    match kind:
        case "vector":
            return np.frombuffer(base64.b64decode(content), dtype="<f4").astype(np.float32)
        case "record":
            chunk_id, doc_id, vectors, fields = map(_value, content)
            return ChunkRecord(chunk_id, doc_id, "", tuple(vectors), fields)
        case "hit":
            return Hit(*content)
        case "set":
            return set(content)
        case _:
            return {key: _value(part) for key, part in content.items()}
