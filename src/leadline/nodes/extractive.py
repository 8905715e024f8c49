"""The answer without an LLM: the sentences of the evidence that best answer the question, quoted as they stand.

Knows the sentence scorer's sign: only a positive logit is worth quoting, and nothing positive is no answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from leadline.citations.markers import clean_answer
from leadline.ranking import is_scored
from leadline.state import EvidenceBlock

MAX_SENTENCES = 3
# A further sentence must come this near to the best one's logit, and be less alike than this to those chosen.
NEAR_BEST = 0.66
TOO_ALIKE = 0.8

_ENDS = (".", "!", "?", "。", "！", "？", "…", ".”", '."', ".)", "؟", "।")
NEW_PARAGRAPH = "\n\n"
_HEADING = re.compile(r"^(#{1,6}\s|\|?\s*:?-{3,})")
# Words with a digit in them: numbers, codes, versions.
_NUMBERED = re.compile(r"[\w.,/-]*\d(?:[\w.,/-]*\w)?")


class SentenceScorer(Protocol):
    """Scores single sentences by a logit whose sign means something; see `Reranker.score_sentences`."""

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]: ...


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that may be quoted, where it stands, and its logit."""

    n: int
    start: int
    text: str
    logit: float = 0.0


def quotes_for(question: str, evidence: Sequence[EvidenceBlock], scorer: SentenceScorer) -> list[Quote]:
    """The best sentences, at most three, in the order of their passages. Empty when none scores above zero.

    One batched model call: run it in a thread. Raises ModelError.
    """
    possible = list(_quotable(evidence))
    if not possible:
        return []
    logits = scorer.score_sentences(question, [_with_headings(quote, evidence) for quote in possible])
    scored = [
        Quote(quote.n, quote.start, quote.text, float(logit))
        for quote, logit in zip(possible, logits, strict=True)
        if is_scored(logit) and logit > 0
    ]
    best = _best(_naming(question, scored))
    order = {block["n"]: place for place, block in enumerate(evidence)}
    return sorted(best, key=lambda quote: (order[quote.n], quote.start))


def as_answer(quotes: Sequence[Quote]) -> list[str]:
    """The pieces of the answer, to be joined as they are: each quote word for word, with its marker.

    Sentences run on; what doesn't end like one (a table's row, a list's item) stands in a paragraph of its own, or it
    would read, and be checked, as one sentence with its neighbour.
    """
    pieces: list[str] = []
    for place, quote in enumerate(quotes):
        runs_on = quote.text.endswith(_ENDS) and quotes[place - 1].text.endswith(_ENDS)
        between = "" if place == 0 else " " if runs_on else NEW_PARAGRAPH
        pieces.append(f"{between}{quote.text} [{quote.n}]")
    return pieces


def _with_headings(quote: Quote, evidence: Sequence[EvidenceBlock]) -> str:
    """What the scorer reads: a sentence says little without the headings it stands under, from the title down."""
    headings = next(block["document"]["metadata"].get("headings") or [] for block in evidence if block["n"] == quote.n)
    return f"{', '.join(headings)}: {quote.text}" if headings else quote.text


def _quotable(evidence: Sequence[EvidenceBlock]) -> list[Quote]:
    return [
        Quote(block["n"], start, _as_quoted(text))
        for block in evidence
        for start, _, text in block["sentences"]
        if not text.endswith(("?", "？", "؟")) and not _HEADING.match(text)
    ]


def _as_quoted(text: str) -> str:
    """The sentence on one line, without the document's own `[3]`: in an answer they would be taken for citations."""
    return clean_answer(" ".join(text.split()), frozenset())[0]


def _naming(question: str, scored: Sequence[Quote]) -> Sequence[Quote]:
    """Those that name the numbers and codes of the question, if any does: `berth 3` is not berth 7."""
    asked = set(_NUMBERED.findall(question.casefold()))
    named = [quote for quote in scored if asked <= set(_NUMBERED.findall(quote.text.casefold()))]
    return named or scored


def _best(scored: Sequence[Quote]) -> list[Quote]:
    chosen: list[Quote] = []
    for quote in sorted(scored, key=lambda quote: -quote.logit):
        if len(chosen) == MAX_SENTENCES or quote.logit < NEAR_BEST * (chosen[0].logit if chosen else quote.logit):
            break
        if all(_likeness(quote.text, other.text) < TOO_ALIKE for other in chosen):
            chosen.append(quote)
    return chosen


def _likeness(left: str, right: str) -> float:
    a, b = set(left.lower().split()), set(right.lower().split())
    return len(a & b) / max(len(a | b), 1)
