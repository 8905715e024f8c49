"""A run as OpenAI's clients read it: a chat completion, or the chunks of a stream.

What was sent as the answer can't be taken back there, so the answer is sent once it has been checked. What the LLM
drafts until then travels beside it, as the reasoning that clients show apart from the answer.
"""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from leadline.api.sse import Write, one_line
from leadline.citations import Marker, parse_markers
from leadline.events import EscalateEvent, FinalEvent, RetractEvent, RetryEvent, RunEvent, TokenEvent
from leadline.state import Citation, Result

DONE: Final = "data: [DONE]\n\n"
INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class Reply:
    """What all chunks of one reply share. `base` is the address of this server, for the links to passages.

    `drafts`: there is an LLM, whose drafts are shown beside the answer.
    """

    model: str
    base: str
    drafts: bool = False
    usage_wanted: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def completion(self, result: Result) -> dict[str, Any]:
        """The whole reply of a run that ended well."""
        message = {
            "role": "assistant",
            "content": result["answer"],
            "refusal": None,
            "annotations": annotations(result, self.base),
        }
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage(result), "leadline": result}

    def writer(self) -> Write:
        """Writes the chunks of a stream's events; nothing where a client of this protocol has no use for one."""
        begun = False

        def write(event: RunEvent) -> str:
            nonlocal begun
            opening = "" if begun else self._chunk({"role": "assistant", "content": ""})
            begun = True
            if isinstance(event, FinalEvent):
                return opening + self._end(event.result)  # type: ignore[arg-type]  # a Result in its wire form
            said = _beside(event) if self.drafts else ""
            return opening + self._chunk({"reasoning_content": said}) if said else opening

        return write

    def _end(self, result: Result) -> str:
        if error := failure(result):
            return _data({"error": as_openai(error)})
        chunks = [self._chunk({"content": line}) for line in result["answer"].splitlines(keepends=True)]
        chunks.append(self._chunk({"annotations": annotations(result, self.base)}, "stop", leadline=result))
        if self.usage_wanted:
            chunks.append(_data({**self._head("chat.completion.chunk"), "choices": [], "usage": usage(result)}))
        return "".join([*chunks, DONE])

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **beside: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data({**self._head("chat.completion.chunk"), "choices": [choice], **beside})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def failure(result: Result) -> dict[str, str] | None:
    """The error of a run that gave no answer and no abstention, in the one shape; None for one that did."""
    if result["status"] in ("answered", "abstained"):
        return None
    code = INTERRUPTED if result["status"] == "interrupted" else "internal"
    return {"code": code, "message": result["verdict"]["reason"], "hint": "", **result.get("error", {})}


def as_openai(error: Mapping[str, str], *, kind: str = "server_error", param: str | None = None) -> dict[str, Any]:
    """An error of the one shape with what OpenAI's have beside: its type, and which parameter is at fault."""
    return {**error, "type": kind, "param": param}


def usage(result: Result) -> dict[str, int]:
    """What the LLM spent, in all calls of the run."""
    prompt, completion = result["usage"].get("prompt_tokens", 0), result["usage"].get("completion_tokens", 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def annotations(result: Result, base: str) -> list[dict[str, Any]]:
    """One for each `[n]` of the answer: where it stands, and what it points to."""
    cited = {citation["n"]: citation for citation in result["citations"]}
    marks = [(mark, n) for mark in parse_markers(result["answer"]) for n in mark.numbers if n in cited]
    return [{"type": "url_citation", "url_citation": _place(mark, cited[n], base)} for mark, n in marks]


def _place(mark: Marker, citation: Citation, base: str) -> dict[str, Any]:
    page = f", page {citation['page']}" if citation["page"] is not None else ""
    return {
        "start_index": mark.start,
        "end_index": mark.end,
        "title": f"{citation['file_name']}{page}",
        "url": citation["url"] or f"{base}chunks/{citation['chunk_id']}",
    }


def _beside(event: RunEvent) -> str:
    if isinstance(event, TokenEvent):
        return event.text
    if isinstance(event, RetractEvent):
        return f"\n\n(Taken back: {event.reason})\n\n"
    if isinstance(event, RetryEvent | EscalateEvent):
        where = "the web" if isinstance(event, EscalateEvent) else "the documents"
        return f"(Searching {where} for: {event.query})\n\n"
    return ""


def _data(body: Any) -> str:
    return f"data: {one_line(json.dumps(body, ensure_ascii=False))}\n\n"
