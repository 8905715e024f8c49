"""Writes the answer from the evidence, streamed, each sentence with its `[n]`.

Knows two writers: the LLM that the run names, and the quoting one that needs none. The quoting one stands in for an
LLM that fails, and says so. Judges nothing: reflection does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from langgraph.runtime import Runtime

from leadline.citations import MarkerStream
from leadline.config import RunContext
from leadline.errors import ChatInterrupted, ConfigError, ContextTooLong, ModelError
from leadline.events import RetractEvent, TokenEvent
from leadline.models.base import ChatModel, ChatUsage
from leadline.nodes.allowance import llm_limits
from leadline.nodes.asking import (
    CUT_SHORT,
    OpenChat,
    refuse_too_long,
    show_prompt,
    usage_of,
    usage_of_failure,
)
from leadline.nodes.extractive import SentenceScorer, as_answer, quotes_for
from leadline.nodes.progress import degrade, emit
from leadline.nodes.silence import WithoutNoAnswer
from leadline.nodes.wording import small_talk
from leadline.prompts import answer_prompt
from leadline.state import EvidenceBlock, RAGState, RAGUpdate, Usage, add_usage

# How often evidence that proves too long for a model is halved, and how many sentences it takes to halve it.
MAX_HALVINGS = 3
MIN_SENTENCES = 2


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
    if limits := llm_limits(state.get("usage", {}), runtime.context.budgets):
        part = degrade(runtime, "llm", ModelError("The run's budget for the LLM is spent."))
        quoted = await _quote(state["question"], evidence, runtime, sentence_scorer)
        return {**quoted, "degraded": [part, *quoted.get("degraded", [])], "limits": limits}
    update = await _write(state["question"], evidence, runtime, chat, sentence_scorer)
    if "evidence" in update:  # numbers stand for the whole run, also those of passages that aren't shown
        written_from = {block["n"]: block for block in update["evidence"]}
        update["evidence"] = [written_from.get(block["n"], block) for block in state["evidence"]]
    return update


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
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 a named degrade point: whatever broke, there is no quote
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
    draft = _Draft(runtime)
    try:
        model = await chat(runtime.context.llm or "")
        shown, spent = await _fitting(question, evidence, draft, model)
    except ChatInterrupted as error:
        part = degrade(runtime, "llm", error)
        usage = add_usage(draft.refused, usage_of_failure(error))
        return {"answer": draft.text, "draft_status": "interrupted", "usage": usage, "degraded": [part]}
    except ModelError as error:
        part = degrade(runtime, "llm", error)
        draft.forget("The LLM failed while it wrote.")
        quoted = await _quote(question, evidence, runtime, sentence_scorer)
        usage = add_usage(draft.refused, usage_of_failure(error))
        return {**quoted, "usage": usage, "degraded": [part, *quoted.get("degraded", [])]}
    usage = add_usage(draft.refused, usage_of(spent))
    update: RAGUpdate = {"answer": draft.text, "draft_status": "complete", "usage": usage}
    if shown != evidence:
        update["evidence"] = shown
    return update


async def _fitting(
    question: str, evidence: Sequence[EvidenceBlock], draft: "_Draft", model: ChatModel
) -> tuple[list[EvidenceBlock], ChatUsage]:
    """Writes from the evidence, or from its better half where it proves too long for the model, and so on.

    Gives what the draft was written from in the end. What refused calls spent is in the draft. Raises ModelError.
    """
    shown = list(evidence)
    for _ in range(MAX_HALVINGS):
        try:
            return shown, await _stream(question, shown, draft, model)
        except ContextTooLong as error:
            fewer = better_half(shown)
            if fewer is None:
                raise
            draft.refused = add_usage(draft.refused, usage_of_failure(error))
            shown = fewer
    return shown, await _stream(question, shown, draft, model)


async def _stream(question: str, evidence: Sequence[EvidenceBlock], draft: "_Draft", model: ChatModel) -> ChatUsage:
    """Streams the reply piece by piece into the run and into the draft.

    Marks of no evidence are left out, and NO_ANSWER is never shown: alone it stands for an empty reply.
    """
    messages = answer_prompt(question, [block for block in evidence if block["sentences"]])
    await refuse_too_long(model, messages)
    show_prompt(draft.runtime, "reasoning", model, messages)
    numbers = {block["n"] for block in evidence if block["sentences"]}
    markers = MarkerStream(numbers)
    spent, silent = ChatUsage(), WithoutNoAnswer()
    async for delta in model.stream(messages):
        if delta.restart:
            draft.forget("What was shown was what the model thought before its answer.")
            markers, silent = MarkerStream(numbers), WithoutNoAnswer()
        draft.add(silent.feed(markers.feed(delta.text)))
        if delta.finish_reason in CUT_SHORT:
            reason = f"{model.name} stopped before its end: {delta.finish_reason}."
            raise ChatInterrupted(reason, usage=usage_of(delta.usage))
        if delta.finish_reason:
            spent = delta.usage
    draft.add(silent.feed(markers.flush()) + silent.flush())
    return spent


class _Draft:
    """What has been written and shown so far, and what calls have spent whose prompt was too long."""

    def __init__(self, runtime: Runtime[RunContext]) -> None:
        self.runtime = runtime
        self.text = ""
        self.refused = Usage()

    def add(self, text: str) -> None:
        """Shows the text."""
        if text:
            self.text += text
            emit(self.runtime, TokenEvent(text=text))

    def forget(self, reason: str) -> None:
        """Takes back what was shown, if anything was."""
        if self.text:
            self.text = ""
            emit(self.runtime, RetractEvent(reason=reason))


def better_half(evidence: Sequence[EvidenceBlock]) -> list[EvidenceBlock] | None:
    """The blocks with the better half of their sentences, what is dropped counted; None where one is left."""
    total = sum(len(block["sentences"]) for block in evidence)
    if total < MIN_SENTENCES:
        return None
    left = total // 2
    halved = []
    for block in evidence:
        kept = block["sentences"][:left]
        left -= len(kept)
        dropped = block.get("dropped", 0) + len(block["sentences"]) - len(kept)
        halved.append(EvidenceBlock({**block, "sentences": kept, "dropped": dropped}))
    return halved
