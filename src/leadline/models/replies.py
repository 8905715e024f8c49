"""Objects out of the text of a chat model, however it wraps them.

Knows fences, prose around, and thinking blocks; validates strictly: "false" is text, not a truth value.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from leadline.models.base import T
from leadline.models.plain import plain
from leadline.models.thinking import without_thinking

_MAX_PROBLEM_CHARS = 400


def parse_reply(text: str, schema: type[T]) -> T | str:
    """The one JSON object in `text` that is a valid `schema`, or a sentence about what is wrong.

    Said twice it is one object; of several that differ nobody knows which is meant, so none of them counts.
    """
    problem, valid = "There is no JSON object in the reply.", []
    for found in _objects(without_thinking(text)):
        try:
            valid.append(schema.model_validate_json(json.dumps(found), strict=True))
        except ValidationError as error:
            details = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
            problem = details[:_MAX_PROBLEM_CHARS]
    if any(other != valid[0] for other in valid):
        return "There are several objects in the reply, and they differ."
    return valid[0] if valid else problem


def ask_for_schema(messages: Sequence[Mapping[str, Any]], schema: type[T]) -> list[Mapping[str, Any]]:
    """The messages, with the schema at the end of the last one, for models that can't be held to it otherwise."""
    wish = f"Reply with one JSON object of this schema and nothing else:\n{json.dumps(schema.model_json_schema())}"
    *before, last = messages
    return [*before, {**last, "content": f"{last['content']}\n\n{wish}"}]


def ask_to_repair(messages: Sequence[Mapping[str, Any]], reply: str, problem: str) -> list[Mapping[str, Any]]:
    """The messages, the reply, and what was wrong with it."""
    wish = f"This is not a valid object: {problem}\nReply with the corrected JSON object and nothing else."
    return [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": wish}]


class _Unnumbered(str):
    """A text in which `json` finds no line numbers. It counts lines from the beginning for each error that it raises,
    and there is one for each brace that begins nothing."""

    __slots__ = ()

    def count(self, *_: Any) -> int:
        """No line break."""
        return 0

    def rfind(self, *_: Any) -> int:
        """Nowhere."""
        return -1


def _objects(reply: str) -> Iterator[dict[str, Any]]:
    decoder, text = json.JSONDecoder(), _Unnumbered(reply)
    at = text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
            found = _plain(found)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(found, dict):
            yield found
        at = text.find("{", end)


def _plain(value: Any) -> Any:
    """What was written as an escape is a character only now."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
