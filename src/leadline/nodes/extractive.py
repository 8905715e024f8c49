"""The answer without an LLM: the sentences of the evidence that best answer the question, quoted as they stand.

Knows the sentence scorer's sign: only a positive logit is worth quoting, and nothing positive is no answer.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from leadline.citations.contrasts import of_another_occasion, of_another_year
from leadline.citations.markers import clean_answer
from leadline.entities import fold
from leadline.ranking import is_scored
from leadline.state import EvidenceBlock

MAX_SENTENCES = 3
# A further sentence must come this near to the best one's logit, and be less alike than this to those chosen.
NEAR_BEST = 1.0
TOO_ALIKE = 0.8
# How much it counts against a sentence that its passage, read whole, is judged not to answer.
PASSAGE_WEIGHT = 0.5
# What a sentence of a passage that a hop led to must add to the logit of the sentence that names it.
ADDED_BY_HOP = 0.5

_ENDS = (".", "!", "?", "。", "！", "？", "…", ".”", '."', ".)", "؟", "।")
NEW_PARAGRAPH = "\n\n"
_HEADING = re.compile(r"^(#{1,6}\s|\|?\s*:?-{3,})")
_TOKEN = re.compile(r"[\w.,/-]+")
_LETTER = re.compile(r"\b[B-HJ-Z]\b")
_FILE_NAME = re.compile(r"[\w./\\-]*[a-z_]\w*\.[a-z][a-z0-9]{1,4}")
_LABELS = re.compile(
    r"\b(?:files?|file ?names?|documents?|scripts?|modules?|paths?|titles?|titled|names?|named|called|headings?"
    r"|sections?|chapters?|pages?|which|where)\b",
    re.IGNORECASE,
)
_TABLE_RULE = re.compile(r"\|?\s*:?-{3,}")


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

    A sentence says little without the headings it stands under, and those of a list or a table differ only without
    them, so it is scored both ways: it is above zero under them or in the mean, and the best are so by the mean. Those
    of a passage below zero count the less, the further it is below the best one. What is said of another season,
    weekday, month or time of the day than the question names is no answer to it, nor what a passage without the
    question's year says of another. In a passage that a hop led to, a sentence is read after the one that names it too,
    and both count.

    Two batched model calls, one without headings, and one for hops: run it in a thread. Raises ModelError.
    """
    possible = list(_quotable(question, evidence))
    if not possible or _names_another_code(question, evidence):
        return []
    headings = {block["n"]: _headings(block) for block in evidence}
    passages = {block["n"]: _whole(block) for block in evidence}
    owed = _owed_to_passages(evidence)
    under = [f"{headings[quote.n]}: {quote.text}" if headings[quote.n] else quote.text for quote in possible]
    signs = scorer.score_sentences(question, under)
    plain_texts = [quote.text for quote in possible]
    alone = signs if plain_texts == under else scorer.score_sentences(question, plain_texts)
    means = [(float(sign) + float(plain)) / 2 for sign, plain in zip(signs, alone, strict=True)]
    scored = [
        replace(quote, logit=mean + owed[quote.n])
        for quote, text, sign, mean in zip(possible, under, signs, means, strict=True)
        if _bears(float(sign), mean, owed[quote.n]) and not _of_another_time(question, text, passages[quote.n])
    ]
    named = _naming(question, scored, headings)
    whole = {quote: (text, float(sign)) for quote, text, sign in zip(possible, under, signs, strict=True)}
    best = _best(_with_hops(question, evidence, whole, named, scorer))
    order = {block["n"]: place for place, block in enumerate(evidence)}
    return sorted(best, key=lambda quote: (order[quote.n], quote.start))


def _with_hops(
    question: str,
    evidence: Sequence[EvidenceBlock],
    whole: Mapping[Quote, tuple[str, float]],
    scored: Sequence[Quote],
    scorer: SentenceScorer,
) -> Sequence[Quote]:
    """Those scored, and what hops led to: a sentence that by itself may share no word with the question.

    It counts after the sentence that names what it is about, where that one bears on the question by itself and this
    one adds to it. `whole`: each sentence that may be quoted as it stands under its headings, and its logit so.
    """
    pairs = list(_hops(evidence, {quote: text for quote, (text, _) in whole.items()}, scored))
    if not pairs:
        return scored
    texts = [f"{whole[first][0]} {whole[second][0]}" for first, second in pairs]
    logits, owed = {replace(quote, logit=0.0): quote.logit for quote in scored}, _owed_to_passages(evidence)
    for (first, second), text, logit in zip(pairs, texts, scorer.score_sentences(question, texts), strict=True):
        adds = is_scored(logit) and logit > max(0.0, whole[first][1] + ADDED_BY_HOP)
        if adds and not of_another_occasion(question, text):
            for quote in (first, second):
                logits[quote] = max(logits.get(quote, -math.inf), float(logit) + owed[first.n])
    return [replace(quote, logit=logit) for quote, logit in logits.items()]


def _hops(
    evidence: Sequence[EvidenceBlock], under: Mapping[Quote, str], scored: Sequence[Quote]
) -> Iterator[tuple[Quote, Quote]]:
    """Each scored sentence whose name led to another passage, with each sentence of that which is under the name.

    A row about another berth in the table that the name led to is of another thing. `under`: each sentence that may be
    quoted, with its headings.
    """
    numbers = {block["chunk_id"]: block["n"] for block in evidence}
    bearing = {(quote.n, quote.start) for quote in scored}
    for block in evidence:
        led_by = block["document"]["metadata"].get("led_by") or {}
        origin, name = numbers.get(str(led_by.get("chunk_id"))), str(led_by.get("name"))
        first = next((quote for quote in under if quote.n == origin and name in quote.text), None)
        if first is not None and (first.n, first.start) in bearing:
            about = (quote for quote, text in under.items() if quote.n == block["n"] and fold(name) in fold(text))
            yield from ((first, second) for second in about)


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


def _bears(sign: float, mean: float, owed: float) -> bool:
    """Whether a sentence is worth quoting, under its headings or by both ways together."""
    return is_scored(sign) and math.isfinite(mean) and max(sign, mean) + owed > 0


def _owed_to_passages(evidence: Sequence[EvidenceBlock]) -> dict[int, float]:
    """What is added to the logits of the sentences of each passage, by its number: nothing, or less than nothing.

    It is the same wherever the zero of the passages' logits is, as long as it is above all of them or below.
    """
    logits = {block["n"]: block["document"]["rerank_score"] for block in evidence}
    below = {n: min(logit, 0.0) if is_scored(logit) else 0.0 for n, logit in logits.items()}
    return {n: PASSAGE_WEIGHT * (depth - max(below.values())) for n, depth in below.items()}


def _headings(block: EvidenceBlock) -> str:
    """The headings a passage stands under, from the title down."""
    return ", ".join(block["document"]["metadata"].get("headings") or [])


def _names_another_code(question: str, evidence: Sequence[EvidenceBlock]) -> bool:
    """Whether the question is about a code (FP-300, E-131) that no passage has anywhere: what they say is of others."""
    codes = {_squeezed(code) for code in _numbered(question) if any(map(str.isalpha, code))}
    named = " ".join(_squeezed(_whole(block)) for block in evidence)
    return any(code not in named for code in codes)


def _of_another_time(question: str, text: str, passage: str) -> bool:
    return of_another_occasion(question, text) or of_another_year(question, text, passage)


def _whole(block: EvidenceBlock) -> str:
    """A passage with all that it is called by."""
    document = block["document"]
    return f"{document['content']} {document['metadata'].get('headings')} {document['metadata'].get('file_name')}"


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _quotable(question: str, evidence: Sequence[EvidenceBlock]) -> Iterator[Quote]:
    """The sentences that state something: no questions, no headings, no table's header row.

    A file's name or a title by itself is one only where such a name is asked for.
    """
    asks_for_label = bool(_LABELS.search(question))
    for block in evidence:
        following = [text for _, _, text in block["sentences"][1:]] + [""]
        for (start, _, text), after in zip(block["sentences"], following, strict=True):
            is_header = text.startswith("|") and _TABLE_RULE.match(after)
            is_label = not asks_for_label and _is_label(text, block)
            if not (is_header or is_label or text.endswith(("?", "？", "؟")) or _HEADING.match(text)):
                yield Quote(block["n"], start, _as_quoted(text))


def _is_label(text: str, block: EvidenceBlock) -> bool:
    """Whether all that a sentence says is the name of a file, or that of its own document or heading."""
    label = text.strip(" \t*_`-•\"'.:").casefold()
    metadata = block["document"]["metadata"]
    titles = {str(metadata.get(key) or "").casefold() for key in ("title", "file_name")}
    titles |= {str(heading).casefold() for heading in metadata.get("headings") or []}
    return label in titles or bool(_FILE_NAME.fullmatch(label))


def _as_quoted(text: str) -> str:
    """The sentence on one line, without the document's own `[3]`: in an answer they would be taken for citations."""
    return clean_answer(" ".join(text.split()), frozenset())[0]


def _naming(question: str, scored: Sequence[Quote], headings: Mapping[int, str]) -> Sequence[Quote]:
    """Those that name what the question names exactly, if any does: `berth 3` is not berth 7."""
    asked = _exact(question)
    named = [quote for quote in scored if asked <= _exact(f"{headings[quote.n]} {quote.text}")]
    return named or scored


def _exact(text: str) -> set[str]:
    """What a text names exactly: words with a digit in them (numbers, codes, versions) and single capitals (site D)."""
    return {*_numbered(text.casefold()), *_LETTER.findall(text)}


def _numbered(text: str) -> list[str]:
    tokens = (token.rstrip(".,/-") for token in _TOKEN.findall(text))
    return [token for token in tokens if any(map(str.isdecimal, token))]


def _best(scored: Sequence[Quote]) -> list[Quote]:
    chosen: list[Quote] = []
    for quote in sorted(scored, key=lambda quote: -quote.logit):
        if len(chosen) == MAX_SENTENCES or (chosen and quote.logit < chosen[0].logit - NEAR_BEST):
            break
        if all(_likeness(quote.text, other.text) < TOO_ALIKE for other in chosen):
            chosen.append(quote)
    return chosen


def _likeness(left: str, right: str) -> float:
    a, b = set(left.lower().split()), set(right.lower().split())
    return len(a & b) / max(len(a | b), 1)
