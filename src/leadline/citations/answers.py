"""The check of a whole answer: each sentence against the places it cites, and the exact place of every citation.

Knows evidence blocks and rules; knows no model. A sentence without a mark is looked for in all of the evidence.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leadline.citations.markers import clean_answer
from leadline.citations.no_answer import says_no_answer
from leadline.citations.rules import Problem, check_sentence, content_terms
from leadline.citations.sentences import Sentence, answer_sentences
from leadline.citations.spans import NEAR, Span, best_span, block_context, standing
from leadline.records import Citation, EvidenceBlock, Grounding

_SHORT = 2  # content words; with fewer, a sentence says something only together with its question
_BARE = re.compile(r"\W*(?:yes|no|ja|nein|oui|non|s[ií]|是|不是|はい|いいえ|نعم|لا)\W*", re.IGNORECASE)
_CLOSERS = "\"'”’»)）]」*_`"
_STOPS = ".!?。！？…"


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """`text` is the answer in its final form: marks `[n]`, unknown ones gone, missing ones added where verified.

    `grounding`: grounded (every claim is supported), ungrounded, or no_answer. `problems` name each fault with its
    sentence.
    """

    text: str
    citations: list[Citation]
    grounding: Grounding
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class _Checked:
    sentence: Sentence
    spans: tuple[Span, ...]
    verified: bool
    problems: tuple[Problem, ...]


def check_answer(answer: str, evidence: Sequence[EvidenceBlock], question: str) -> AnswerCheck:
    """Checks every sentence of `answer` that claims something against the evidence it was written from.

    A sentence that cites must be supported by the places it cites, together; one that doesn't may be supported by
    any one passage. `question` completes answers of a word or two. Pure; tens of milliseconds a sentence.
    """
    text, unknown = clean_answer(answer, {block["n"] for block in evidence})
    problems = [Problem("unknown_source", f"[{n}]") for n in unknown]
    sentences = answer_sentences(text, _language(text, evidence))
    claims = [s for s in sentences if s.claim and not says_no_answer(s.text)]
    if not claims:
        return AnswerCheck(text, [], "no_answer", problems)
    checked = [_check(claim, evidence, question) for claim in claims]
    problems += [p for c in checked for p in c.problems]
    citations = [_citation(c, span) for c in checked for span in c.spans]
    grounded = all(c.verified for c in checked)
    return AnswerCheck(_with_marks(text, checked), citations, "grounded" if grounded else "ungrounded", problems)


def _language(text: str, evidence: Sequence[EvidenceBlock]) -> str:
    """The language an answer is most likely in: that of most passages it cites."""
    cited = [block for block in evidence if f"[{block['n']}]" in text] or evidence
    languages = Counter(str(block["document"]["metadata"].get("language") or "en") for block in cited)
    return languages.most_common(1)[0][0] if languages else "en"


def _check(sentence: Sentence, evidence: Sequence[EvidenceBlock], question: str) -> _Checked:
    if _BARE.fullmatch(sentence.text):
        return _Checked(sentence, (), False, (Problem("coverage", "a bare yes or no can't be checked", sentence.text),))
    claim = _complete(sentence.text, question)
    cited = [block for block in evidence if block["n"] in sentence.numbers]
    spans = [best_span(claim, block) for block in cited or evidence]
    if not spans:
        return _Checked(sentence, (), False, (Problem("coverage", "there is no evidence", sentence.text),))
    near = max(span.share for span in spans) * NEAR
    places = standing([span for span in spans if span.share >= near])
    best = min(places, key=lambda s: (len(s.problems), -s.share, s.block["n"]))
    problems: Sequence[Problem] = best.problems
    if len(cited) > 1 and problems:
        # A sentence may draw on several places, none of which says all of it.
        together = "\n".join(span.quote for span in spans)
        problems = check_sentence(claim, together, context="\n".join(block_context(block) for block in cited))
    kept = tuple(spans) if cited else (() if problems else (best,))
    if not cited and problems:
        problems = [p for p in problems if p.kind != "coverage"] or [Problem("coverage", "no passage says this")]
    return _Checked(sentence, kept, not problems, tuple(replace(p, sentence=sentence.text) for p in problems))


def _complete(sentence: str, question: str) -> str:
    """A short answer (a name, a number, yes) with the question it answers, since alone it says nothing."""
    return sentence if len(content_terms(sentence)) > _SHORT else f"{question.rstrip('?？ ')}: {sentence}"


def _citation(checked: _Checked, span: Span) -> Citation:
    metadata = span.block["document"]["metadata"]
    offset = int(metadata.get("start_char") or 0)
    alone = not span.problems
    return {
        "n": span.block["n"],
        "chunk_id": span.block["chunk_id"],
        "doc_id": str(metadata.get("doc_id", "")),
        "file_name": str(metadata.get("file_name", "")),
        "page": metadata.get("page"),
        "start_char": offset + span.start,
        "end_char": offset + span.end,
        "quote": span.quote,
        "sentence": checked.sentence.text,
        # One of several places may say a part only: it counts if the sentence holds and no place says it alone.
        "verified": checked.verified and (alone or all(s.problems for s in checked.spans)),
        "source_type": str(metadata.get("source_type", "file")),
        "url": metadata.get("url"),
        "retrieved_at": metadata.get("retrieved_at"),
    }


def _with_marks(text: str, checked: Sequence[_Checked]) -> str:
    """The text with a mark in each verified sentence that had none, before its full stop."""
    for item in reversed(checked):
        if item.sentence.numbers or not item.spans:
            continue
        at = item.sentence.end
        while at > item.sentence.start and text[at - 1] in _STOPS + _CLOSERS:
            at -= 1
        blank = " " if text[at - 1 : at].isascii() else ""
        text = f"{text[:at]}{blank}[{item.spans[0].block['n']}]{text[at:]}"
    return text
