"""What a run may still do: its budgets, the searches not made yet, and so the remedies reflection has left.

Pure functions over the state. Knows no clock and no web client: the caller says the time and whether the web can be
reached at all.
"""

from leadline.config import Budgets, RunContext
from leadline.decision import Remedies
from leadline.state import Pass, RAGState, Usage

# A leg is asked for no more than this, whatever the retries.
MAX_WIDTH = 200


def time_left(state: RAGState, budgets: Budgets, now: float) -> float:
    """The seconds until the run's wall-clock budget is spent; below zero when it is."""
    return state.get("started_at", now) + budgets.seconds - now


def seconds_left(state: RAGState, budgets: Budgets, now: float) -> bool:
    """Whether the run's wall-clock budget still has something in it. `now` is a `time.time()`."""
    return time_left(state, budgets, now) > 0


def llm_allowed(usage: Usage, budgets: Budgets, *, keep_calls: int = 0) -> bool:
    """Whether one more LLM call fits, `keep_calls` of them being set aside for later steps of the run."""
    return not llm_limits(usage, budgets, keep_calls=keep_calls)


def llm_limits(usage: Usage, budgets: Budgets, *, keep_calls: int = 0) -> list[str]:
    """The budgets that have no room for one more LLM call, `keep_calls` of them being set aside."""
    tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    full = {
        "llm_calls": usage.get("llm_calls", 0) + keep_calls >= budgets.llm_calls,
        "tokens": tokens >= budgets.tokens,
        "money": usage.get("cost", 0.0) > budgets.money,
    }
    return [name for name, spent in full.items() if spent]


def web_wanted(state: RAGState, context: RunContext) -> bool:
    """Whether policy and consent let the web be asked. Consent `ask` counts as possible here."""
    return context.web != "never" and context.web_consent != "no" and not state.get("web_denied", False)


def web_allowed(state: RAGState, context: RunContext) -> bool:
    """Whether policy, consent and budget let the web be asked."""
    spent = state.get("usage", {}).get("web_calls", 0)
    return web_wanted(state, context) and spent < context.budgets.web_calls


def web_tried(state: RAGState) -> bool:
    """Whether the web was a source of any search of this run, whatever came of it."""
    return any("web" in search["sources"] for search in state.get("passes", []))


def wider(state: RAGState, context: RunContext) -> int:
    """The width of the next search: twice as wide, up to the limit."""
    return min(2 * state.get("width", context.top_k), MAX_WIDTH)


def is_new(state: RAGState, search: Pass) -> bool:
    """Whether the documents were not searched yet for this query, as wide as this, in this run."""
    made = [earlier for earlier in state.get("passes", []) if "documents" in earlier["sources"]]
    return all((earlier["query"], earlier["width"]) != (search["query"], search["width"]) for earlier in made)


def drafted_before(state: RAGState) -> bool:
    """Whether a draft of this run was already made from exactly this context: evidence stands from earlier passes."""
    drafted = {block["chunk_id"] for block in state.get("evidence", []) if block["sentences"]}
    return bool(drafted) and drafted == {document["metadata"]["chunk_id"] for document in state.get("context", [])}


def remedies(
    state: RAGState, context: RunContext, *, web_reachable: bool, now: float, nobody_to_ask: bool = False
) -> Remedies:
    """What is left to try, and which spent budgets took something away that would be.

    A retry needs a retry left and a search not made yet. Every retry is a wider search, so that none repeats one even
    where its query could not be changed; at the limit of the width, with nothing new to ask, there is no retry.
    Escalating needs the web's permission and that it wasn't tried in this run; `web_reachable` says that there is a
    client, `nobody_to_ask` that a consent is needed which nobody can give.
    """
    same_but_wider = Pass(query=state.get("query", ""), width=wider(state, context), sources=["documents"])
    retry = state.get("retry_count", 0) < context.max_retries and is_new(state, same_but_wider)
    untried = web_reachable and not web_tried(state) and web_wanted(state, context)
    allowed = untried and web_allowed(state, context)
    escalate, unasked = allowed and not nobody_to_ask, allowed and nobody_to_ask
    limits: tuple[str, ...] = ("web_calls",) if untried and not allowed and not nobody_to_ask else ()
    if not seconds_left(state, context.budgets, now):
        limits = (*limits, "seconds") if retry or escalate else limits
        retry = escalate = False
    return Remedies(retry=retry, escalate=escalate, limits=limits, unasked=unasked)
