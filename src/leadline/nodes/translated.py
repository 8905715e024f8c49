"""An answer in another language than its passages: what can be held against them all the same.

Figures, codes, names and quoted words stay what they are in a translation, and what denies goes on denying. What is
said of them can't be told by the words: that is left open, and nothing here calls it supported.
"""

import re
from collections.abc import Sequence

from leadline.citations import Sentence, answer_sentences, parse_markers
from leadline.citations.negation import negates
from leadline.citations.rules import MAX_SENTENCE_CHARS, Problem
from leadline.citations.spans import Span, best_span, shown
from leadline.nodes.languages import language_of
from leadline.nodes.words import words_of
from leadline.state import EvidenceBlock

_NUMBER = re.compile(r"\d+")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_CODE = re.compile(r"\d|[^\W_][A-Z]")


def only_meaning_is_open(answer: str, evidence: Sequence[EvidenceBlock], question: str) -> bool:
    """Whether the answer is in the question's language, its passages are in others, and all that rules can tell agrees.

    `answer` has marks of the evidence only. A passage in the answer's own language takes the excuse away. A name that
    is another in the other language (Vienna, Wien) doesn't agree.
    """
    language = language_of(question)
    if language_of(_plain(answer)) != language and not _stands_in(answer, evidence):
        return False
    claims = [sentence for sentence in answer_sentences(answer, language) if sentence.claim]
    return bool(claims) and all(_may_hold(claim, evidence, language) for claim in claims)


def _plain(answer: str) -> str:
    for marker in reversed(parse_markers(answer)):
        answer = answer[: marker.start] + answer[marker.end :]
    return answer


def _stands_in(answer: str, evidence: Sequence[EvidenceBlock]) -> bool:
    """Whether every word stands in the passages: a figure or a name is of no language."""
    there = {word for block in evidence for word in words_of(shown(block))}
    said = words_of(_plain(answer))
    return bool(said) and all(word in there for word in said)


def _may_hold(claim: Sentence, evidence: Sequence[EvidenceBlock], language: str) -> bool:
    blocks = [block for block in evidence if block["n"] in claim.numbers] or list(evidence)
    if len(claim.text) > MAX_SENTENCE_CHARS or not all(_is_foreign(block, language) for block in blocks):
        return False
    return any(_agrees(claim.text, best_span(claim.text, block), language) for block in blocks)


def _is_foreign(block: EvidenceBlock, language: str) -> bool:
    """Whether neither the passage nor its document is in the language; rows and lists alone can be told wrongly."""
    return language not in (block["document"]["metadata"].get("language"), language_of(shown(block)))


def _agrees(sentence: str, span: Span, language: str) -> bool:
    """Whether nothing is wrong with the sentence at its place but that the words are others."""
    return (
        bool(span.quote)
        and set(_NUMBER.findall(sentence)) <= set(_NUMBER.findall(span.quote))
        and negates(sentence) == negates(span.quote)
        and all(_is_of_words(problem, sentence, span, language) for problem in span.problems)
    )


def _is_of_words(problem: Problem, sentence: str, span: Span, language: str) -> bool:
    match problem.kind:
        case "coverage" | "negation":  # how often either denies is compared instead
            return True
        case "name":
            return _is_no_name(problem.what, sentence, language) or not _same_script(problem.what, span.quote)
        case _:
            return False


def _is_no_name(word: str, sentence: str, language: str) -> bool:
    """Whether it is a lone word in German, which writes every noun as a name."""
    if language != "de" or _CODE.search(word):
        return False
    place = re.escape(word)
    in_a_row = rf"[A-ZÄÖÜ]\w+ {place}\b|\b{place} [A-ZÄÖÜ]"
    return not re.search(in_a_row, sentence)


def _same_script(name: str, text: str) -> bool:
    """Whether a name could be found at all: 北京 is never in a text of Latin letters."""
    return bool(_LATIN.search(name)) == bool(_LATIN.search(text))
