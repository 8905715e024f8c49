"""Writes the answer from the evidence, streamed, each sentence with its `[n]`.

Knows two writers: the LLM that the run names, and the quoting one that needs none. The quoting one stands in for an
LLM that fails, and says so. Judges nothing: reflection does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from langgraph.runtime import Runtime

from leadline.citations import NO_ANSWER, MarkerStream
from leadline.config import RunContext
from leadline.errors import ChatInterrupted, ModelError
from leadline.events import RetractEvent, TokenEvent
from leadline.models.base import ChatModel, ChatUsage
from leadline.nodes.allowance import llm_allowed
from leadline.nodes.asking import OpenChat, show_prompt, usage_of
from leadline.nodes.extractive import SentenceScorer, as_answer, quotes_for
from leadline.nodes.progress import degrade, emit
from leadline.nodes.wording import small_talk
from leadline.prompts import format_evidence, harmless, render
from leadline.state import EvidenceBlock, RAGState, RAGUpdate, Usage

# Finish reasons that end a reply in the middle.
CUT_SHORT = frozenset({"length", "content_filter"})


async def reasoning(
    state: RAGState,
    runtime: Runtime[RunContext],
    *,
    chat: OpenChat,
    sentence_scorer: Callable[[], Awaitable[SentenceScorer]],
) -> RAGUpdate:
    """Writes `answer` and `draft_status`. Without evidence nothing is written: no LLM answers from memory."""
    if state.get("route") == "direct":
        return _say(small_talk(state["question"]) or "", runtime)
    evidence = [block for block in state.get("evidence", []) if block["sentences"]]
    if not evidence:
        return {"answer": "", "draft_status": "complete"}
    if not runtime.context.llm:
        return await _quote(state["question"], evidence, runtime, sentence_scorer)
    if not llm_allowed(state.get("usage", {}), runtime.context.budgets):
        part = degrade(runtime, "llm", ModelError("The run's budget for the LLM is spent."))
        return {**await _quote(state["question"], evidence, runtime, sentence_scorer), "degraded": [part]}
    return await _write(state["question"], evidence, runtime, chat, sentence_scorer)


def _say(text: str, runtime: Runtime[RunContext]) -> RAGUpdate:
    if text:
        emit(runtime, TokenEvent(text=text))
    return {"answer": text, "draft_status": "complete"}


async def _quote(
    question: str,
    evidence: Sequence[EvidenceBlock],
    runtime: Runtime[RunContext],
    sentence_scorer: Callable[[], Awaitable[SentenceScorer]],
) -> RAGUpdate:
    try:
        quotes = await asyncio.to_thread(quotes_for, question, evidence, await sentence_scorer())
    except ModelError as error:
        return {"answer": "", "draft_status": "failed", "degraded": [degrade(runtime, "reranker", error)]}
    pieces = as_answer(quotes)
    for piece in pieces:
        emit(runtime, TokenEvent(text=piece))
    return {"answer": "".join(pieces), "draft_status": "complete"}


async def _write(
    question: str,
    evidence: Sequence[EvidenceBlock],
    runtime: Runtime[RunContext],
    chat: OpenChat,
    sentence_scorer: Callable[[], Awaitable[SentenceScorer]],
) -> RAGUpdate:
    written: list[str] = []
    try:
        model = await chat(runtime.context.llm or "")
        spent = await _stream(question, evidence, runtime, model, written)
    except ChatInterrupted as error:
        part = degrade(runtime, "llm", error)
        return {
            "answer": "".join(written),
            "draft_status": "interrupted",
            "usage": Usage(llm_calls=1),
            "degraded": [part],
        }
    except ModelError as error:
        part = degrade(runtime, "llm", error)
        if written:
            emit(runtime, RetractEvent(reason="The LLM failed while it wrote."))
        quoted = await _quote(question, evidence, runtime, sentence_scorer)
        return {**quoted, "usage": Usage(llm_calls=1), "degraded": [part, *quoted.get("degraded", [])]}
    return {"answer": "".join(written), "draft_status": "complete", "usage": usage_of(spent)}


async def _stream(
    question: str,
    evidence: Sequence[EvidenceBlock],
    runtime: Runtime[RunContext],
    model: ChatModel,
    written: list[str],
) -> ChatUsage:
    """Streams the reply piece by piece into the run and into `written`.

    Marks of no evidence are left out, and a reply that says only NO_ANSWER is never shown: it stands for an empty one.
    """
    messages = render("answer", question=harmless(question), evidence=format_evidence(evidence))
    show_prompt(runtime, "reasoning", model, messages)
    markers = MarkerStream({block["n"] for block in evidence})
    spent, held = ChatUsage(), ""
    async for delta in model.stream(messages):
        held += markers.feed(delta.text)
        if not NO_ANSWER.startswith(held.strip()):
            held = _pass_on(held, runtime, written)
        if delta.finish_reason in CUT_SHORT:
            raise ChatInterrupted(f"{model.name} stopped before its end: {delta.finish_reason}.")
        if delta.finish_reason:
            spent = delta.usage
    held += markers.flush()
    if held.strip().rstrip(".") != NO_ANSWER or written:
        _pass_on(held, runtime, written)
    return spent


def _pass_on(text: str, runtime: Runtime[RunContext], written: list[str]) -> str:
    """Shows the text. Returns what is left to show: nothing."""
    if text:
        written.append(text)
        emit(runtime, TokenEvent(text=text))
    return ""
