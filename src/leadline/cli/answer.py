"""A run as a person sees it: progress, the streamed answer, then sources, doubts and the trace.

Knows the events and the Result; doesn't know how they come about. The answer goes to standard output, all else about
the run to standard error, so that `leadline ask ... > answer.txt` keeps what was asked for.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from leadline.cli.display import console, plain, print_json, say, short
from leadline.cli.llm import address_of
from leadline.events import (
    DegradedEvent,
    EscalateEvent,
    Event,
    PromptEvent,
    QueryEvent,
    RetractEvent,
    RetryEvent,
    StepEvent,
    TokenEvent,
)

QUOTE_CHARS = 240
NAMED = 5  # files that are still being indexed
TRACED = 8  # candidates in a trace
HEADING_CHARS = 60  # in a trace
DOUBTS = {
    "weak_evidence": "Weak evidence: the passages are judged not to answer the question; check them.",
    "unverified": "Not verified: the check of the answer against its sources could not be made.",
    "unranked": "Not ranked: the passages could not be judged, only found.",
    "shortened": "Shortened: what the draft said without support in the passages was rewritten or left out.",
}


class RunView:
    """Shows the events of one run as they come. Use as a context manager: the progress line ends with it.

    `as_json`: the result is one JSON document on standard output, nothing else goes there. `llm` and
    `llm_at`: which LLM is asked, and at which address, where the settings name one.
    """

    def __init__(
        self,
        *,
        trace: bool = False,
        prompts: bool = False,
        as_json: bool = False,
        llm: str | None = None,
        llm_at: str | None = None,
    ) -> None:
        self.trace = trace
        self.prompts = prompts
        self.as_json = as_json
        self.steps: list[StepEvent] = []
        self.lost: dict[str, str] = {}
        self._llm = llm
        self._llm_at = llm_at
        self.streamed = ""
        self._progress = ExitStack()
        self._live = sys.stdout.isatty() and not as_json
        self._paused = False

    def __enter__(self) -> "RunView":
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()

    def show(self, event: Event) -> None:
        """What one event changes on the screen."""
        match event:
            case StepEvent(phase="start"):
                self._say_working(event.node)
            case StepEvent():
                self.steps.append(event)
            case TokenEvent() if self._live:
                self._progress.close()
                self.streamed += event.text
                console().print(plain(event.text), end="", soft_wrap=True)
            case RetractEvent():
                self._withdraw(event.reason)
            case DegradedEvent():
                self.lost[event.part] = self._told(event.reason)
            case _ if note := self._note_on(event):
                self._note(note)

    def _told(self, reason: str) -> str:
        """Why a part was lost; where the LLM gave an error, also where it was asked."""
        if not self._llm_at or not self._llm or not reason.startswith(f"{self._llm} "):
            return reason
        return f"{reason.rstrip()} It was asked at {address_of(self._llm_at)} (LEADLINE_LLM_API_BASE)."

    def pause(self) -> None:
        """Takes the progress line off the screen for good: somebody is about to be asked there."""
        self._paused = True
        self._progress.close()

    def _note_on(self, event: Event) -> str:
        match event:
            case QueryEvent(target="web"):
                return f"Sent to the web search: {event.query}"
            case RetryEvent():
                return f"Looking again for: {event.query} ({event.width} passages a leg). {event.reason}"
            case EscalateEvent():
                return f"Looking in the web: {event.reason}"
            case PromptEvent() if self.prompts:
                return f"--- {event.node} asks {event.model}\n{_messages(event.messages)}\n---"
        return ""

    def _say_working(self, node: str) -> None:
        if not (self._live and sys.stderr.isatty()) or self.streamed or self._paused:
            return
        self._progress.close()
        self._progress.enter_context(console(stderr=True).status(f"{node} ..."))

    def _note(self, text: str) -> None:
        self._progress.close()
        say(text, style="dim", stderr=True)

    def _withdraw(self, reason: str) -> None:
        if self.streamed:
            say()
            self._note(f"(Withdrawn: {reason})")
        self.streamed = ""

    def end(
        self,
        result: dict[str, Any],
        nearest: Sequence[Mapping[str, Any]] = (),
        headings: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Shows the result of the run; `nearest` are the passages to name where there is no answer.

        `headings` tell the passages of one file apart in the trace, by chunk.
        """
        self._progress.close()
        if self.as_json:
            print_json(result)
        else:
            self._answer(result)
            show_outcome(result, self.lost, nearest)
        if self.trace:
            show_trace(self.steps, result, headings or {})

    def _answer(self, result: dict[str, Any]) -> None:
        if self.streamed and self.streamed.strip() == result["answer"].strip():
            say()
        elif result["answer"]:
            say(result["answer"], style="bold yellow" if result["status"] == "abstained" else None)


def show_error(error: Mapping[str, str]) -> None:
    """What went wrong in a run, and what to do."""
    say(f"Error: {error['message']}", style="red", stderr=True)
    if hint := error.get("hint"):
        say(hint, stderr=True)


def show_outcome(result: dict[str, Any], lost: Mapping[str, str], nearest: Sequence[Mapping[str, Any]] = ()) -> None:
    """Everything about a result but the answer's own text. `lost`: degraded part → why."""
    if result["status"] == "abstained":
        show_abstention(result, nearest)
    if error := result.get("error"):
        show_error(error)
    if result["status"] == "interrupted":
        say("Interrupted: the answer broke off and is not complete.", style="red", stderr=True)
    if result["citations"]:
        show_sources(result["citations"])
    for flag in result["flags"]:
        say(DOUBTS.get(flag, flag), style="yellow")
    if note := left_out(result["context"]):
        say(note, style="yellow")
    if waiting := result.get("indexing"):
        verb = "is" if len(waiting) == 1 else "are"
        named = ", ".join(waiting[:NAMED]) + (", …" if len(waiting) > NAMED else "")
        say(
            f"{_count(len(waiting), 'document')} {verb} still being indexed: {plain(named, one_line=True)}.",
            style="yellow",
        )
    if limits := result.get("limits"):
        named = ", ".join(limits).replace("_", " ")
        say(f"Held back by the run's budget: {named} (LEADLINE_RUN__BUDGETS).", style="yellow")
    for part in result["degraded"]:
        say(f"Without {part}: {lost[part]}" if lost.get(part) else f"Without {part}.", style="yellow")


def left_out(rows: Sequence[Mapping[str, Any]]) -> str:
    """What of the chosen passages the writer was not shown, for lack of room; empty where it saw all of them."""
    cut = [count for row in rows if row.get("sentences") and (count := row["sentences"]["no_room"])]
    if not cut:
        return ""
    sentences, passages = _count(sum(cut), "sentence"), _count(len(cut), "passage")
    return f"Not all was read: {sentences} of {passages} had no room (LEADLINE_RUN__MAX_CONTEXT_TOKENS)."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def show_sources(citations: list[dict[str, Any]]) -> None:
    """The cited places in order of their numbers, each once: file, page, quote."""
    say()
    say("Sources", style="bold")
    shown: set[tuple[int, str]] = set()
    for citation in sorted(citations, key=lambda c: (c["n"], c["start_char"])):
        if (citation["n"], citation["quote"]) in shown:
            continue
        shown.add((citation["n"], citation["quote"]))
        doubt = "" if citation["verified"] else "  (not verified)"
        say(f"[{citation['n']}] {_place(citation)}{doubt}", style="cyan")
        say(f'    "{short(citation["quote"], QUOTE_CHARS)}"')


def show_abstention(result: dict[str, Any], nearest: Sequence[Mapping[str, Any]]) -> None:
    """Why there is no answer, and the passages that came nearest."""
    say(f"({plain(result['verdict']['reason'], one_line=True)})", style="yellow")
    scores = {row["chunk_id"]: row["rerank_score"] for row in result["context"]}
    if nearest:
        say()
        say("Nearest passages", style="bold")
    for document in nearest:
        metadata = document["metadata"]
        say(f"{_place(metadata)}  ({score(scores.get(metadata['chunk_id'], 0.0))})", style="cyan")
        say(f'    "{short(document["content"], QUOTE_CHARS)}"')


def show_trace(
    steps: list[StepEvent], result: dict[str, Any], headings: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Each node's time and what it decided, then the verdict, on standard error."""
    say("\nTrace", style="bold", stderr=True)
    for step in steps:
        details = "  ".join(f"{key}={_value(value)}" for key, value in step.details.items())
        ended = "" if step.phase == "end" else f"[{step.phase}] "
        head = f"  {step.node:<11}{step.seconds:8.3f} s  "
        say(f"{head}{ended}{plain(details, one_line=True)}", stderr=True, hang=len(head))
    verdict = result["verdict"]
    say(f"  verdict: evidence {verdict['evidence']}, answer {verdict['grounding']} -> {verdict['action']}", stderr=True)
    _trace_candidates(result["context"], headings or {})


def _trace_candidates(rows: Sequence[Mapping[str, Any]], headings: Mapping[str, Sequence[str]]) -> None:
    """What the writer was to read, best first, and of how many."""
    for row in rows[:TRACED]:
        legs = ", ".join(f"{leg} {found['rank'] + 1}" for leg, found in row["found_by"].items())
        under = headings.get(row["chunk_id"], ())
        name = _place(row) + (f" § {short(under[-1], HEADING_CHARS)}" if under else "")
        why = plain(row["why"], one_line=True)
        head = f"  {score(row['rerank_score']):>10}  "
        say(f"{head}{name} ({legs}): {why}", stderr=True, hang=len(head))
    if len(rows) > TRACED:
        say(f"  and {len(rows) - TRACED} more candidates: `leadline explain` shows all of them", stderr=True)


def score(rerank_score: float) -> str:
    """A logit for people; one that was not given is not shown as a number."""
    return f"{rerank_score:+.2f}" if rerank_score else "not scored"


def _place(citation: Mapping[str, Any]) -> str:
    page = f", page {citation['page']}" if citation.get("page") is not None else ""
    url = f" <{citation['url']}>" if citation.get("url") else ""
    if url and citation.get("retrieved_at"):
        url = f" web{url}, {str(citation['retrieved_at'])[:16].replace('T', ' ')} UTC"
    return plain(f"{citation['file_name']}{page}{url}", one_line=True)


def _value(value: object) -> str:
    if isinstance(value, dict) and "action" in value:
        return f"{value['action']} ({value['evidence']}, {value['grounding']})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _messages(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"{message.get('role', '?')}: {message.get('content', '')}" for message in messages)
