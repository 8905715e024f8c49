"""What a run may still do, by its budgets and the searches it made."""

from typing import Any

import pytest

from leadline.config import Budgets, RunContext
from leadline.decision import Remedies
from leadline.nodes.allowance import MAX_WIDTH, llm_allowed, remedies

RUN: Any = {"started_at": 100.0, "query": "q", "width": 10, "retry_count": 0, "passes": []}


def left(
    state: Any = None, *, web_reachable: bool = True, nobody: bool = False, now: float = 101.0, **knobs: Any
) -> Remedies:
    """The remedies of a run in this state."""
    context = RunContext(**knobs)
    return remedies({**RUN, **(state or {})}, context, web_reachable=web_reachable, now=now, nobody_to_ask=nobody)


def test_a_fresh_run_has_both() -> None:
    """Nothing spent: retry and escalate."""
    assert left() == Remedies(retry=True, escalate=True)


@pytest.mark.parametrize(
    ("state", "knobs", "limits"),
    [
        ({}, {"web": "never"}, ()),
        ({}, {"web_consent": "no"}, ()),
        ({}, {"web_reachable": False}, ()),
        ({"passes": [{"query": "q", "width": 10, "sources": ["web"]}]}, {}, ()),
        ({"web_denied": True}, {}, ()),
        ({"usage": {"web_calls": 2}}, {}, ("web_calls",)),
        ({}, {"budgets": Budgets(web_calls=0)}, ("web_calls",)),
        ({}, {"budgets": Budgets(web_calls=0), "web": "never"}, ()),
    ],
)
def test_the_web_is_closed_by_policy_consent_use_or_budget(state: Any, knobs: Any, limits: Any) -> None:
    """Each of them takes escalating away, and nothing else; the budget is named only where it is what stands there."""
    assert left(state, **knobs) == Remedies(retry=True, escalate=False, limits=limits)


@pytest.mark.parametrize(
    ("knobs", "unasked"),
    [
        ({}, True),
        ({"now": 500.0}, True),
        ({"web": "never"}, False),
        ({"web_reachable": False}, False),
        ({"budgets": Budgets(web_calls=0)}, False),
    ],
)
def test_a_web_that_only_waits_for_a_yes_is_told_apart(knobs: Any, unasked: bool) -> None:
    """Nobody can be asked, and all else allows it: the web is no remedy, but a yes would make it one."""
    remedies = left(nobody=True, **knobs)
    assert (remedies.escalate, remedies.unasked) == (False, unasked)


@pytest.mark.parametrize(
    ("state", "knobs"),
    [
        ({"retry_count": 2}, {}),
        ({}, {"max_retries": 0}),
        ({"width": MAX_WIDTH, "passes": [{"query": "q", "width": MAX_WIDTH, "sources": ["documents"]}]}, {}),
        (
            {
                "width": MAX_WIDTH,
                "passes": [{"query": "q", "width": MAX_WIDTH, "sources": ["documents"], "hops": ["Dana"]}],
            },
            {},
        ),
    ],
)
def test_no_retry_without_a_retry_left_or_a_search_not_made(state: Any, knobs: Any) -> None:
    """A retry that would repeat a search is none."""
    assert left(state, **knobs) == Remedies(retry=False, escalate=True)


def test_a_search_beside_the_web_is_a_search_of_the_documents() -> None:
    """Made once, it is not made again without the web."""
    made = {"query": "q", "width": MAX_WIDTH, "sources": ["documents", "web"]}
    assert left({"width": MAX_WIDTH, "passes": [made]}) == Remedies(retry=False, escalate=False)


def test_spent_time_takes_every_remedy() -> None:
    """Both need time, and it is named unless neither was left anyway."""
    assert left(now=500.0) == Remedies(retry=False, escalate=False, limits=("seconds",))
    assert left(now=500.0, max_retries=0, web="never") == Remedies(retry=False, escalate=False)


@pytest.mark.parametrize(
    ("usage", "allowed"),
    [
        ({}, True),
        ({"llm_calls": 12}, False),
        ({"llm_calls": 11}, True),
        ({"prompt_tokens": 59_000, "completion_tokens": 1_000}, False),
        ({"cost": 1.01}, False),
    ],
)
def test_an_llm_call_must_fit_every_budget(usage: Any, allowed: bool) -> None:
    """Calls, tokens and money each can be spent."""
    assert llm_allowed(usage, Budgets()) is allowed


def test_calls_can_be_set_aside() -> None:
    """The last call is kept for the answer."""
    assert not llm_allowed({"llm_calls": 11}, Budgets(), keep_calls=1)
