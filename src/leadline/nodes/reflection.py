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
from leadline.decision import Decision, Remedies, decide, told
from leadline.events import CitationEvent, ConsentEvent, EscalateEvent, RetractEvent
from leadline.nodes.allowance import drafted_before
from leadline.nodes.asking import OpenChat
from leadline.nodes.checking import CheckDraft
from leadline.nodes.origins import answer_message, made_from, origins_of
from leadline.nodes.outcome import Checked, Facts, nearest_documents, result_of, verdict_of
from leadline.nodes.progress import degrade, emit, overwrite
from leadline.nodes.retrying import hop_first, hop_reason, next_try, retry
from leadline.nodes.web_query import outgoing_query
from leadline.ranking import evidence_sign
from leadline.state import (
    Flag,
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
    checked = await _checked(state, runtime, check)
    degraded = checked.degraded
    noted = merge_unique(state.get("limits", []), checked.limits)
    state = {**state, "usage": add_usage(state.get("usage", {}), checked.usage), "limits": noted}
    remedies = left(state, runtime.context)
    decision = _told_of_check(_decision(state, runtime.context, checked, remedies), checked)
    _retract(runtime, state, decision, checked)
    update: RAGUpdate
    if decision.action == "retry":
        update = await retry(state, runtime, decision, chat)
    elif decision.action == "escalate":
        update = _escalate(state, runtime, decision)
    else:
        if remedies.unasked and _is_short(decision):
            emit(runtime, ConsentEvent(query=outgoing_query(state), granted=False))
        limits = _limits(state, decision, remedies)
        decision = replace(decision, reason=f"{decision.reason}{told(limits)}")
        degraded = [*degraded, *decision.degraded]
        final, took = _final(state, degraded, limits)
        update = {**_finish(final, runtime, decision, checked, await facts()), "usage": took, "limits": limits}
    update["degraded"] = [*degraded, *update.get("degraded", [])]
    update["limits"] = merge_unique(noted, update.get("limits", []))
    update["usage"] = add_usage(update.get("usage", {}), checked.usage)
    update["verdict"] = verdict_of(decision, checked)
    if decision.status is None:
        update["path"] = [*state.get("path", []), update["verdict"]]
    return update


def _decision(state: RAGState, context: RunContext, checked: Checked, remedies: Remedies) -> Decision:
    hop = hop_first(state, context)
    decision = decide(
        checked.evidence,
        checked.grounding,
        replace(remedies, retry=True) if hop else remedies,  # it was left a moment ago: that is what led here
        interrupted=state.get("draft_status") == "interrupted",
        legs_failed=_legs_failed(state),
        strict=state.get("strict", False),
    )
    if hop and decision.action == "retry":
        decision = replace(decision, reason=hop_reason(state, hop))
    return decision


def _told_of_check(decision: Decision, checked: Checked) -> Decision:
    """The decision with what the check left out, had rewritten or could not tell, where the answer stands."""
    if decision.status != "answered":
        return decision
    reason = " ".join(filter(None, (decision.reason, checked.changes, checked.left_open)))
    flags: tuple[Flag, ...] = (*decision.flags, "shortened") if checked.changes else decision.flags
    return replace(decision, reason=reason, flags=flags)


def _retract(runtime: Runtime[RunContext], state: RAGState, decision: Decision, checked: Checked) -> None:
    """Takes back what was streamed where it isn't the answer, or not all of it."""
    if decision.status == "answered":
        if checked.changes:
            emit(runtime, RetractEvent(reason=checked.changes))
    elif state.get("answer"):
        emit(runtime, RetractEvent(reason=decision.reason))


def _final(state: RAGState, degraded: list[str], limits: list[str]) -> tuple[RAGState, Usage]:
    """The state that the result is made of, and the time that the run took."""
    took = Usage(seconds=round(time.time() - state["started_at"], 3))
    final: RAGState = {
        **state,
        "degraded": merge_unique(state.get("degraded", []), degraded),
        "usage": add_usage(state.get("usage", {}), took),
        "limits": limits,
    }
    return final, took


async def _checked(state: RAGState, runtime: Runtime[RunContext], check: CheckDraft) -> Checked:
    answer = state.get("answer", "")
    sign = evidence_sign(state.get("context", []))
    if state.get("route") == "direct":
        return Checked(answer, (), "not_applicable", sign)
    if state.get("draft_status", "none") == "none":
        return Checked("", (), _of_earlier_draft(state), sign)
    if not answer.strip():
        return Checked("", (), "no_answer", sign)
    try:
        done = await check(state, runtime)
    except Exception as error:  # noqa: BLE001 a named degrade point: a check that breaks leaves the answer unverified
        text, cited = unchecked_citations(answer, state.get("evidence", []))
        return Checked(text, cited, "unverified", sign, degraded=[degrade(runtime, "critic", error)])
    # What was written may be supported; what was to come is not known.
    broken = state.get("draft_status") == "interrupted" and done.grounding == "grounded"
    return Checked(
        done.check.text,
        done.check.citations,
        "unverified" if broken else done.grounding,
        sign,
        changes=done.changes,
        left_open=done.left_open,
        usage=done.usage,
        degraded=done.degraded,
        limits=done.limits,
    )


def _limits(state: RAGState, decision: Decision, remedies: Remedies) -> list[str]:
    """The budgets that kept the run from a call, or from a remedy where it ends without a good answer."""
    return merge_unique(state.get("limits", []), list(remedies.limits) if _is_short(decision) else [])


def _is_short(decision: Decision) -> bool:
    """Whether the run ends without a good answer."""
    return decision.status == "abstained" or "weak_evidence" in decision.flags


def _of_earlier_draft(state: RAGState) -> Grounding:
    """How the rejected draft stood that was made from these very passages; a new one would stand no better."""
    earlier = state["verdict"]["grounding"] if "verdict" in state else "not_attempted"
    return earlier if earlier in ("no_answer", "ungrounded") and drafted_before(state) else "not_attempted"


def _legs_failed(state: RAGState) -> bool:
    """Whether this pass searched the documents, no leg answered (not even with nothing), and nothing is known."""
    passes = state.get("passes", [])
    searched = bool(passes) and "documents" in passes[-1]["sources"]
    return searched and not set(state.get("candidates", {})) - {"web"} and not state.get("documents")


def _escalate(state: RAGState, runtime: Runtime[RunContext], decision: Decision) -> RAGUpdate:
    query = outgoing_query(state)
    emit(runtime, EscalateEvent(query=query, reason=decision.reason))
    search = Pass(query=query, width=runtime.context.top_k, sources=["web"])
    return {**next_try(), "passes": [*state.get("passes", []), search]}


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
