"""The whole graph with the real web client, against a search engine on this machine."""

from typing import Any

import pytest

from leadline.web import DdgsSearch

QUESTION = "What is the capital of France?"
PARIS = ("France", "https://example.org/france", "Paris is the capital of France.")
# The client compiles its parser's patterns with flags that newer versions of Python advise against.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


async def test_a_page_answers_what_the_documents_do_not(ask: Any, over: Any, garden: Any, search_server: Any) -> None:
    """With consent, the question goes out as it is, once, and the answer cites the page as a page of the web."""
    search_server.results = [PARIS]
    run = await ask(over(garden, search=DdgsSearch(timeout_s=5)), QUESTION, web_consent="yes")
    assert search_server.queries == [QUESTION]
    assert run.result["status"] == "answered"
    [citation] = run.result["citations"]
    assert (citation["source_type"], citation["url"]) == ("web", "https://example.org/france")
    assert run.result["usage"]["web_calls"] == 1


async def test_a_web_that_refuses_is_degraded_not_fatal(ask: Any, over: Any, garden: Any, search_server: Any) -> None:
    """A rate limit on the first query: the run goes on without the web, and says so."""
    search_server.statuses = [429, 429, 429, 429]
    run = await ask(
        over(garden, search=DdgsSearch(timeout_s=5)), "When are roses pruned?", web="always", web_consent="yes"
    )
    assert run.result["status"] == "answered"
    assert run.result["web_used"]


async def test_no_word_of_a_document_leaves_the_machine(ask: Any, over: Any, toy: Any, search_server: Any) -> None:
    """Whatever the retries put into their queries, the web gets the question alone."""
    private = toy({"ward.md": "Patient Orla Quist, ref 8841, was moved to ward 3."})
    run = await ask(over(private, search=DdgsSearch(timeout_s=5)), QUESTION, web_consent="yes", web="always")
    assert set(search_server.queries) == {QUESTION}
    assert any("Quist" in query for query in run.result["queries"])
