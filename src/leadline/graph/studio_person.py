"""A person in front of LangGraph Studio: the run stops with an interrupt, and goes on with what they answer.

Knows what an answer may look like. One that can't be understood is no answer: the question is put again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langgraph.types import interrupt

from leadline.nodes.asking import MAX_LINE_CHARS

YES: Final = frozenset({"yes", "y", "approve", "ok", "true"})
NO: Final = frozenset({"no", "n", "deny", "reject", "false"})
ANSWERS: Final = '{"approve": true}, {"approve": false}, or {"query": "…"} to search for that instead.'


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said. `query`: another one in place of the one shown; "" for none."""

    approved: bool
    query: str = ""


class AtStudio:
    """Asks by interrupting the run."""

    async def web_query(self, query: str) -> bool | str:
        """Whether the query may go to the web, or which may in its place."""
        answer = _ask(
            {
                "ask": "web_search",
                "query": query,
                "about": "This would be sent to a web search engine, and the pages it names would be read. Nothing of "
                "the documents is sent.",
            }
        )
        return answer.approved and (answer.query or True)

    async def next_query(self, query: str, tried: Sequence[str], reason: str) -> str | None:
        """What to search the documents for instead of `query`, or that; None: no more searches."""
        answer = _ask(
            {
                "ask": "retry_query",
                "query": query,
                "about": f"{reason} The documents would be searched for this next.",
                "tried": list(dict.fromkeys(tried)),
            }
        )
        return (answer.query or query) if answer.approved else None


def _ask(question: Mapping[str, Any]) -> Answer:
    asked = {**question, "answer_with": ANSWERS}
    while True:
        answer = read_answer(said := interrupt(asked))
        if answer is not None:
            return answer
        asked["problem"] = f"Not understood, so nothing was done: {str(said)[:100]!r}."


def read_answer(said: object) -> Answer | None:
    """What was said; None where that can't be told for sure. Only what is clearly a yes is one."""
    if isinstance(said, Mapping):
        return _read_fields(said)
    if isinstance(said, str):
        said = said.strip().casefold()
        return Answer(said in YES) if said in YES | NO else None
    return Answer(said) if isinstance(said, bool) else None


def _read_fields(said: Mapping[str, Any]) -> Answer | None:
    approved, query = said.get("approve", True), said.get("query", "")
    if not said or set(said) - {"approve", "query"} or not isinstance(approved, bool) or not isinstance(query, str):
        return None
    query = query.strip()
    if ("query" in said and approved and not query) or len(query) > MAX_LINE_CHARS:
        return None
    return Answer(approved, query)
