"""The table of reflection, row by row, and what holds over its whole product of inputs."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.decision import Decision, Remedies, decide
from leadline.state import Action, Evidence, Flag, Grounding, Status

NONE, RETRY, ESCALATE, BOTH = (Remedies(r, e) for e, r in product((False, True), repeat=2))
OTHERS: dict[str, list[Grounding]] = {
    "relevant": ["ungrounded", "no_answer", "not_attempted"],
    "unranked": ["ungrounded", "no_answer", "unverified", "not_attempted"],
    "nothing": ["grounded", "ungrounded", "no_answer", "unverified", "not_attempted"],
    "irrelevant": ["grounded", "ungrounded", "no_answer", "unverified", "not_attempted"],
}
EVIDENCE = st.sampled_from(get_args(Evidence))
GROUNDING = st.sampled_from(get_args(Grounding))
REMEDIES = st.builds(Remedies, st.booleans(), st.booleans())


def outcome(decision: Decision) -> tuple[Action, Status | None, tuple[Flag, ...]]:
    """The decision without its words."""
    return decision.action, decision.status, decision.flags


@pytest.mark.parametrize("evidence", get_args(Evidence))
def test_row_1_a_direct_reply_is_answered(evidence: Evidence) -> None:
    """Small talk needs no evidence and never goes to the web."""
    assert outcome(decide(evidence, "not_applicable", BOTH)) == ("finish", "answered", ())


def test_row_2_relevant_and_grounded_is_answered() -> None:
    """The good case ends the run though remedies are left."""
    assert outcome(decide("relevant", "grounded", BOTH)) == ("finish", "answered", ())


def test_row_3_relevant_but_unchecked_is_answered_with_a_flag() -> None:
    """A failed check is shown, never taken for support."""
    assert outcome(decide("relevant", "unverified", BOTH)) == ("finish", "answered", ("unverified",))


@pytest.mark.parametrize("grounding", OTHERS["relevant"])
def test_row_4_relevant_but_not_answered_retries_first(grounding: Grounding) -> None:
    """The documents hold it: another search comes before the web, abstaining last."""
    actions = [decide("relevant", grounding, remedies).action for remedies in (BOTH, RETRY, ESCALATE, NONE)]
    assert actions == ["retry", "retry", "escalate", "abstain"]


@pytest.mark.parametrize("grounding", OTHERS["irrelevant"])
def test_row_5_irrelevant_with_a_remedy_left_looks_elsewhere(grounding: Grounding) -> None:
    """Known to be irrelevant: the web first, then another search, even where the answer looks supported."""
    actions = [decide("irrelevant", grounding, remedies).action for remedies in (BOTH, RETRY, ESCALATE)]
    assert actions == ["escalate", "retry", "escalate"]


@pytest.mark.parametrize("grounding", OTHERS["irrelevant"])
def test_row_6_irrelevant_and_nothing_left(grounding: Grounding) -> None:
    """Only an answer that is supported word for word is given, flagged as weak."""
    weak = ("finish", "answered", ("weak_evidence",))
    expected = weak if grounding == "grounded" else ("abstain", "abstained", ())
    assert outcome(decide("irrelevant", grounding, NONE)) == expected


@given(GROUNDING, REMEDIES)
def test_a_kept_share_of_wrong_answers_allows_no_weak_ones(grounding: Grounding, remedies: Remedies) -> None:
    """Under `strict` an answer from irrelevant passages is none, and everything else is as before."""
    decision = decide("irrelevant", grounding, remedies, strict=True)
    before = decide("irrelevant", grounding, remedies)
    if grounding != "not_applicable" and before.status == "answered":
        assert outcome(decision) == ("abstain", "abstained", ())
    else:
        assert decision == before


def test_row_7_unranked_and_grounded_is_answered_with_a_flag() -> None:
    """Without a reranker a supported answer is given, and the loss is shown."""
    decision = decide("unranked", "grounded", BOTH)
    assert outcome(decision) == ("finish", "answered", ("unranked",))
    assert decision.degraded == ("reranker",)


@pytest.mark.parametrize("grounding", OTHERS["unranked"])
def test_row_8_unranked_and_not_supported_is_never_enough(grounding: Grounding) -> None:
    """Unranked evidence doesn't switch escalation off."""
    actions = [decide("unranked", grounding, remedies).action for remedies in (BOTH, RETRY, ESCALATE, NONE)]
    assert actions == ["escalate", "retry", "escalate", "abstain"]


@pytest.mark.parametrize("grounding", OTHERS["nothing"])
def test_row_9_nothing_found(grounding: Grounding) -> None:
    """An empty context goes to the web, then to a wider net, then abstains: no answer is made up."""
    actions = [decide("nothing", grounding, remedies).action for remedies in (BOTH, RETRY, ESCALATE, NONE)]
    assert actions == ["escalate", "retry", "escalate", "abstain"]


@given(EVIDENCE, GROUNDING, REMEDIES)
def test_all_legs_failed_is_an_error_and_a_broken_stream_is_interrupted(
    evidence: Evidence, grounding: Grounding, remedies: Remedies
) -> None:
    """Neither is ever an answer or an abstention."""
    assert decide(evidence, grounding, remedies, legs_failed=True).status == "error"
    assert outcome(decide(evidence, grounding, remedies, interrupted=True)) == ("finish", "interrupted", ())


@given(EVIDENCE, GROUNDING, REMEDIES, st.booleans(), st.booleans())
def test_always_a_legal_action_and_a_reason(
    evidence: Evidence, grounding: Grounding, remedies: Remedies, interrupted: bool, legs_failed: bool
) -> None:
    """Unavailable remedies are never chosen, a status stands exactly at the end, and the reason is a sentence."""
    decision = decide(evidence, grounding, remedies, interrupted=interrupted, legs_failed=legs_failed)
    assert decision.action in get_args(Action)
    assert decision.action != "retry" or remedies.retry
    assert decision.action != "escalate" or remedies.escalate
    assert (decision.status is None) == (decision.action in ("retry", "escalate"))
    assert (decision.action == "abstain") == (decision.status == "abstained")
    assert decision.reason.endswith(".")


@given(EVIDENCE, GROUNDING, REMEDIES)
def test_only_support_is_answered_without_a_flag(evidence: Evidence, grounding: Grounding, remedies: Remedies) -> None:
    """An unflagged answer has relevant evidence and a passed check, or needed none."""
    decision = decide(evidence, grounding, remedies)
    if decision.status == "answered" and not decision.flags:
        assert grounding == "not_applicable" or (evidence, grounding) == ("relevant", "grounded")
    if decision.status == "answered" and grounding != "not_applicable":
        assert evidence != "nothing"
        assert grounding == "grounded" or (evidence, grounding) == ("relevant", "unverified")


@given(
    st.integers(0, 8),
    st.booleans(),
    st.lists(st.tuples(EVIDENCE, GROUNDING), min_size=1, max_size=20),
)
def test_every_loop_ends(retries: int, web: bool, passes: list[tuple[Evidence, Grounding]]) -> None:
    """Whatever each pass brings, the remedies run out and the run ends."""
    decision: Decision | None = None
    for step in range(retries + web + 1):
        evidence, grounding = passes[step % len(passes)]
        decision = decide(evidence, grounding, Remedies(retry=retries > 0, escalate=web))
        if decision.status is not None:
            break
        retries -= decision.action == "retry"
        web = web and decision.action != "escalate"
    assert decision is not None
    assert decision.status is not None
