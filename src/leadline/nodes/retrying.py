"""The next search of the documents: aimed at what the last ones left open.

Knows three ways: the names that the best passage gives are followed; an LLM that sees what was found and what is
missing writes a query; by rule, the question's words go with names of the best passages. Each but the first is wider
than the search before, so that none repeats one.
"""

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.decision import Decision
from leadline.errors import ModelError
from leadline.events import RetryEvent
from leadline.nodes.allowance import drafted_before, is_new, llm_limits, wider
from leadline.nodes.asking import OpenChat, ask_for_line, usage_of_failure
from leadline.nodes.hops import missing_words, next_hop
from leadline.nodes.outcome import NEAREST
from leadline.nodes.progress import degrade, emit, overwrite
from leadline.nodes.rewriting import query_by_rule
from leadline.prompts import format_evidence, harmless, render
from leadline.ranking import evidence_sign
from leadline.state import EvidenceBlock, Pass, RAGState, RAGUpdate, Usage

# A query is a line; a model that goes on is cut off.
QUERY_TOKENS = 200


def next_try() -> RAGUpdate:
    """What a new pass must not find: the draft and candidates of the last one. Documents and numbers stay."""
    return {"candidates": overwrite({}), "answer": "", "draft_status": "none", "citations": []}


def hop_first(state: RAGState, context: RunContext) -> Pass | None:
    """The hop that comes before anything is written: from relevant passages, of which no draft was made yet."""
    drafted = state.get("draft_status", "none") != "none" or drafted_before(state)
    if drafted or state.get("retry_count", 0) >= context.max_retries:
        return None
    return next_hop(state) if evidence_sign(state.get("context", [])) == "relevant" else None


async def retry(state: RAGState, runtime: Runtime[RunContext], decision: Decision, chat: OpenChat) -> RAGUpdate:
    """The state's update for another pass over the documents, which costs one retry."""
    if hop := hop_first(state, runtime.context):
        emit(runtime, RetryEvent(query=hop["query"], width=hop["width"], reason=decision.reason))
        return {**_pass(state, hop), "usage": Usage(), "degraded": []}
    width = wider(state, runtime.context)
    limits = llm_limits(state.get("usage", {}), runtime.context.budgets, keep_calls=1) if runtime.context.llm else []
    written, usage, degraded = ("", Usage(), []) if limits else await _rewritten(state, runtime, decision, chat)
    query = written or query_by_rule(state["question"], state.get("documents", []), state.get("retry_count", 0) + 1)
    search = Pass(query=query, width=width, sources=["documents"])
    if not is_new(state, search):
        query = search["query"] = state["query"]  # wider alone: the table offers a retry only while that is new
    if hop := next_hop(state):
        search |= {"hops": hop["hops"], "hops_from": hop["hops_from"]}
    emit(runtime, RetryEvent(query=query, width=width, reason=decision.reason))
    # A query by rule holds words of the passages themselves, so passages are never judged by it.
    judged = [written] if written and written == query else []
    return {
        **_pass(state, search),
        "query": query,
        "queries": list(dict.fromkeys([*state.get("queries", []), *judged])),
        "width": width,
        "usage": usage,
        "degraded": degraded,
        "limits": limits,
    }


def hop_reason(state: RAGState, hop: Pass) -> str:
    """Why a hop is made, for people."""
    missing = ", ".join(f'"{word}"' for word in missing_words(state["question"], state["context"][0]))
    return f"The best passage has no word for {missing}: looking up what it names ({hop['query']})."


def _pass(state: RAGState, search: Pass) -> RAGUpdate:
    passes = [*state.get("passes", []), search]
    return {**next_try(), "passes": passes, "retry_count": state.get("retry_count", 0) + 1}


async def _rewritten(
    state: RAGState, runtime: Runtime[RunContext], decision: Decision, chat: OpenChat
) -> tuple[str, Usage, list[str]]:
    """The LLM's query, or an empty one where there is no LLM or no valid reply."""
    context = runtime.context
    if not context.llm:
        return "", Usage(), []
    prompt = render(
        "rewrite",
        question=harmless(state["question"]),
        tried=harmless("\n".join(search["query"] for search in state.get("passes", []))),
        found=format_evidence(_nearest(state)),
        missing=decision.reason,
    )
    try:
        model = await chat(context.llm)
        query, usage = await ask_for_line(runtime, "reflection", model, prompt, max_tokens=QUERY_TOKENS)
    except ModelError as error:
        return "", usage_of_failure(error), [degrade(runtime, "rewriter", error)]
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
