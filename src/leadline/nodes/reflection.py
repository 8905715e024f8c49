"""Checks the draft against its evidence and decides: finish, try again, look on the web, or abstain.

Knows the decision table only as a function of its inputs, and gathers those inputs: the sign of the evidence, the
check of the answer, the remedies left. A check that fails means unverified, never grounded.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from leadline.citations.unchecked import unchecked_citations
from leadline.config import RunContext
from leadline.decision import Decision, Remedies, decide
from leadline.errors import ModelError
from leadline.events import CitationEvent, EscalateEvent, RetractEvent, RetryEvent
from leadline.nodes.allowance import drafted_before, is_new, llm_allowed, wider
from leadline.nodes.asking import OpenChat, ask_for_line
from leadline.nodes.checking import CheckDraft
from leadline.nodes.origins import answer_message, made_from, origins_of
from leadline.nodes.outcome import NEAREST, Checked, Facts, nearest_documents, result_of, verdict_of
from leadline.nodes.progress import degrade, emit, overwrite
from leadline.nodes.rewriting import query_by_rule
from leadline.nodes.web_query import outgoing_query
from leadline.prompts import format_evidence, harmless, render
from leadline.ranking import evidence_sign
from leadline.state import (
    EvidenceBlock,
    Grounding,
    Pass,
    RAGState,
    RAGUpdate,
    Result,
    Usage,
    add_usage,
    merge_unique,
)


async def reflection(
    state: RAGState,
    runtime: Runtime[RunContext],
    *,
    check: CheckDraft,
    chat: OpenChat,
    facts: Callable[[], Awaitable[Facts]],
    left: Callable[[RAGState, RunContext], Remedies],
) -> RAGUpdate:
    """Writes the verdict, and either the next search or the result. A finished run keeps no passage in its state."""
    checked, spent, degraded = await _checked(state, runtime, check)
    state = {**state, "usage": add_usage(state.get("usage", {}), spent)}
    decision = decide(
        checked.evidence,
        checked.grounding,
        left(state, runtime.context),
        interrupted=state.get("draft_status") == "interrupted",
        legs_failed=_legs_failed(state),
        strict=state.get("strict", False),
    )
    if decision.status == "answered" and checked.changes:
        decision = replace(
            decision, reason=f"{decision.reason} {checked.changes}", flags=(*decision.flags, "shortened")
        )
        emit(runtime, RetractEvent(reason=checked.changes))
    if decision.status != "answered" and state.get("answer"):
        emit(runtime, RetractEvent(reason=decision.reason))
    update: RAGUpdate
    if decision.action == "retry":
        update = await _retry(state, runtime, decision, chat)
    elif decision.action == "escalate":
        update = _escalate(state, runtime, decision)
    else:
        took = Usage(seconds=round(time.time() - state["started_at"], 3))
        degraded = [*degraded, *decision.degraded]
        final: RAGState = {
            **state,
            "degraded": merge_unique(state.get("degraded", []), degraded),
            "usage": add_usage(state.get("usage", {}), took),
        }
        update = {**_finish(final, runtime, decision, checked, await facts()), "usage": took}
    update["degraded"] = [*degraded, *update.get("degraded", [])]
    update["usage"] = add_usage(update.get("usage", {}), spent)
    update["verdict"] = verdict_of(decision, checked)
    if decision.status is None:
        update["path"] = [*state.get("path", []), update["verdict"]]
    return update


async def _checked(
    state: RAGState, runtime: Runtime[RunContext], check: CheckDraft
) -> tuple[Checked, Usage, list[str]]:
    answer = state.get("answer", "")
    sign = evidence_sign(state.get("context", []))
    if state.get("route") == "direct":
        return Checked(answer, (), "not_applicable", sign), Usage(), []
    if state.get("draft_status", "none") == "none":
        return Checked("", (), _of_earlier_draft(state), sign), Usage(), []
    if not answer.strip():
        return Checked("", (), "no_answer", sign), Usage(), []
    try:
        done = await check(state, runtime)
    except Exception as error:  # noqa: BLE001 a named degrade point: a check that breaks leaves the answer unverified
        text, cited = unchecked_citations(answer, state.get("evidence", []))
        return Checked(text, tuple(cited), "unverified", sign), Usage(), [degrade(runtime, "critic", error)]
    found = done.check
    return Checked(found.text, tuple(found.citations), done.grounding, sign, done.changes), done.usage, done.degraded


def _of_earlier_draft(state: RAGState) -> Grounding:
    """How the rejected draft stood that was made from these very passages; a new one would stand no better."""
    earlier = state["verdict"]["grounding"] if "verdict" in state else "not_attempted"
    return earlier if earlier in ("no_answer", "ungrounded") and drafted_before(state) else "not_attempted"


def _legs_failed(state: RAGState) -> bool:
    """Whether this pass searched the documents, no leg answered (not even with nothing), and nothing is known."""
    passes = state.get("passes", [])
    searched = bool(passes) and "documents" in passes[-1]["sources"]
    return searched and not set(state.get("candidates", {})) - {"web"} and not state.get("documents")


def _next_try() -> RAGUpdate:
    """What a new pass must not find: the draft and candidates of the last one. Documents and numbers stay."""
    return {"candidates": overwrite({}), "answer": "", "draft_status": "none", "citations": []}


async def _retry(state: RAGState, runtime: Runtime[RunContext], decision: Decision, chat: OpenChat) -> RAGUpdate:
    attempt = state.get("retry_count", 0) + 1
    width = wider(state, runtime.context)
    written, usage, degraded = await _rewritten(state, runtime, decision, chat)
    query = written or query_by_rule(state["question"], state.get("documents", []), attempt)
    if not is_new(state, Pass(query=query, width=width, sources=["documents"])):
        query = state["query"]  # wider alone: the table offers a retry only while that is new
    emit(runtime, RetryEvent(query=query, width=width, reason=decision.reason))
    # A query by rule holds words of the passages themselves, so passages are never judged by it.
    judged = [written] if written and written == query else []
    return {
        **_next_try(),
        "query": query,
        "queries": list(dict.fromkeys([*state.get("queries", []), *judged])),
        "width": width,
        "passes": [*state.get("passes", []), Pass(query=query, width=width, sources=["documents"])],
        "retry_count": attempt,
        "usage": usage,
        "degraded": degraded,
    }


async def _rewritten(
    state: RAGState, runtime: Runtime[RunContext], decision: Decision, chat: OpenChat
) -> tuple[str, Usage, list[str]]:
    """The LLM's query, or an empty one where there is no LLM, no budget for it, or no valid reply."""
    context = runtime.context
    if not context.llm or not llm_allowed(state.get("usage", {}), context.budgets, keep_calls=1):
        return "", Usage(), []
    prompt = render(
        "rewrite",
        question=harmless(state["question"]),
        tried=harmless("\n".join(search["query"] for search in state.get("passes", []))),
        found=format_evidence(_nearest(state)),
        missing=decision.reason,
    )
    try:
        query, usage = await ask_for_line(runtime, "reflection", await chat(context.llm), prompt)
    except ModelError as error:
        return "", Usage(llm_calls=1), [degrade(runtime, "rewriter", error)]
    return query, usage, []


def _nearest(state: RAGState) -> list[EvidenceBlock]:
    """The best passages whole, as the rewriter sees what was found; these numbers go nowhere."""
    return [
        EvidenceBlock(
            n=place,
            chunk_id=document["metadata"]["chunk_id"],
            sentences=[(0, len(document["content"]), document["content"])],
            document=document,
        )
        for place, document in enumerate(state.get("context", [])[:NEAREST], start=1)
    ]


def _escalate(state: RAGState, runtime: Runtime[RunContext], decision: Decision) -> RAGUpdate:
    query = outgoing_query(state)
    emit(runtime, EscalateEvent(query=query, reason=decision.reason))
    search = Pass(query=query, width=runtime.context.top_k, sources=["web"])
    return {**_next_try(), "passes": [*state.get("passes", []), search]}


def _finish(
    state: RAGState, runtime: Runtime[RunContext], decision: Decision, checked: Checked, facts: Facts
) -> RAGUpdate:
    result = result_of(state, runtime.context, decision, checked, facts)
    for citation in result["citations"]:
        emit(runtime, CitationEvent(citation=dict(citation)))
    said = result["answer"] and result["status"] in ("answered", "abstained")
    return {
        "answer": result["answer"],
        "citations": result["citations"],
        "flags": result["flags"],
        "status": result["status"],
        "result": result,
        "messages": [_message(state, runtime, result)] if said else [],
        "candidates": overwrite({}),
        "sightings": [],
        "documents": [],
        "scores": {},
        "path": [],
        "context": [],
        "evidence": [],
    }


def _message(state: RAGState, runtime: Runtime[RunContext], result: Result) -> AIMessage:
    """The answer with what it comes from, so that it can be taken out of the conversation when that is deleted."""
    if result["status"] == "answered":
        origins = made_from(state, result["citations"], quoted=not runtime.context.llm)
    else:
        origins = origins_of(nearest_documents(state))  # they are named
    question_from = state.get("question_from", [])
    asked = state["question"]
    return answer_message(result["answer"], answer_from=origins, question_from=question_from, question=asked)
