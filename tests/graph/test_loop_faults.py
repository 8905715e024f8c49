"""Faults of other loops that this one must not have: repeated drafts, judged greetings, evidence thrown away."""

from functools import partial
from typing import Any

from leadline.citations import AnswerCheck, MeaningByLikeness, check_answer

QUESTION = "When are roses pruned?"


async def test_no_draft_is_made_twice_from_the_same_passages(ask: Any, over: Any, garden: Any, scripted: Any) -> None:
    """A retry that brings nothing new ends in what was found about the first draft, though its search was another."""
    chat = scripted(["Roses need 700 gardeners [1]."], line="other words")
    run = await ask(over(garden, llm=chat), QUESTION, llm="x", web="never", max_retries=3)
    searches = [(search["query"], search["width"]) for search in run.state["passes"]]
    assert len(searches) == len(set(searches)) == 4
    assert run.ended.count("reasoning") == 1
    assert run.result["status"] == "abstained"


async def test_a_direct_reply_is_neither_judged_nor_searched_for(ask: Any, over: Any, garden: Any) -> None:
    """A greeting has no evidence and needs none: no retry, no web, no flag; the question after it is searched for."""
    run = await ask(over(garden), "Hello!", web="always", web_consent="yes")
    assert (run.result["verdict"]["grounding"], run.result["status"]) == ("not_applicable", "answered")
    assert (run.result["flags"], run.result["web_used"], run.state["retry_count"]) == ([], False, 0)
    assert "hybrid" not in run.ended
    assert (await ask(over(garden), QUESTION, web="never")).result["citations"]


async def test_a_later_pass_adds_to_what_the_first_found(ask: Any, over: Any, toy: Any) -> None:
    """Passages of every pass stand in the end, ranked together; none found before is lost by searching again."""
    notes = {f"{name}.md": f"{name} grows in the shade of the wall." for name in ("Ivy", "Fern", "Moss", "Hosta")}
    leg = toy(notes)
    run = await ask(over(leg), "Who won the chess tournament?", web="never", top_k=1, max_retries=2)
    assert [k for _, k in leg.asked if k > 2][-1:] == [4]
    first = run.result["record"]["passes"][0]
    assert (first["width"], len(run.result["record"]["passes"])) == (1, 3)
    assert len({row["chunk_id"] for row in run.result["context"]}) == 4


async def test_a_reranker_that_fails_is_never_taken_for_relevance(ask: Any, over: Any, garden: Any) -> None:
    """Nothing scored: a grounded answer says that it is unranked, any other ends in an abstention."""

    async def broken() -> Any:
        raise RuntimeError("no weights")

    good = await ask(over(garden, reranker=broken), QUESTION, web="never")
    assert (good.result["verdict"]["evidence"], good.result["flags"]) == ("unranked", ["unranked"])

    def no(answer: str, evidence: Any, question: str) -> AnswerCheck:
        return AnswerCheck(text=answer, citations=[], grounding="ungrounded", problems=[])

    bad = await ask(over(garden, reranker=broken, check=no), QUESTION, web="never")
    assert (bad.result["status"], bad.result["verdict"]["evidence"]) == ("abstained", "unranked")


async def test_nothing_found_is_never_taken_for_relevance(ask: Any, over: Any, toy: Any) -> None:
    """An empty collection: an abstention that says so."""
    run = await ask(over(toy({})), QUESTION, web="never")
    assert (run.result["status"], run.result["verdict"]["evidence"]) == ("abstained", "nothing")


class _BrokenScorer:
    """A sentence scorer with a fault of its own, not one that its maker foresaw."""

    def score_sentences(self, question: str, sentences: Any) -> list[float]:
        raise RuntimeError("scorer")


async def _broken_scorer() -> Any:
    return _BrokenScorer()


async def test_a_scorer_that_breaks_ends_no_run_in_an_exception(ask: Any, over: Any, garden: Any) -> None:
    """Without a scorer nothing is quoted: an abstention that names the part."""
    run = await ask(over(garden, sentence_scorer=_broken_scorer), QUESTION, web="never")
    assert (run.result["status"], run.result["degraded"]) == ("abstained", ["reranker"])


async def test_what_is_left_of_a_draft_answers_nothing_while_the_scorer_is_broken(
    ask: Any, over: Any, garden: Any, scripted: Any
) -> None:
    """A draft with an invented sentence is not shown, not even as unverified: nobody can tell if the rest answers."""
    chat = scripted(["Roses are pruned in early spring [1]. Roses need 700 gardeners [1]."])
    deps = over(garden, llm=chat, sentence_scorer=_broken_scorer)
    run = await ask(deps, QUESTION, llm="x", web="never", max_retries=0)
    assert (run.result["status"], run.result["verdict"]["grounding"]) == ("abstained", "ungrounded")
    assert run.result["degraded"] == ["reranker"]


async def test_a_check_of_meaning_that_breaks_leaves_the_answer_unverified(
    ask: Any, over: Any, garden: Any, scripted: Any
) -> None:
    """Other words that nothing can compare: the answer is flagged, no citation is verified, the part named."""

    def broken(sentence: str, places: Any) -> Any:
        raise RuntimeError("likeness")

    check = partial(check_answer, meaning=MeaningByLikeness(broken))
    chat = scripted(["Roses get cut down to size when frost ends and spring is about [1]."])
    run = await ask(over(garden, llm=chat, check=check), QUESTION, llm="x", web="never")
    assert (run.result["verdict"]["grounding"], run.result["flags"]) == ("unverified", ["unverified"])
    assert run.result["degraded"] == ["critic"]
    assert not any(citation["verified"] for citation in run.result["citations"])
