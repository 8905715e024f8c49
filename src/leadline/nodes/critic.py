"""What an LLM is asked about an answer's sentences: to rewrite those that fail, and, where wished, to judge all.

Knows the two prompts and how their replies are read. Both see exactly the numbered evidence that the writer saw.
Decides nothing: a rewritten sentence is checked like any other, a judgement that is no valid one is an error.
"""

import re
from collections.abc import Sequence

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from leadline.citations import Claim
from leadline.config import RunContext
from leadline.errors import ChatFailed, ChatInterrupted
from leadline.models.base import ChatModel, ChatUsage
from leadline.nodes.asking import CUT_SHORT, refuse_too_long, show_prompt, usage_of
from leadline.prompts import format_evidence, harmless, render
from leadline.state import EvidenceBlock, Usage

# Of an answer with more faults than this the worst is not worth mending: the rest is left out.
MAX_REWRITTEN = 4
# A judgement has some forty tokens, a sentence seldom a hundred.
REPLY_TOKENS = 200
TOKENS_A_SENTENCE = 100
_LINE = re.compile(r"^[^\w\n]{0,4}(\d{1,2})[^\w\n]{0,2}[:.)][*_]{0,2}[ \t]*+(\S.*)$", re.MULTILINE)
_DROP = re.compile(r"\W*(?:drop|no[ _]answer)\b\W*", re.IGNORECASE)
_WRONG = {
    "number": "this figure is not in the passage: {what}",
    "date": "this date is not in the passage: {what}",
    "name": "this name is not in the passage: {what}",
    "negation": "the passage says the opposite about: {what}",
    "opposite": "the passage has another word in the place of: {what}",
    "quotation": "these words are not quoted from the passage: {what}",
    "coverage": "the passage does not say this: {what}",
    "unknown_source": "no passage has this number: {what}",
    "critic": "a reader found: {what}",
}


class SentenceJudgement(BaseModel):
    """The judgement on one sentence."""

    model_config = ConfigDict(extra="forbid")

    n: int = Field(description="The number of the sentence.")
    supported: bool
    reason: str = Field(max_length=1000)


class Judgement(BaseModel):
    """One judgement for each sentence."""

    model_config = ConfigDict(extra="forbid")

    sentences: list[SentenceJudgement]


async def ask_to_rewrite(
    runtime: Runtime[RunContext],
    model: ChatModel,
    failed: Sequence[Claim],
    evidence: Sequence[EvidenceBlock],
    question: str,
) -> tuple[dict[Claim, str], Usage]:
    """A sentence for each of the first failed ones, empty where the LLM gives none, in one call. Raises ModelError."""
    asked = list(failed)[:MAX_REWRITTEN]
    messages = render(
        "repair",
        evidence=format_evidence(evidence),
        question=harmless(question),
        sentences=harmless("\n".join(f"{n}: {c.text} (wrong: {_wrong(c)})" for n, c in enumerate(asked, start=1))),
    )
    await refuse_too_long(model, messages)
    show_prompt(runtime, "reflection", model, messages)
    reply, spent = "", ChatUsage()
    async for delta in model.stream(messages, max_tokens=_room(asked)):
        reply = delta.text if delta.restart else reply + delta.text
        spent = delta.usage if delta.finish_reason else spent
        if delta.finish_reason in CUT_SHORT:
            raise ChatInterrupted(f"{model.name} was cut off: {delta.finish_reason}.", usage=usage_of(spent))
    lines = {int(n): line.strip() for n, line in reversed(_LINE.findall(reply))}
    found = {claim: lines.get(n, "") for n, claim in enumerate(asked, start=1)}
    return {claim: "" if _DROP.fullmatch(line) else line for claim, line in found.items()}, usage_of(spent)


async def ask_to_judge(
    runtime: Runtime[RunContext],
    model: ChatModel,
    claims: Sequence[Claim],
    evidence: Sequence[EvidenceBlock],
    question: str,
) -> tuple[dict[Claim, str], Usage]:
    """What is wrong with each sentence that the LLM doesn't find supported. Raises ModelError.

    A reply that doesn't judge every sentence exactly once is an error: silence is no approval.
    """
    messages = render(
        "critic",
        evidence=format_evidence(evidence),
        question=harmless(question),
        sentences=harmless("\n".join(f"{n}: {claim.text}" for n, claim in enumerate(claims, start=1))),
    )
    await refuse_too_long(model, messages)
    show_prompt(runtime, "reflection", model, messages)
    judged, spent = await model.structured(messages, Judgement, max_tokens=_room(claims))
    if sorted(row.n for row in judged.sentences) != [*range(1, len(claims) + 1)]:
        raise ChatFailed(f"{model.name} did not judge every sentence once.", usage=usage_of(spent))
    faults = {row.n: row.reason or "not supported" for row in judged.sentences if not row.supported}
    return {claim: faults[n] for n, claim in enumerate(claims, start=1) if n in faults}, usage_of(spent)


def _room(claims: Sequence[Claim]) -> int:
    return REPLY_TOKENS + TOKENS_A_SENTENCE * len(claims)


def _wrong(claim: Claim) -> str:
    return "; ".join(_WRONG[problem.kind].format(what=problem.what) for problem in claim.problems)
