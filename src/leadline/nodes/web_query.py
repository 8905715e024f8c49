"""What may leave the machine for a web search: the person's own words, made to stand alone by rule.

Looks at nothing but what the person said in this conversation. A question that an LLM made to stand alone may hold
words of earlier answers, and so of documents; a retry's query may too. Neither ever goes out, nor does any word that a
model chose.
"""

from typing import Final

from langchain_core.messages import HumanMessage

from leadline.nodes.follow_ups import standalone_by_rule
from leadline.nodes.wording import small_talk
from leadline.state import RAGState

MAX_QUERY_CHARS: Final = 400
"""What is longer is a pasted text more than a question, and none of it is sent."""


def outgoing_query(state: RAGState) -> str:
    """The query for the web. A first question goes out as it is; a follow-up borrows from earlier questions only."""
    said = [message.text.strip() for message in state.get("messages", []) if isinstance(message, HumanMessage)]
    if not said:  # there is no conversation, so that the question is the person's
        return state["question"].strip()
    previous: str | None = None
    for question in said[:-1]:
        if question and not small_talk(question):
            previous = standalone_by_rule(question, previous)
    return standalone_by_rule(said[-1], previous)


def is_too_long(query: str) -> bool:
    """Whether it is no query for a search engine."""
    return len(query) > MAX_QUERY_CHARS
