"""The web node: nothing leaves without policy and consent, and then only the question."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.drafts import WebPassage
from leadline.errors import PageUnavailable, StoreError, WebRateLimited, WebUnavailable
from leadline.ingest.web_pages import PagesRead
from leadline.knowledge.web_cache import Cached
from leadline.nodes.web import web
from leadline.web import WebResult

QUESTION = "What is the capital of France?"
# The query of a retry holds words of private documents.
ASKED = {"query": "capital France Orla Quist 8841", "width": 10, "sources": ["documents", "web"]}
STATE: Any = {"question": QUESTION, "query": ASKED["query"], "passes": [ASKED]}


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


TEXT = "Paris has been the capital of France since 987."
PAGE = WebPassage(
    "https://example.org/fr",
    "France",
    TEXT,
    "2026-01-01T00:00:00+00:00",
    120,
    120 + len(TEXT),
    ("History",),
    3,
    9,
    "en",
)


@dataclass
class Pages:
    """A reader of pages that gives what it is told to."""

    read: PagesRead = field(default_factory=lambda: PagesRead((PAGE,), read=1))
    asked: list[str] = field(default_factory=list)

    async def __call__(self, question: str, results: Sequence[WebResult], *, k: int) -> PagesRead:
        self.asked.append(question)
        return self.read


@dataclass
class Before:
    """What was found before, and what is to be kept."""

    found: Cached | None = None
    kept: dict[str, Sequence[WebPassage]] = field(default_factory=dict)
    error: Exception | None = None

    async def find(self, query: str) -> Cached | None:
        if self.error:
            raise self.error
        return self.found

    async def keep(self, query: str, passages: Sequence[WebPassage]) -> None:
        if self.error:
            raise self.error
        self.kept[query] = passages


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
    assert after["passes"] == [{**ASKED, "web_query": QUESTION}]


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
        assert after["passes"] == [ASKED]
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


async def run(bench: Any, applied: Any, engine: Engine, state: Any = STATE, **parts: Any) -> Any:
    """The state after the node, consent given."""
    knobs = parts.pop("knobs", {})
    runtime = bench.runtime(web_consent="yes", **knobs)
    return applied(state, await web(state, runtime, search=engine, ask_consent=None, **parts))


async def test_passages_of_pages_say_where_they_stand(bench: Any, applied: Any) -> None:
    """Address, title, time, place in the page's text; the question chooses among them, the query doesn't."""
    pages, before = Pages(), Before()
    after = await run(bench, applied, Engine([PARIS]), read_pages=pages, before=before)
    [found] = after["candidates"]["web"]
    metadata = found["metadata"]
    assert found["content"] == TEXT
    assert (metadata["start_char"], metadata["end_char"]) == (120, 120 + len(TEXT))
    assert (metadata["url"], metadata["title"], metadata["file_name"]) == (PARIS.url, "France", "example.org: France")
    assert metadata["headings"] == ["France", "History"]
    assert metadata["retrieved_at"] == PAGE.retrieved_at
    assert metadata["chunk_id"] == PAGE.chunk_id
    assert pages.asked == [QUESTION]
    assert before.kept == {QUESTION: (PAGE,)}


async def test_a_fresh_search_stands_in_for_a_new_one(bench: Any, applied: Any) -> None:
    """Nothing is sent, so nothing is said to be sent and no web call is spent."""
    engine = Engine([PARIS])
    before = Before(Cached((PAGE,), fresh=True))
    after = await run(bench, applied, engine, read_pages=Pages(), before=before)
    assert after["candidates"]["web"][0]["content"] == TEXT
    assert engine.asked == bench.of("query") == []
    assert "usage" not in after
    assert after["web_used"]
    assert after["passes"] == [ASKED]


async def test_consent_is_needed_for_what_is_kept_too(bench: Any, applied: Any) -> None:
    """Who says no to the web gets none of it."""
    before = Before(Cached((PAGE,), fresh=True))
    after = applied(STATE, await web(STATE, bench.runtime(), search=Engine(), ask_consent=None, before=before))
    assert after["web_denied"]
    assert "candidates" not in after


async def test_an_old_search_stands_in_when_a_new_one_fails(bench: Any, applied: Any) -> None:
    """Expired passages are better than none; the run says that the web itself was not to be had."""
    engine = Engine(error=WebRateLimited("too often"))
    before = Before(Cached((PAGE,), fresh=False))
    after = await run(bench, applied, engine, read_pages=Pages(), before=before)
    assert engine.asked == [QUESTION]
    assert after["degraded"] == ["web"]
    assert after["candidates"]["web"][0]["metadata"]["retrieved_at"] == PAGE.retrieved_at
    assert after["usage"] == {"web_calls": 1}


async def test_an_expired_search_is_made_anew(bench: Any, applied: Any) -> None:
    """And its passages are replaced."""
    before = Before(Cached((), fresh=False))
    after = await run(bench, applied, Engine([PARIS]), read_pages=Pages(), before=before)
    assert after["candidates"]["web"][0]["content"] == TEXT
    assert before.kept == {QUESTION: (PAGE,)}


async def test_a_store_that_fails_costs_nothing_but_the_memory(bench: Any, applied: Any) -> None:
    """A full disk is no reason to be without the web."""
    after = await run(bench, applied, Engine([PARIS]), read_pages=Pages(), before=Before(error=StoreError("full")))
    assert after["candidates"]["web"]
    assert "degraded" not in after


async def test_excerpts_alone_are_said_to_be_that(bench: Any, applied: Any) -> None:
    """Where no page could be read the run is degraded, says why, and tries the pages again the next time."""
    read = PagesRead((PAGE,), ("https://example.org/fr: status 403.",), read=0)
    before = Before()
    after = await run(bench, applied, Engine([PARIS]), read_pages=Pages(read), before=before)
    assert after["degraded"] == ["web"]
    assert "status 403" in bench.of("degraded")[0]["reason"]
    assert after["candidates"]["web"]
    assert before.kept == {}


async def test_a_page_that_fails_among_others_is_no_degradation(bench: Any, applied: Any) -> None:
    """The web did its part."""
    read = PagesRead((PAGE,), (str(PageUnavailable("gone")),), read=1)
    assert "degraded" not in await run(bench, applied, Engine([PARIS]), read_pages=Pages(read))


async def test_the_budget_of_seconds_is_kept(bench: Any, applied: Any) -> None:
    """A web that is slower than what is left of the run is left, and named."""

    class Slow(Engine):
        async def search(self, query: str, *, k: int) -> list[WebResult]:
            await asyncio.sleep(30)
            return []

    state = {**STATE, "started_at": time.time() - 9.8}
    begun = time.monotonic()
    after = await run(bench, applied, Slow(), state, knobs={"budgets": {"seconds": 10}})
    assert time.monotonic() - begun < 5
    assert after["degraded"] == ["web"]
    assert "time was up" in bench.of("degraded")[0]["reason"]
    assert after["limits"] == ["seconds"]


async def test_consent_that_comes_too_late_sends_nothing(bench: Any, applied: Any) -> None:
    """The budget is named; what is not sent is not said to be."""
    engine = Engine([PARIS])
    state = {**STATE, "started_at": time.time() - 10}
    after = await run(bench, applied, engine, state, knobs={"budgets": {"seconds": 5}})
    assert engine.asked == bench.of("query") == []
    assert after["limits"] == ["seconds"]
    assert not after.get("web_used")


class RestingEngine(Engine):
    """An engine that said a moment ago that it is asked too often."""

    def rest_s(self) -> float:
        return 30.0


async def test_an_engine_that_rests_is_no_web_used(bench: Any, applied: Any) -> None:
    """Nothing goes out and nothing comes in: the run is without the web, and doesn't say that it used it."""
    engine = RestingEngine([PARIS])
    after = await run(bench, applied, engine, before=Before())
    assert engine.asked == bench.of("query") == []
    assert after["degraded"] == ["web"]
    assert not after.get("web_used")
    assert after["passes"] == [ASKED]


async def test_old_passages_are_the_web_used_while_the_engine_rests(bench: Any, applied: Any) -> None:
    """What the answer may come from is said, though nothing was sent."""
    after = await run(bench, applied, RestingEngine(), before=Before(Cached((PAGE,), fresh=False)))
    assert after["web_used"]
    assert after["candidates"]["web"]
    assert "web_calls" not in after.get("usage", {})


async def test_a_search_that_now_finds_nothing_leaves_the_old_passages(bench: Any, applied: Any) -> None:
    """They stand in for a web that fails, not for one that says there is nothing."""
    before = Before(Cached((PAGE,), fresh=False))
    after = await run(bench, applied, Engine(), read_pages=Pages(PagesRead((), read=1)), before=before)
    assert after["web_used"]
    assert "candidates" not in after


async def test_a_pasted_text_is_not_sent(bench: Any, applied: Any) -> None:
    """What is too long for a search engine is no query: not even its beginning goes out."""
    engine = Engine([PARIS])
    state = {**STATE, "question": "Is this right? " + "Patient Orla Quist, ref 8841. " * 30}
    after = await run(bench, applied, engine, state)
    assert engine.asked == bench.of("query") == []
    assert after["degraded"] == ["web"]
    assert not after.get("web_used")
    assert "usage" not in after


async def test_a_title_cannot_pass_for_a_source(bench: Any, applied: Any) -> None:
    """The name begins with the host, is short, and has no brackets that a citation has; the title itself stays."""
    title = "The answer is 42 [1] 【2】 " + "and so on " * 40
    hit = WebResult(title, PARIS.url, PARIS.snippet, PARIS.retrieved_at)
    [found] = (await run(bench, applied, Engine([hit])))["candidates"]["web"]
    name = found["metadata"]["file_name"]
    assert name.startswith("example.org: The answer is 42 (1) (2) and so on")
    assert len(name) < 110
    assert found["metadata"]["title"] == title
