"""The check of a draft before it is final: by rule and meaning, mended once, without what no passage says.

Knows the order: check, one rewriting of the sentences that fail, the critic where the run wants one, and what is left
out in the end. Every text that comes out of it was checked as it stands. Doesn't decide what the run does next.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from langgraph.runtime import Runtime

from leadline.citations import AnswerCheck, Claim, Problem, rewritten, without
from leadline.config import RunContext
from leadline.deadline import within
from leadline.errors import ModelError
from leadline.nodes.allowance import llm_limits, seconds_left
from leadline.nodes.asking import OpenChat, usage_of_failure
from leadline.nodes.critic import ask_to_judge, ask_to_rewrite
from leadline.nodes.extractive import SentenceScorer
from leadline.nodes.progress import degrade
from leadline.nodes.translated import only_meaning_is_open
from leadline.state import EvidenceBlock, Grounding, RAGState, Usage, add_usage, merge_unique

# One call more than the critic's own: its reply may need a repair.
_REPAIR_CALLS = 1
_LEFT_OPEN = (
    "It is in another language than its passages: figures and names agree, what it says of them is not checked."
)
CHECK_TIMEOUT_S = 30.0  # one check by rule takes milliseconds


class CheckAnswer(Protocol):
    """Checks each sentence of an answer against the spans it cites."""

    def __call__(self, answer: str, evidence: Sequence[EvidenceBlock], question: str) -> AnswerCheck: ...


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """The draft after its check. `changes` says for people what was rewritten or left out, "" for nothing.

    `left_open` says what could not be checked of a draft that no rule speaks against. `limits` names the budgets that
    kept the LLM from being asked.
    """

    check: AnswerCheck
    grounding: Grounding
    changes: str = ""
    usage: Usage = field(default_factory=Usage)
    degraded: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    left_open: str = ""


class CheckDraft(Protocol):
    """`check_draft` with all it depends on."""

    async def __call__(self, state: RAGState, runtime: Runtime[RunContext], /) -> CheckedDraft: ...


@dataclass(slots=True)
class _Checking:
    """One draft on its way through the check, and what that has cost."""

    state: RAGState
    runtime: Runtime[RunContext]
    check: CheckAnswer
    chat: OpenChat
    scorer: Callable[[], Awaitable[SentenceScorer]] | None
    evidence: list[EvidenceBlock]
    usage: Usage = field(default_factory=Usage)
    degraded: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    @property
    def question(self) -> str:
        return self.state["question"]

    async def checked(self, text: str) -> AnswerCheck:
        work = asyncio.to_thread(self.check, text, self.evidence, self.question)
        return await within(CHECK_TIMEOUT_S, work, "The check of the answer")

    def may_ask(self, *, keep_calls: int = 0) -> bool:
        """Whether the LLM wrote all of the draft and the run's budgets have room for one more call of it.

        Budgets that have none are noted.
        """
        spent, budgets = add_usage(self.state.get("usage", {}), self.usage), self.runtime.context.budgets
        written = self.state.get("draft_status") == "complete" and "llm" not in self.state.get("degraded", [])
        if not self.runtime.context.llm or not written:
            return False
        over = [] if seconds_left(self.state, budgets, time.time()) else ["seconds"]
        spent_up = [*llm_limits(spent, budgets, keep_calls=keep_calls), *over]
        self.limits = merge_unique(self.limits, spent_up)
        return not spent_up

    def spend(self, usage: Usage) -> None:
        self.usage = add_usage(self.usage, usage)


async def check_draft(
    state: RAGState,
    runtime: Runtime[RunContext],
    *,
    check: CheckAnswer,
    chat: OpenChat,
    sentence_scorer: Callable[[], Awaitable[SentenceScorer]] | None,
) -> CheckedDraft:
    """Checks the draft of a complete run's pass. Raises what `check` raises: the draft is unverified then.

    Ungrounded: what is left would be no answer, or the rest no answer to the question. Of one in another language than
    its passages only the meaning may be open: unverified. An LLM is asked at most twice,
    within the run's budgets: to rewrite failing sentences, and as the critic; a critic that fails, or that may not be
    asked any more, leaves the draft unverified.
    """
    evidence = [block for block in state.get("evidence", []) if block["sentences"]]
    at = _Checking(state, runtime, check, chat, sentence_scorer, evidence)
    found = await at.checked(state["answer"])
    if found.grounding == "no_answer":
        return CheckedDraft(found, "no_answer")
    if found.grounding == "ungrounded" and await asyncio.to_thread(_is_translation, at, found):
        return CheckedDraft(found, "unverified", left_open=_LEFT_OPEN)
    mended, count = await _mended(at, found)
    judged = await _judged(at, mended)
    kept, left_out = await _without_faults(at, judged or mended)
    grounding = kept.grounding
    if (count or left_out) and grounding == "grounded" and not await _answers(at, kept):
        kept, grounding, count, left_out = found, "ungrounded", 0, 0
    if judged is None and grounding == "grounded":
        grounding = "unverified"
    changed = _told(count, left_out) if grounding in ("grounded", "unverified") else ""
    return CheckedDraft(kept, grounding, changed, at.usage, at.degraded, at.limits)


def _is_translation(at: _Checking, found: AnswerCheck) -> bool:
    return only_meaning_is_open(found.text, at.evidence, at.question)


async def _mended(at: _Checking, found: AnswerCheck) -> tuple[AnswerCheck, int]:
    """The draft with its failing sentences rewritten once, and how many of them pass then."""
    failed = [claim for claim in found.claims if not claim.verified]
    if not failed or not at.may_ask(keep_calls=2 if at.runtime.context.critic else 0):
        return found, 0
    try:
        model = await at.chat(at.runtime.context.llm or "")
        sentences, usage = await ask_to_rewrite(at.runtime, model, failed, at.evidence, at.question)
    except ModelError as error:
        at.spend(usage_of_failure(error))
        at.degraded.append(degrade(at.runtime, "repair", error))
        return found, 0
    at.spend(usage)
    better = {claim: text for claim, text in sentences.items() if text and await _passes(at, text)}
    if not better:
        return found, 0
    return await at.checked(rewritten(found.text, better)), len(better)


async def _passes(at: _Checking, sentence: str) -> bool:
    return (await at.checked(sentence)).grounding == "grounded"


async def _judged(at: _Checking, found: AnswerCheck) -> AnswerCheck | None:
    """The same check with the critic's faults in it; None where a critic is wanted and gave no verdict."""
    if not at.runtime.context.critic or not at.runtime.context.llm:
        return found
    passing = [claim for claim in found.claims if claim.verified]
    if not passing:
        return found
    if not at.may_ask(keep_calls=_REPAIR_CALLS):
        at.degraded.append(degrade(at.runtime, "critic", ModelError("The run's budget for the LLM is spent.")))
        return None
    try:
        model = await at.chat(at.runtime.context.llm)
        faults, usage = await ask_to_judge(at.runtime, model, passing, at.evidence, at.question)
    except ModelError as error:
        at.spend(usage_of_failure(error))
        at.degraded.append(degrade(at.runtime, "critic", error))
        return None
    at.spend(usage)
    claims = tuple(_with_fault(claim, faults[claim]) if claim in faults else claim for claim in found.claims)
    grounded = all(claim.verified for claim in claims)
    return replace(found, claims=claims, grounding="grounded" if grounded else "ungrounded")


def _with_fault(claim: Claim, fault: str) -> Claim:
    problem = Problem("critic", fault, claim.text)
    return replace(claim, verified=False, problems=(*claim.problems, problem))


async def _without_faults(at: _Checking, found: AnswerCheck) -> tuple[AnswerCheck, int]:
    """The check of what is left without the sentences that fail, and how many those are; unchanged if nothing is."""
    failed = [claim for claim in found.claims if not claim.verified]
    if not failed or len(failed) == len(found.claims):
        return found, 0
    kept = await at.checked(without(found.text, found.claims, failed))
    if kept.grounding != "grounded":
        return found, 0
    return kept, len(found.claims) - len(kept.claims)


async def _answers(at: _Checking, found: AnswerCheck) -> bool:
    """Whether a sentence of what is left bears on the question: a true remark beside it is no answer."""
    if at.scorer is None:
        return False
    try:
        scorer = await at.scorer()
        texts = [claim.text for claim in found.claims]
        return max(await asyncio.to_thread(scorer.score_sentences, at.question, texts)) > 0
    except Exception as error:  # noqa: BLE001 a named degrade point: what isn't known to answer is no answer
        at.degraded.append(degrade(at.runtime, "reranker", error))
        return False


def _told(rewritten_count: int, left_out: int) -> str:
    done = [(rewritten_count, "rewritten"), (left_out, "left out")]
    parts = " and ".join(f"{_sentences(count)} {what}" for count, what in done if count)
    return f"{parts[0].upper()}{parts[1:]}: no passage says what the draft said." if parts else ""


def _sentences(count: int) -> str:
    return "one sentence was" if count == 1 else f"{count} sentences were"
