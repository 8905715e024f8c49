"""How a run is shown to a person."""

from typing import Any

import pytest

from leadline.cli.answer import RunView, show_outcome
from leadline.events import DegradedEvent, PromptEvent, RetractEvent, StepEvent, TokenEvent

CITATION: dict[str, Any] = {
    "n": 1,
    "chunk_id": "c",
    "doc_id": "d",
    "file_name": "har\x1b[31mbour.pdf",
    "page": 2,
    "start_char": 0,
    "end_char": 9,
    "quote": "The gate\ncloses at [red]nine[/red].",
    "sentence": "It closes at nine [1].",
    "verified": True,
    "source_type": "file",
    "url": None,
}
ROW = {
    "chunk_id": "c",
    "file_name": "tides.md",
    "rerank_score": -1.25,
    "found_by": {"bm25": {"rank": 0, "score": 3.0}},
    "kept": False,
    "why": "negative",
}


def result(**changes: Any) -> dict[str, Any]:
    """A Result, answered and cited, with changes."""
    verdict = {"evidence": "relevant", "grounding": "grounded", "action": "finish", "reason": "every sentence checked"}
    base: dict[str, Any] = {"status": "answered", "answer": "It closes at nine [1].", "citations": [CITATION]}
    return {**base, "verdict": verdict, "flags": [], "context": [ROW], "degraded": [], **changes}


def test_sources_name_file_page_and_quote(capsys: pytest.CaptureFixture[str]) -> None:
    """Each cited place is shown once, with hostile text made harmless and markup left as text."""
    show_outcome(result(citations=[CITATION, CITATION]), {})
    out = capsys.readouterr().out
    assert out.count("[1] har␛[31mbour.pdf, page 2") == 1
    assert '"The gate closes at [red]nine[/red]."' in out


def test_an_unverified_citation_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader sees which source was not confirmed."""
    show_outcome(result(citations=[{**CITATION, "verified": False}], flags=["unverified"]), {})
    out = capsys.readouterr().out
    assert "(not verified)" in out
    assert "Not verified: the check" in out


NEAREST = {"content": "The tide\nrises.", "metadata": {"chunk_id": "c", "file_name": "tides.md", "page": 3}}


def test_abstaining_says_why_and_shows_what_came_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason comes first, then the nearest passages with place, logit and text."""
    show_outcome(result(status="abstained", answer="", citations=[]), {}, [NEAREST])
    out = capsys.readouterr().out
    assert out.startswith("(every sentence checked)")
    assert "tides.md, page 3  (-1.25)" in out
    assert '"The tide rises."' in out


def test_a_score_not_given_is_not_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    """0.0 means not scored and is never shown as a figure."""
    show_outcome(result(status="abstained", citations=[], context=[{**ROW, "rerank_score": 0.0}]), {}, [NEAREST])
    assert "tides.md, page 3  (not scored)" in capsys.readouterr().out


CUT = {"kept": True, "sentences": {"shown": 3, "no_room": 2, "orders": 0}}
OUT = {"sentences": {"shown": 0, "no_room": 1, "orders": 0}}
WHOLE = {"kept": True, "sentences": {"shown": 4, "no_room": 0, "orders": 1}}


def test_what_had_no_room_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """How many sentences of how many passages the writer didn't see, and which setting makes room; else nothing."""
    show_outcome(result(context=[{**ROW, **CUT}, {**ROW, **OUT}, {**ROW, **WHOLE}]), {})
    out = capsys.readouterr().out
    assert "Not all was read: 3 sentences of 2 passages had no room (LEADLINE_RUN__MAX_CONTEXT_TOKENS)." in out
    show_outcome(result(context=[{**ROW, **WHOLE}]), {})
    assert "Not all was read" not in capsys.readouterr().out


def test_a_spent_budget_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever gets a shorter answer than there could be is told which setting held the run back; else nothing."""
    show_outcome(result(limits=["seconds", "llm_calls"]), {})
    assert "Held back by the run's budget: seconds, llm calls (LEADLINE_RUN__BUDGETS)." in capsys.readouterr().out
    show_outcome(result(limits=[]), {})
    assert "budget" not in capsys.readouterr().out


def test_the_trace_says_what_became_of_the_best_candidates(capsys: pytest.CaptureFixture[str]) -> None:
    """Logit, place, the legs that found it, and why; of many only the best, and how many more there are."""
    with RunView(trace=True) as view:
        view.end(result(context=[{**ROW, "page": 4, "why": "cited as [1]"}] * 10))
    err = capsys.readouterr().err
    assert err.count("-1.25  tides.md, page 4 (bm25 1): cited as [1]") == 8
    assert "and 2 more candidates" in err


def test_degraded_parts_are_shown_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """What failed stands below the answer, never inside it."""
    with RunView() as view:
        view.show(DegradedEvent(part="reranker", reason="no such model"))
        view.end(result(degraded=["reranker"]))
    assert "Without reranker: no such model" in capsys.readouterr().out


def test_in_a_pipe_the_answer_is_printed_once_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens of a draft that was withdrawn never reach a pipe."""
    with RunView() as view:
        view.show(TokenEvent(text="A wrong draft"))
        view.show(RetractEvent(reason="not in the source"))
        view.end(result())
    out = capsys.readouterr().out
    assert "wrong draft" not in out
    assert out.count("It closes at nine [1].") == 1


def test_a_terminal_streams_and_does_not_repeat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tokens were shown as they came, the same answer isn't printed a second time."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with RunView() as view:
        view.show(TokenEvent(text="It closes "))
        view.show(TokenEvent(text="at nine [1]."))
        view.end(result())
    assert capsys.readouterr().out.count("It closes at nine [1].") == 1


def test_the_trace_and_prompts_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """What is about the run stays out of what was asked for."""
    with RunView(trace=True, prompts=True) as view:
        view.show(PromptEvent(node="planner", model="m", messages=[{"role": "user", "content": "rewrite"}]))
        view.show(StepEvent(node="planner", phase="end", seconds=0.25, details={"route": "search"}))
        view.show(StepEvent(node="web", phase="skip"))
        view.end(result())
    shown = capsys.readouterr()
    assert "planner       0.250 s  route=search" in shown.err
    assert "[skip]" in shown.err
    assert "user: rewrite" in shown.err
    assert "route=search" not in shown.out


def test_json_is_all_that_reaches_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json no token, source list or warning mixes with the document."""
    with RunView(as_json=True) as view:
        view.show(TokenEvent(text="It"))
        view.end({"status": "answered"})
    assert capsys.readouterr().out == '{"status": "answered"}\n'
