"""The reflection node: what it gathers for the decision, and what it does with it."""

from functools import partial
from typing import Any

import pytest

from leadline.errors import ChatFailed
from leadline.nodes.allowance import remedies
from leadline.nodes.checking import check_draft
from leadline.nodes.outcome import Facts
from leadline.nodes.reflection import reflection

ANSWER = "The vault code is 7719. [1]"


async def facts() -> Facts:
    """Facts of an installation."""
    return Facts(models={"embedder": "e", "reranker": "r"}, generation=7)


def opens(model: Any) -> Any:
    """Opens `model`, whatever its name."""

    async def open_chat(name: str) -> Any:
        return model

    return open_chat


def raises(*_: Any) -> Any:
    """A check that breaks."""
    raise KeyError("grounded")


@pytest.fixture
def reflect(bench: Any) -> Any:
    """Runs the node with the real check, and no web unless it is said."""
    from leadline.citations import check_answer

    async def run(state: Any, *, check: Any = check_answer, chat: Any = None, web: Any = False, **knobs: Any) -> Any:
        return await reflection(
            state,
            bench.runtime(**knobs),
            check=partial(check_draft, check=check, chat=opens(chat), sentence_scorer=None),
            chat=opens(chat),
            facts=facts,
            left=lambda state, context: remedies(
                state, context, web_reachable=bool(web), now=2.0, nobody_to_ask=web == "unasked"
            ),
        )

    return run


@pytest.fixture
def drafted(passage: Any) -> Any:
    """A run with a draft from one passage of this logit."""

    def make(answer: str = ANSWER, logit: float = 1.0, **more: Any) -> Any:
        text = "The vault code is 7719. It was set in May."
        document = {**passage(text, "a"), "rerank_score": logit}
        block = {"n": 1, "chunk_id": "a", "sentences": [(0, 23, text[:23]), (24, 42, text[24:])], "document": document}
        search = {"query": "What is the vault code?", "width": 10, "sources": ["documents"]}
        return {
            "question": "What is the vault code?",
            "query": "What is the vault code?",
            "queries": ["What is the vault code?"],
            "route": "search",
            "width": 10,
            "passes": [search],
            "candidates": {"bm25": [document]},
            "documents": [document],
            "context": [document],
            "evidence": [block],
            "answer": answer,
            "draft_status": "complete",
            "retry_count": 0,
            "started_at": 0.0,
            "degraded": [],
            "usage": {},
            "messages": [],
            **more,
        }

    return make


async def test_a_grounded_answer_is_the_result(bench: Any, reflect: Any, drafted: Any, applied: Any) -> None:
    """The whole result, a message, one event per citation, and no passage left in the state."""
    state = drafted()
    after = applied(state, await reflect(state))
    result = after["result"]
    assert (result["status"], result["answer"], result["flags"]) == ("answered", ANSWER, [])
    assert result["citations"][0]["quote"] in state["documents"][0]["content"]
    assert result["citations"][0]["verified"]
    assert result["context"][0]["kept"]
    assert result["generation"] == 7
    assert result["usage"]["seconds"] > 0
    assert result["models"] == {"embedder": "e", "reranker": "r", "llm": "extractive"}
    assert [message.text for message in after["messages"]] == [ANSWER]
    assert len(bench.of("citation")) == len(result["citations"])
    assert not any(after[key] for key in ("candidates", "documents", "context", "evidence", "scores"))
    assert bench.of("retract") == []


async def test_an_unsupported_answer_is_retracted_and_tried_again(
    bench: Any, reflect: Any, drafted: Any, applied: Any
) -> None:
    """The retry changes the query and the width, counts, and clears the draft but not what was found."""
    state = drafted("The vault code is 1234. [1]")
    after = applied(state, await reflect(state))
    assert after["verdict"]["action"] == "retry"
    assert after["retry_count"] == 1
    assert after["passes"][1] not in after["passes"][:1]
    assert after["width"] == 20
    assert (after["answer"], after["draft_status"], after["candidates"]) == ("", "none", {})
    assert after["documents"]
    assert after["evidence"]
    assert len(bench.of("retract")) == len(bench.of("retry")) == 1
    assert "result" not in after


async def test_a_query_by_rule_never_judges(reflect: Any, drafted: Any, applied: Any) -> None:
    """It holds words of the passages, so they would all answer it."""
    state = drafted("", logit=-1.0)
    after = applied(state, await reflect(state))
    assert after["query"] != state["query"]
    assert after["queries"] == state["queries"]


async def test_an_llm_rewrites_and_its_query_judges_too(
    reflect: Any, drafted: Any, applied: Any, scripted: Any
) -> None:
    """The LLM's query is searched for and scored against; the call is counted."""
    model = scripted(['"combination of the safe"\n'])
    state = drafted("", logit=-1.0)
    after = applied(state, await reflect(state, chat=model, llm="x"))
    assert after["query"] == "combination of the safe"
    assert after["queries"] == ["What is the vault code?", "combination of the safe"]
    assert after["usage"]["llm_calls"] == 1


async def test_a_failing_rewriter_leaves_the_rule(reflect: Any, drafted: Any, applied: Any, scripted: Any) -> None:
    """The retry goes on by rule, and says so."""
    state = drafted("", logit=-1.0)
    after = applied(state, await reflect(state, chat=scripted(error=ChatFailed("503")), llm="x"))
    assert after["verdict"]["action"] == "retry"
    assert after["degraded"] == ["rewriter"]


async def test_irrelevant_evidence_escalates_first(bench: Any, reflect: Any, drafted: Any, applied: Any) -> None:
    """The web costs no retry; its query is the question itself."""
    state = drafted("", logit=-1.0, draft_status="none", query="other words")
    after = applied(state, await reflect(state, web=True))
    assert after["verdict"]["action"] == "escalate"
    assert after["passes"][-1]["sources"] == ["web"]
    assert after["retry_count"] == 0
    assert [event["query"] for event in bench.of("escalate")] == ["What is the vault code?"]


async def test_a_pass_that_brought_nothing_new_stands_as_its_draft_did(
    reflect: Any, drafted: Any, applied: Any
) -> None:
    """No second draft is made from the same passages; what was found about the first one is what is said."""
    earlier = {"evidence": "relevant", "grounding": "no_answer", "action": "retry", "reason": ""}
    state = drafted("", draft_status="none", retry_count=2, verdict=earlier)
    after = applied(state, await reflect(state))
    assert after["result"]["status"] == "abstained"
    assert after["verdict"]["grounding"] == "no_answer"
    for other in ({"verdict": {**earlier, "grounding": "grounded"}}, {"evidence": []}):
        after = applied(state, await reflect({**state, **other}))
        assert after["verdict"]["grounding"] == "not_attempted"


async def test_abstaining_names_the_nearest_files(reflect: Any, drafted: Any, applied: Any) -> None:
    """Nothing left to try: a status of its own, no citation, the nearest files named."""
    state = drafted("", logit=-1.0, retry_count=2)
    after = applied(state, await reflect(state))
    assert after["result"]["status"] == "abstained"
    assert after["result"]["citations"] == []
    assert "a.md" in after["result"]["answer"]
    assert after["messages"][-1].text == after["result"]["answer"]


async def test_an_abstention_that_a_yes_might_help_tells_the_query(
    bench: Any, reflect: Any, drafted: Any, applied: Any
) -> None:
    """Nobody can be asked: what would have gone to the web is told, once, and only where there is no good answer."""
    after = applied({}, await reflect(drafted("", logit=-1.0, retry_count=2), web="unasked"))
    assert after["result"]["status"] == "abstained"
    asked = [(event["query"], event["granted"]) for event in bench.of("consent")]
    assert asked == [("What is the vault code?", False)]
    after = applied({}, await reflect(drafted(), web="unasked"))
    assert after["result"]["status"] == "answered"
    assert len(bench.of("consent")) == 1


async def test_a_check_that_breaks_is_unverified(bench: Any, reflect: Any, drafted: Any, applied: Any) -> None:
    """Never grounded: the answer carries a flag and `degraded` names the critic."""
    after = applied({}, await reflect(drafted(), check=raises))
    assert after["result"]["verdict"]["grounding"] == "unverified"
    assert after["result"]["flags"] == ["unverified"]
    assert after["result"]["degraded"] == ["critic"]


async def test_an_interrupted_draft_is_no_answer(bench: Any, reflect: Any, drafted: Any, applied: Any) -> None:
    """Not shown as an answer, not cited, not said in the conversation."""
    state = drafted(draft_status="interrupted")
    after = applied(state, await reflect(state))
    assert after["result"]["status"] == "interrupted"
    assert (after["result"]["answer"], after["result"]["citations"], after["messages"]) == ("", [], [])
    assert len(bench.of("retract")) == 1


async def test_all_legs_failed_is_an_error(reflect: Any, drafted: Any, applied: Any) -> None:
    """Not the same as having found nothing."""
    state = drafted("", documents=[], context=[], evidence=[], candidates={}, draft_status="none", degraded=["bm25"])
    after = applied(state, await reflect(state))
    assert after["result"]["status"] == "error"
    assert "bm25" in after["result"]["error"]["message"]
    found_nothing = {**state, "candidates": {"bm25": []}, "retry_count": 2}
    assert applied(state, await reflect(found_nothing))["result"]["status"] == "abstained"


async def test_unranked_evidence_needs_grounding_and_says_so(reflect: Any, drafted: Any, applied: Any) -> None:
    """A reranker that failed never counts as relevant evidence."""
    state = drafted(logit=0.0)
    result = applied(state, await reflect(state))["result"]
    assert (result["status"], result["flags"], result["degraded"]) == ("answered", ["unranked"], ["reranker"])
    state = drafted("", logit=0.0, retry_count=2)
    assert applied(state, await reflect(state))["result"]["status"] == "abstained"


async def test_small_talk_needs_no_evidence(reflect: Any, applied: Any) -> None:
    """A direct reply is answered as it is."""
    state: Any = {
        "question": "Hello!",
        "route": "direct",
        "answer": "Hi.",
        "draft_status": "complete",
        "started_at": 0.0,
    }
    result = applied(state, await reflect(state))["result"]
    assert (result["status"], result["verdict"]["grounding"], result["answer"]) == ("answered", "not_applicable", "Hi.")
