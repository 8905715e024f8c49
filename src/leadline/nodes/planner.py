"""Starts a run: finds the question, makes it stand alone, chooses the way, and resets what the last run left.

Knows the conversation. Without an LLM, and whenever the LLM fails, it works by rule.
"""

import time
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.errors import ModelError
from leadline.nodes.allowance import llm_allowed
from leadline.nodes.asking import OpenChat, ask_for_line
from leadline.nodes.progress import degrade, overwrite
from leadline.nodes.rewriting import standalone_by_rule
from leadline.nodes.wording import small_talk
from leadline.prompts import harmless, render
from leadline.state import Pass, RAGState, RAGUpdate, Usage

# Turns of the conversation that the LLM is shown to make a follow-up stand alone.
HISTORY_MESSAGES = 6


async def planner(state: RAGState, runtime: Runtime[RunContext], *, chat: OpenChat) -> RAGUpdate:
    """Writes question, route and the first search, and resets every key of the run."""
    messages = state.get("messages", [])
    asked = _asked(state)
    earlier = _before(messages, asked)
    fresh = _fresh_run()
    if messages == earlier:  # the question came without a message
        fresh["messages"] = [HumanMessage(asked)]
    if small_talk(asked):
        return {**fresh, "question": asked, "query": asked, "queries": [asked], "route": "direct", "passes": []}
    question, usage, degraded = await _standalone(asked, earlier, _previous(state, earlier), runtime, chat)
    context = runtime.context
    sources = ["documents", "web"] if context.web == "always" else ["documents"]
    return {
        **fresh,
        "question": question,
        "query": question,
        "queries": [question],
        "route": "search",
        "width": context.top_k,
        "passes": [Pass(query=question, width=context.top_k, sources=sources)],
        "usage": overwrite(usage),
        "degraded": overwrite(degraded),
    }


def _asked(state: RAGState) -> str:
    """The question of this run: one that was given with this call, else the last message of the person."""
    messages, given = state.get("messages", []), state.get("question", "")
    left_over = state["result"]["question"] if "result" in state else ""
    if messages and isinstance(messages[-1], HumanMessage) and given in ("", left_over):
        return messages[-1].text.strip()
    return given.strip()


def _before(messages: Sequence[AnyMessage], asked: str) -> list[AnyMessage]:
    """The conversation without the message that asks."""
    if messages and isinstance(messages[-1], HumanMessage) and messages[-1].text.strip() == asked:
        return list(messages[:-1])
    return list(messages)


def _fresh_run() -> RAGUpdate:
    return {
        "width": 0,
        "candidates": overwrite({}),
        "documents": [],
        "scores": {},
        "context": [],
        "evidence": [],
        "answer": "",
        "draft_status": "none",
        "citations": [],
        "flags": [],
        "retry_count": 0,
        "web_used": False,
        "web_denied": False,
        "degraded": overwrite([]),
        "usage": overwrite(Usage()),
        "started_at": time.time(),
    }


def _previous(state: RAGState, earlier: Sequence[AnyMessage]) -> str | None:
    """The last question that was more than small talk, as it was made to stand alone where that is known."""
    known = [state["result"]["question"]] if "result" in state else []
    said = [message.text for message in reversed(earlier) if isinstance(message, HumanMessage)]
    return next((question for question in [*known, *said] if not small_talk(question)), None)


async def _standalone(
    asked: str, earlier: Sequence[AnyMessage], previous: str | None, runtime: Runtime[RunContext], chat: OpenChat
) -> tuple[str, Usage, list[str]]:
    by_rule = standalone_by_rule(asked, previous if earlier else None)
    model_name = runtime.context.llm
    if not earlier or not model_name or not llm_allowed(Usage(), runtime.context.budgets, keep_calls=1):
        return by_rule, Usage(), []
    conversation = "\n".join(f"{message.type}: {message.text}" for message in earlier[-HISTORY_MESSAGES:])
    prompt = render("standalone", question=harmless(asked), conversation=harmless(conversation))
    try:
        question, usage = await ask_for_line(runtime, "planner", await chat(model_name), prompt)
    except ModelError as error:
        return by_rule, Usage(llm_calls=1), [degrade(runtime, "planner", error)]
    return question, usage, []
