"""What reflection does next: a pure function of the evidence's sign, the answer's check and the remedies left.

Knows neither budgets nor documents: whoever calls says which remedies are still available.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.records import Action, Evidence, Flag, Grounding, Status


@dataclass(frozen=True, slots=True)
class Remedies:
    """What can still be tried: `retry` with a changed query, width or source; `escalate` to the web.

    `limits` names the spent budgets that took one of them away. `unasked`: the web is left, but for a consent that
    nobody is there to give.
    """

    retry: bool
    escalate: bool
    limits: tuple[str, ...] = ()
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """`status` is None while the run goes on (retry, escalate). `reason` is a sentence for people."""

    action: Action
    status: Status | None
    flags: tuple[Flag, ...]
    degraded: tuple[str, ...]
    reason: str


def decide(
    evidence: Evidence,
    grounding: Grounding,
    remedies: Remedies,
    *,
    interrupted: bool = False,
    legs_failed: bool = False,
    strict: bool = False,
) -> Decision:
    """The first row of the table that fits.

    `legs_failed`: every leg failed, which is not the same as finding nothing. `interrupted`: the answer's stream
    broke. Both end the run. `strict`: nothing is answered from irrelevant passages, grounded or not. Unranked and
    missing evidence never count as relevant, a failed check never as grounded.
    """
    if legs_failed:
        return _finish("error", "Every search failed, so nothing is known about the question.")
    if interrupted:
        return _finish("interrupted", "The answer broke off before its end.")
    if grounding == "not_applicable":
        return _finish("answered", "A direct reply needs no evidence.")
    match evidence:
        case "relevant":
            return _on_relevant(grounding, remedies)
        case "irrelevant":
            return _on_irrelevant(grounding, remedies, strict=strict)
        case "unranked":
            return _on_unranked(grounding, remedies)
        case "nothing":
            return _remedy(("escalate", "retry"), remedies, "Nothing was found")


def _on_relevant(grounding: Grounding, remedies: Remedies) -> Decision:
    if grounding == "grounded":
        return _finish("answered", "The passages are relevant and every sentence is supported by them.")
    if grounding == "unverified":
        return _finish("answered", "The passages are relevant, but the answer could not be checked.", "unverified")
    return _remedy(("retry", "escalate"), remedies, f"The passages are relevant, but {_ANSWER[grounding]}")


def _on_irrelevant(grounding: Grounding, remedies: Remedies, *, strict: bool) -> Decision:
    if not (remedies.retry or remedies.escalate) and grounding == "grounded" and not strict:
        reason = "The passages score as irrelevant, yet every sentence is supported by them."
        return _finish("answered", reason, "weak_evidence")
    return _remedy(("escalate", "retry"), remedies, "The passages found don't hold the answer")


def _on_unranked(grounding: Grounding, remedies: Remedies) -> Decision:
    if grounding == "grounded":
        reason = "The passages could not be ranked, but every sentence is supported by them."
        return Decision("finish", "answered", ("unranked",), ("reranker",), reason)
    return _remedy(("escalate", "retry"), remedies, f"The passages could not be ranked, and {_ANSWER[grounding]}")


_ANSWER: dict[Grounding, str] = {
    "grounded": "every sentence is supported by them",
    "ungrounded": "the answer says more than they do",
    "no_answer": "no answer could be made from them",
    "unverified": "the answer could not be checked",
    "not_attempted": "no answer was tried",
    "not_applicable": "no evidence is needed",
}


def _remedy(order: tuple[Action, Action], remedies: Remedies, found: str) -> Decision:
    available = {"retry": remedies.retry, "escalate": remedies.escalate}
    for action in order:
        if available[action]:
            then = "trying a changed search" if action == "retry" else "trying the web"
            return Decision(action, None, (), (), f"{found}: {then}.")
    return Decision("abstain", "abstained", (), (), f"{found}, and nothing is left to try.")


def told(limits: Sequence[str]) -> str:
    """What to add to a reason for people where budgets ended a run; "" where none did."""
    if not limits:
        return ""
    *before, last = (limit.replace("_", " ") for limit in limits)
    return f" The run's budget of {' and '.join(filter(None, [', '.join(before), last]))} is spent."


def _finish(status: Status, reason: str, *flags: Flag) -> Decision:
    return Decision("finish", status, flags, (), reason)
