"""The check of a whole answer: each sentence against the places it cites, and the exact place of every citation.

Knows evidence blocks, rules, and what may say that other words mean the same. A sentence without a mark is looked for
in all of the evidence.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leadline.citations.asides import adds_something, admits_gap
from leadline.citations.markers import clean_answer, parse_markers
from leadline.citations.meaning import Meaning
from leadline.citations.negation import negates
from leadline.citations.no_answer import without_token
from leadline.citations.rules import (
    MAX_SENTENCE_CHARS,
    Problem,
    check_sentence,
    content_terms,
    missing_terms,
    stands_in,
)
from leadline.citations.sentences import Sentence, answer_sentences
from leadline.citations.spans import NEAR, Span, best_span, block_context, shown, standing
from leadline.records import Citation, EvidenceBlock, Grounding

_SHORT = 2  # content words; with fewer, a sentence says something only together with its question
_ANOTHER = 0.5  # of a question's words, the share that a sentence about something else lacks
_BARE = re.compile(r"\W*(?:yes|no|ja|nein|oui|non|s[ií]|是|不是|はい|いいえ|نعم|لا)\W*", re.IGNORECASE)
_YES = re.compile(r"\W*(?:yes|ja|oui|s[ií]|是|はい|نعم)\W*", re.IGNORECASE)
_CLOSERS = "\"'”’»)）]」*_`"
_STOPS = ".!?。！？…"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that claims something: `[start:end]` of the checked text, its own text without marks, its faults."""

    start: int
    end: int
    text: str
    verified: bool
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """`text` is the answer in its final form: marks `[n]`, unknown ones gone, missing ones added where verified.

    `grounding`: grounded (every claim is supported), ungrounded, or no_answer. `problems` name each fault with its
    sentence; `claims` are in the order of the text.
    """

    text: str
    citations: list[Citation]
    grounding: Grounding
    problems: list[Problem]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class _Checked:
    sentence: Sentence
    spans: tuple[Span, ...]
    problems: tuple[Problem, ...]
    marks: tuple[int, ...] = ()  # those that it keeps, or gets

    @property
    def verified(self) -> bool:
        return not self.problems


def check_answer(
    answer: str, evidence: Sequence[EvidenceBlock], question: str, *, meaning: Meaning | None = None
) -> AnswerCheck:
    """Checks every sentence of `answer` that claims something against the evidence it was written from.

    A sentence that cites must be supported by the places it cites, together, or else, like one that doesn't cite, by
    any one passage, which its mark then leads to; marks of places that support nothing are dropped. `question`
    completes answers of a word or two. `meaning` may say that a place says the same in other words; figures, dates,
    names, negations and quotations must agree all the same. Tens of milliseconds a sentence, and a model call for one
    in other words: run it in a thread. Raises what `meaning` raises.
    """
    text, unknown = clean_answer(without_token(answer), {block["n"] for block in evidence})
    problems = [Problem("unknown_source", f"[{n}]") for n in unknown]
    sentences = answer_sentences(text, _language(text, evidence))
    claims = [s for s in sentences if _claims(s, evidence, question)]
    if not claims:
        return AnswerCheck(text, [], "no_answer", problems)
    checked = [_check(claim, evidence, question, meaning) for claim in claims]
    checked = [_with_reason(c, behind, question) for c, behind in zip(checked, [*checked[1:], None], strict=True)]
    problems += [p for c in checked for p in c.problems]
    citations = [_citation(c, span) for c in checked for span in c.spans]
    grounded = all(c.verified for c in checked)
    final, placed = _with_marks(text, checked)
    return AnswerCheck(final, citations, "grounded" if grounded else "ungrounded", problems, placed)


def _claims(sentence: Sentence, evidence: Sequence[EvidenceBlock], question: str) -> bool:
    """Whether the sentence is to be checked. A line that looks harmless is, where it adds something or is denied."""
    if len(sentence.text) > MAX_SENTENCE_CHARS:
        return True
    if sentence.claim:
        return not admits_gap(sentence.text, question)
    if sentence.numbers or adds_something(sentence.text, question, [shown(block) for block in evidence]):
        return True
    if sentence.text.endswith(("?", "？")) or len(content_terms(sentence.text)) < _SHORT:
        return False
    return any(p.kind in ("negation", "opposite") for p in _check(sentence, evidence, question, None).problems)


def _language(text: str, evidence: Sequence[EvidenceBlock]) -> str:
    """The language an answer is most likely in: that of most passages it cites."""
    cited = [block for block in evidence if f"[{block['n']}]" in text] or evidence
    languages = Counter(str(block["document"]["metadata"].get("language") or "en") for block in cited)
    return languages.most_common(1)[0][0] if languages else "en"


def _check(sentence: Sentence, evidence: Sequence[EvidenceBlock], question: str, meaning: Meaning | None) -> _Checked:
    if _BARE.fullmatch(sentence.text):
        return _Checked(sentence, (), (Problem("coverage", "a bare yes or no can't be checked", sentence.text),))
    if len(sentence.text) > MAX_SENTENCE_CHARS:
        return _Checked(sentence, (), (Problem("coverage", "too long to be checked", sentence.text),))
    claim = _complete(sentence.text, question, evidence)
    cited = [block for block in evidence if block["n"] in sentence.numbers]
    kept, problems = _support(claim, cited or evidence, meaning, together=bool(cited))
    denied = any(p.kind in ("negation", "opposite") for p in problems)
    if cited and problems and not denied and len(cited) < len(evidence):
        # A right sentence under a wrong number. What the cited place denies, no other passage puts right.
        places, others = _support(claim, evidence, meaning, together=False)
        kept, problems = (places[:1], ()) if not others else (kept, problems)
    if not cited and problems:
        kept = ()
        problems = [p for p in problems if p.kind != "coverage"] or [Problem("coverage", "no passage says this")]
    marks = tuple(span.block["n"] for span in kept)
    return _Checked(sentence, tuple(kept), tuple(replace(p, sentence=sentence.text) for p in problems), marks)


def _support(
    claim: str, blocks: Sequence[EvidenceBlock], meaning: Meaning | None, *, together: bool
) -> tuple[Sequence[Span], Sequence[Problem]]:
    """The places that support the claim, and what is wrong with it there; `together`: several may say a part each."""
    spans = [best_span(claim, block) for block in blocks]
    if not spans:
        return (), (Problem("coverage", "there is no evidence"),)
    near = max(span.share for span in spans) * NEAR
    places = standing([span for span in spans if span.share >= near])
    best = min(places, key=lambda s: (len(s.problems), -s.share, s.block["n"]))
    problems: Sequence[Problem] = best.problems
    shared = together and len(spans) > 1 and bool(problems)
    if shared:
        # A sentence may draw on several places, none of which says all of it.
        quotes = "\n".join(span.quote for span in spans)
        problems = check_sentence(claim, quotes, context="\n".join(block_context(block) for block in blocks))
    if meaning is not None and _in_other_words(problems):
        same = _same_meaning(claim, [best, *(p for p in places if p is not best)], meaning)
        if same is not None:
            best, problems, shared = replace(same, problems=()), (), False
            spans = [best if span is same else span for span in spans]
    if not together:
        return (best,), problems
    if not problems and not shared:  # one says all of it, so a mark of one that says something else only misleads
        spans = [s for s in spans if s is best or not s.problems or (_in_other_words(s.problems) and s.share >= near)]
    return spans, problems


def _with_reason(checked: _Checked, behind: _Checked | None, question: str) -> _Checked:
    """A bare yes or no holds with the supported sentence behind it, if that answers the question the same way."""
    bare = checked.sentence
    if not _BARE.fullmatch(bare.text) or bare.numbers or behind is None or not behind.verified:
        return checked
    said, asked = behind.sentence.text, content_terms(question)
    missing = missing_terms(asked, said)
    other = not missing and (negates(said) == negates(question)) != bool(_YES.fullmatch(bare.text))
    if other or len(missing) > _ANOTHER * len(asked):
        return checked
    return replace(checked, spans=(), problems=())


def _in_other_words(problems: Sequence[Problem]) -> bool:
    """Whether all that is wrong is that the words differ."""
    return bool(problems) and all(problem.kind == "coverage" for problem in problems)


def _same_meaning(claim: str, places: Sequence[Span], meaning: Meaning) -> Span | None:
    """The first place that says the same in other words, of those where nothing else is wrong."""
    possible = [place for place in places if place.quote and _in_other_words(place.problems)]
    logits = meaning(claim, [place.quote for place in possible]) if possible else []
    return next((place for place, logit in zip(possible, logits, strict=True) if logit > 0), None)


def _complete(sentence: str, question: str, evidence: Sequence[EvidenceBlock]) -> str:
    """A short answer (a name, a number, yes) with the question it answers, since alone it says nothing.

    One that is a sentence of a passage, word for word, says something.
    """
    if len(content_terms(sentence)) > _SHORT or any(stands_in(sentence, shown(block)) for block in evidence):
        return sentence
    return f"{question.rstrip('?？ ')[: MAX_SENTENCE_CHARS // 2]}: {sentence}"


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


def _with_marks(text: str, checked: Sequence[_Checked]) -> tuple[str, tuple[Claim, ...]]:
    """The text with a mark in each verified sentence that had none, before its full stop; and where each claim is."""
    claims, written, last = [], "", 0
    for item in checked:
        sentence = item.sentence
        written += text[last : sentence.start]
        start = len(written)
        written += _marked(text[sentence.start : sentence.end], item)
        last = sentence.end
        claims.append(Claim(start, len(written), sentence.text, item.verified, item.problems))
    return written + text[last:], tuple(claims)


def _marked(shown: str, item: _Checked) -> str:
    if item.sentence.numbers:
        return _remarked(shown, item.marks) if item.verified and item.marks else shown
    if not item.spans:
        return shown
    at = len(shown)
    while at > 0 and shown[at - 1] in _STOPS + _CLOSERS:
        at -= 1
    blank = " " if shown[at - 1 : at].isascii() else ""
    return f"{shown[:at]}{blank}[{item.spans[0].block['n']}]{shown[at:]}"


def _remarked(shown: str, marks: Sequence[int]) -> str:
    """The sentence with these marks only; where it has none of them, they stand in the place of its first."""
    found = [m for m in parse_markers(shown) if m.numbers]
    if not any(n in marks for m in found for n in m.numbers):
        first = found[0] if found else None
        return (
            _remarked(f"{shown[: first.start]}{''.join(f'[{n}]' for n in marks)}{shown[first.end :]}", marks)
            if first
            else shown
        )
    for mark in reversed(found):
        if not set(mark.numbers).intersection(marks):
            before, behind = shown[: mark.start], shown[mark.end :]
            shown = f"{before}{behind}" if behind.startswith("[") else f"{before.rstrip(' ')}{behind}".lstrip(" ")
    return shown
