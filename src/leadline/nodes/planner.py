"""Starts a run: finds the question, makes it stand alone, chooses the way, and resets what the last run left.

Knows the conversation. Without an LLM, and whenever the LLM fails, it works by rule.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from leadline.config import MAX_QUESTION_CHARS, RunContext
from leadline.errors import ChatFailed, ModelError, QuestionEmpty, QuestionTooLong
from leadline.nodes.allowance import llm_limits
from leadline.nodes.asking import OpenChat, ask_for_line, usage_of_failure
from leadline.nodes.follow_ups import asks_the_same, standalone_by_rule
from leadline.nodes.origins import Conversation, StillThere, origins_in, question_in, question_origins, usable
from leadline.nodes.progress import degrade, overwrite
from leadline.nodes.wording import small_talk
from leadline.prompts import harmless, render
from leadline.state import Origin, Pass, RAGState, RAGUpdate, Usage

# Of a collection, the names of the files that are still being taken in.
Indexing = Callable[[str], Awaitable[list[str]]]

# Turns of the conversation that the LLM is shown to make a follow-up stand alone.
HISTORY_MESSAGES = 6
# Of a long one its beginning is enough to know what it is about.
HISTORY_CHARS = 600


@dataclass(frozen=True, slots=True)
class _Standalone:
    """A question that can be understood alone, what its words come from beside the person, and what it took.

    `limits` are the budgets that kept the LLM from being asked.
    """

    text: str
    made_from: list[Origin] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    degraded: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)


async def planner(
    state: RAGState,
    runtime: Runtime[RunContext],
    *,
    chat: OpenChat,
    still_there: StillThere,
    indexing: Indexing | None = None,
) -> RAGUpdate:
    """Writes question, route and the first search, and resets every key of the run.

    Answers of earlier turns whose documents are gone are taken out of the conversation first. What is still being
    indexed is noted now: the run may not find it. Raises QuestionEmpty, QuestionTooLong.
    """
    messages = state.get("messages", [])
    asked = _asked(state)
    refuse_no_question(asked)
    before = _before(messages, asked)
    earlier = await usable(before, state.get("result"), still_there)
    fresh = _fresh_run(earlier)
    fresh["indexing"] = await indexing(runtime.context.collection) if indexing else []
    if messages == before:  # the question came without a message
        fresh["messages"] = [*earlier.removed, HumanMessage(asked)]
    if small_talk(asked):
        fresh |= {"question": asked, "last_question": asked}
        return {**fresh, "query": asked, "queries": [asked], "route": "direct", "passes": []}
    question = await _standalone(asked, earlier, runtime, chat)
    context = runtime.context
    sources = ["documents", "web"] if context.web == "always" else ["documents"]
    return {
        **fresh,
        "question": question.text,
        "last_question": question.text,
        "question_from": question.made_from,
        "query": question.text,
        "queries": [question.text],
        "route": "search",
        "width": context.top_k,
        "passes": [Pass(query=question.text, width=context.top_k, sources=sources)],
        "usage": overwrite(question.usage),
        "degraded": overwrite(question.degraded),
        "limits": overwrite(question.limits),
    }


def refuse_no_question(question: str) -> None:
    """Raises QuestionEmpty, or QuestionTooLong: tens of thousands of characters take longer than any budget to read."""
    if not question.strip():
        raise QuestionEmpty
    if len(question) > MAX_QUESTION_CHARS:
        raise QuestionTooLong(
            f"The question has {len(question):,} characters; it may have {MAX_QUESTION_CHARS:,}.",
            hint="Put long texts in as documents and ask about them.",
        )


def _asked(state: RAGState) -> str:
    """The question of this run: one that was given with this call, else the last message of the person."""
    messages, given = state.get("messages", []), state.get("question", "")
    answered = state["result"]["question"] if "result" in state else ""
    left_over = ("", answered, state.get("last_question", ""))  # the last run may have ended without an answer
    if messages and isinstance(messages[-1], HumanMessage) and given in left_over:
        return messages[-1].text.strip()
    return given.strip()


def _before(messages: Sequence[AnyMessage], asked: str) -> list[AnyMessage]:
    """The conversation without the message that asks."""
    if messages and isinstance(messages[-1], HumanMessage) and messages[-1].text.strip() == asked:
        return list(messages[:-1])
    return list(messages)


def _fresh_run(earlier: Conversation) -> RAGUpdate:
    fresh: RAGUpdate = {
        "question_from": [],
        "redacted": bool(earlier.removed),
        "width": 0,
        "candidates": overwrite({}),
        "sightings": [],
        "documents": [],
        "scores": {},
        "zero_point": 0.0,
        "strict": False,
        "context": [],
        "evidence": [],
        "answer": "",
        "draft_id": "",
        "draft_status": "none",
        "citations": [],
        "path": [],
        "flags": [],
        "retry_count": 0,
        "web_used": False,
        "web_denied": False,
        "degraded": overwrite([]),
        "limits": overwrite([]),
        "usage": overwrite(Usage()),
        "started_at": time.time(),
        "worked": overwrite(0.0),
    }
    if earlier.removed:
        fresh["messages"] = earlier.removed
        if earlier.result is not None:
            fresh["result"] = earlier.result
    return fresh


def _previous(messages: Sequence[AnyMessage]) -> tuple[str | None, list[Origin]]:
    """The last question that was more than small talk, and what it comes from.

    As it was made to stand alone, where its answer says so; else the person's words, made to by rule.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        asked = message.text if isinstance(message, HumanMessage) else question_in(message)
        if not asked.strip() or small_talk(asked):
            continue
        if not isinstance(message, HumanMessage):
            return asked, question_origins(message)
        before, known_from = _previous(messages[:place])
        question = standalone_by_rule(asked, before)
        return question, known_from if question != asked else []
    return None, []


async def _standalone(asked: str, earlier: Conversation, runtime: Runtime[RunContext], chat: OpenChat) -> _Standalone:
    """By the LLM where the run has one and its budgets allow it, else by rule."""
    previous, known_from = _previous(earlier.messages)
    if previous is None:  # nothing was asked before
        return _Standalone(asked)
    question = standalone_by_rule(asked, previous)
    by_rule = _Standalone(question, known_from if question != asked else [])
    model_name = runtime.context.llm
    if not model_name:
        return by_rule
    if limits := llm_limits(Usage(), runtime.context.budgets, keep_calls=1):
        return replace(by_rule, limits=limits)
    shown = earlier.messages[-HISTORY_MESSAGES:]
    conversation = "\n".join(f"{message.type}: {_short(message.text)}" for message in shown)
    prompt = render("standalone", question=harmless(asked), conversation=harmless(conversation))
    try:
        question, usage = await ask_for_line(runtime, "planner", await chat(model_name), prompt)
    except ModelError as error:
        return replace(by_rule, usage=usage_of_failure(error), degraded=[degrade(runtime, "planner", error)])
    if not asks_the_same(question, asked, conversation):
        other = ChatFailed(f"{model_name} asks something else than was asked.")
        return replace(by_rule, usage=usage, degraded=[degrade(runtime, "planner", other)])
    return _Standalone(question, origins_in(shown) if question != asked else [], usage)


def _short(text: str) -> str:
    return text if len(text) <= HISTORY_CHARS else f"{text[:HISTORY_CHARS]}…"
