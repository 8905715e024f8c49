"""The sentences of an answer, with the marks that belong to each.

Knows Markdown as models write it (headings, lists, tables, fenced code) and which lines claim nothing. Doesn't know
whether a claim is true.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from leadline.citations.markers import Marker, parse_markers
from leadline.sentences import boundaries, sentence_spans

_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+|[ \t]*(?:>[ \t]*)+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]|[ \t]*(\*\*|__)[^*_\n]+\1:?[ \t]*\Z")
_TABLE_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*\Z")
_TABLE_RULE = re.compile(r"[ \t]*+(?:\|[ \t]*+)?+:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*\Z")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_EMPHASIS = re.compile(r"(?<!\w)(?:\*\*|__|\*)(?=\S)|(?<=\S)(?:\*\*|__|\*)(?!\w)")
_LEAD_IN = re.compile(r"[^\d]*[:：]\W*\Z")
_LEAD_IN_WORDS = 14
_COURTESY = re.compile(
    r"(?:sure|certainly|of course|(?:i )?hope (?:this|that) helps|(?:in )?(?:short|summary|conclusion)|(?:re)?sources?"
    r"|let me know if you (?:need|have|want|would like)\b[^\d]*)\W*\Z",
    re.IGNORECASE,
)
_TITLE_WORDS = 10
_UNCLAIMED_CHARS = 300  # whatever is longer than that says something


@dataclass(frozen=True, slots=True)
class Sentence:
    """`[start:end]` of the answer, marks included; `text` is without marks, bullets and emphasis.

    `claim` is False for what states nothing: headings of something, a table's header, questions, lead-ins, courtesies.
    """

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]
    claim: bool = True


def answer_sentences(text: str, language: str = "en") -> list[Sentence]:
    """The sentences in order. A mark behind a full stop belongs to the sentence before it.

    `language` (ISO 639-1) tells whether `14.` ends a sentence or is a day.
    """
    markers = parse_markers(text)
    masked = _without_marks(text, markers)
    sentences: list[Sentence] = []
    headings: set[int] = set()
    for start, end, claim in _blocks(masked):
        for bounds in _bounds(masked, start, end, language):
            if not claim and _HEADING.match(masked[start:end]):
                headings.add(len(sentences))
            sentences.append(_sentence(masked, *bounds, claim, markers))
    return _with_answers_in_bold(sentences, headings)


@lru_cache(maxsize=256)
def text_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a source's text, remembered: every sentence of an answer is held against the same few."""
    return tuple(text[start:end] for start, end in sentence_spans(text))


def _with_answers_in_bold(sentences: list[Sentence], headings: Set[int]) -> list[Sentence]:
    """A heading with no claim under it is one itself, where it is all that the answer says or follows a lead-in."""
    last = max((place for place, sentence in enumerate(sentences) if sentence.claim), default=-1)
    if last >= 0 and not any(sentence.text.endswith((":", "：")) for sentence in sentences[last + 1 :]):
        return sentences
    return [
        replace(sentence, claim=states_something(sentence.text.lstrip("# ")))
        if place in headings and place > last
        else sentence
        for place, sentence in enumerate(sentences)
    ]


def _without_marks(text: str, markers: list[Marker]) -> str:
    """The text with blanks for marks: offsets stay."""
    chars = list(text)
    for marker in markers:
        chars[marker.start : marker.end] = " " * (marker.end - marker.start)
    return "".join(chars)


def _blocks(masked: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end and claim of each run of lines that reads as one text."""
    start, at, fence = None, 0, ""
    lines = masked.splitlines(keepends=True)
    for place, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        mark = _FENCE.match(bare)
        single = bool(fence or mark) or _is_single(bare, lines[place + 1 : place + 2])
        if start is not None and (single or not bare.strip() or _BULLET.match(bare)):
            yield start, at, True
            start = None
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
        elif single:
            yield at, at + len(bare), bool(fence) or not _claims_nothing(bare, lines[place + 1 : place + 2])
        elif bare.strip() and start is None:
            start = at
        at += len(line)
    if start is not None:
        yield start, at, True


def _is_single(line: str, following: list[str]) -> bool:
    return bool(_TABLE_ROW.match(line)) or _is_title(line, following)


def _is_title(line: str, following: list[str]) -> bool:
    """Whether the line is a heading, a table's header or the rule under it."""
    if _HEADING.match(line) or _TABLE_RULE.match(line):
        return True
    return "|" in line and any(_TABLE_RULE.match(next_line.rstrip()) and "|" in next_line for next_line in following)


def _claims_nothing(line: str, following: list[str]) -> bool:
    """Whether a line of its own is a title. One with a number or a full stop may be a claim made to look like one."""
    if not _is_title(line, following):
        return False
    words = _plain(line).lstrip("# ")
    return not _HEADING.match(line) or (
        len(words.split()) <= _TITLE_WORDS and not re.search(r"\d|[.!。]\Z", re.sub(r"\A[\d.]+\s", "", words))
    )


def _bounds(masked: str, start: int, end: int, language: str) -> list[tuple[int, int]]:
    bullet = _BULLET.match(masked, start, end)
    body = bullet.end() if bullet else start
    if _TABLE_ROW.match(masked[start:end]):
        return _joined(masked, [(start, end)])
    return _joined(masked, [(body + first, body + last) for first, last in boundaries(masked[body:end], language)])


def _sentence(masked: str, first: int, last: int, claim: bool, markers: list[Marker]) -> Sentence:
    words = _plain(masked[first:last])
    inside = [m for m in markers if first <= m.start < last]
    shown = first + len(masked[first:last]) - len(masked[first:last].lstrip())
    begin = min([shown, *(m.start for m in inside)])
    finish = max([first + len(masked[first:last].rstrip()), *(m.end for m in inside)])
    numbers = tuple(dict.fromkeys(n for m in inside for n in m.numbers))
    return Sentence(begin, finish, words, numbers, claim and states_something(words))


def _joined(masked: str, bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pieces without a word (a closing quotation mark, blanks where marks were) go to the sentence before them."""
    joined: list[tuple[int, int]] = []
    for first, last in bounds:
        if joined and not any(c.isalnum() for c in masked[first:last]):
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return [b for b in joined if any(c.isalnum() for c in masked[b[0] : b[1]])]


def _plain(text: str) -> str:
    if _TABLE_ROW.match(text):
        text = text.strip().strip("|").replace("|", " ; ")
    return re.sub(r"\s+([.,;:!?。，、])", r"\1", " ".join(_EMPHASIS.sub("", text).split()))


def states_something(text: str) -> bool:
    """Whether a sentence claims anything that a source could support."""
    if len(text) > _UNCLAIMED_CHARS:
        return True
    if text.endswith(("?", "？")) or _COURTESY.match(text):
        return False
    return not (_LEAD_IN.match(text) and len(text.split()) <= _LEAD_IN_WORDS)
