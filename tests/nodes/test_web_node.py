"""The web node: nothing leaves without policy and consent, and then only the question."""

from dataclasses import dataclass, field
from typing import Any

from leadline.errors import WebUnavailable
from leadline.nodes.web import web
from leadline.web import WebResult

QUESTION = "What is the capital of France?"
# The query of a retry holds words of private documents.
STATE: Any = {"question": QUESTION, "query": "capital France Orla Quist 8841"}


@dataclass
class Engine:
    """A search engine that remembers what it was asked."""

    results: list[WebResult] = field(default_factory=list)
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    async def search(self, query: str, *, k: int) -> list[WebResult]:
        self.asked.append(query)
        if self.error:
            raise self.error
        return self.results[:k]


PARIS = WebResult(
    title="France", url="https://example.org/fr", snippet="Paris is the capital.", retrieved_at="2026-01-01T00:00:00Z"
)


def answers(yes: bool) -> Any:
    """A person who always says the same."""

    async def ask(query: str) -> bool:
        return yes

    return ask


async def test_with_consent_the_question_goes_out_and_passages_come_back(bench: Any, applied: Any) -> None:
    """The exact outgoing text is shown first; it is the question, not the rewritten query."""
    engine = Engine([PARIS])
    after = applied(STATE, await web(STATE, bench.runtime(web_consent="yes"), search=engine, ask_consent=None))
    assert engine.asked == [QUESTION]
    assert bench.of("query") == [{"type": "query", "query": QUESTION, "target": "web"}]
    [found] = after["candidates"]["web"]
    assert found["source"] == found["metadata"]["source_type"] == "web"
    assert found["metadata"]["url"] == PARIS.url
    assert found["metadata"]["found_by"] == {"web": {"rank": 0, "score": 1.0}}
    assert after["web_used"]
    assert after["usage"] == {"web_calls": 1}


async def test_nothing_is_sent_without_consent(bench: Any, applied: Any) -> None:
    """Nobody to ask, a person who says no, consent `no`, policy `never`: nothing leaves, and it is remembered."""
    engine = Engine([PARIS])
    for knobs, ask in (
        ({}, None),
        ({}, answers(False)),
        ({"web_consent": "no"}, answers(True)),
        ({"web": "never"}, None),
    ):
        after = applied(STATE, await web(STATE, bench.runtime(**knobs), search=engine, ask_consent=ask))
        assert after["web_denied"]
    assert engine.asked == []
    assert [event["granted"] for event in bench.of("consent")] == [False, None, False]
    assert bench.of("query") == []


async def test_a_person_is_asked_with_the_outgoing_query(bench: Any, applied: Any) -> None:
    """Consent is for this very text."""
    engine = Engine([PARIS])
    await web(STATE, bench.runtime(), search=engine, ask_consent=answers(True))
    assert [(event["query"], event["granted"]) for event in bench.of("consent")] == [(QUESTION, None), (QUESTION, True)]
    assert engine.asked == [QUESTION]


async def test_a_web_that_fails_is_degraded_and_counts_as_tried(bench: Any, applied: Any) -> None:
    """The run goes on without it and doesn't try it again."""
    engine = Engine(error=WebUnavailable("rate limit"))
    after = applied(STATE, await web(STATE, bench.runtime(web_consent="yes"), search=engine, ask_consent=None))
    assert after["degraded"] == ["web"]
    assert after["web_used"]
    assert after.get("candidates", {}) == {}
