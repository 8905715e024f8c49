"""Which names a text mentions, and which known names a question may mean. Pure; the same words for both.

Rules of form, no dictionary of names: runs of capitalised words (`Dana Fox`, `Bank of England`), words with capitals
or digits inside (`LangGraph`, `getUserId`, `GPT-4`, `COVID19`, `Q3`), `snake_case`, abbreviations (`NASA`); in
Chinese and Japanese katakana, short runs of Han between other signs, and what stands in 「」『』《》. A name never
crosses a line. It is known by its *key*, the case-folded words with one space between.

Doesn't know which names a collection holds: a store looks the candidates of a question up.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import regex

from leadline.entity_words import ARTICLES, CURRENCIES, FURTHER_PARTICLES, LEADING, NEVER_ALONE, PARTICLES, STOP_WORDS

MAX_WORDS: Final = 6  # of a name
MAX_CJK_CHARS: Final = 10
MAX_CANDIDATES: Final = 2000  # of one question, however long it is

UNSPACED = r"\p{Han}\p{Katakana}\p{Hiragana}ー"
PIECE = rf"[[\p{{L}}\p{{N}}]--[{UNSPACED}]][[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]*"
# U.S.A., then words with their inner signs and the ends of C++ and C#.
WORD = regex.compile(rf"(?V1)(?:\p{{Lu}}\.){{2,}}|{PIECE}(?:[-‐_./’'&]{PIECE})*(?:\+\+|\#(?![\p{{L}}\p{{N}}]))?")
CJK_NAME = regex.compile(
    r"""(?V1)[「『《](?P<quoted>[^「」『』《》\n]{2,40})[」』》]
      | (?P<katakana>[\p{Katakana}ー・]{2,20})
      | (?<!\p{Han})(?P<han>\p{Han}{2,5})(?!\p{Han})""",
    regex.VERBOSE,
)
CJK_RUN = regex.compile(rf"(?V1)[{UNSPACED}・]+")
POSSESSIVE = regex.compile(r"['’]s$|['’]$", regex.IGNORECASE)
SENTENCE_START = regex.compile(
    r"""(?:^\s*[-*#>|]*|(?<!\b(?:Dr|Mr|Mrs|Ms|Prof|St|Fig|vs|\p{Lu}))[.]|[!?:;•…。！？])[\s"'“„«»(\[*_]*$"""
)
GAP_IN_NAME = regex.compile(r"[ \t\u00a0]{1,2}(?:& )?")
GAP_AFTER_INITIAL = regex.compile(r"\. ?")
LINE = regex.compile(r"[^\n\r]+")
SPACED = re.compile(r"\S+")
ANY_PARTICLE = PARTICLES | FURTHER_PARTICLES
PUNCTUATION = ".,;:!?()\"'"
DIGIT = regex.compile(r"\p{N}")
INNER_CAPITAL = regex.compile(r"\p{Ll}\p{Lu}|\p{Lu}{2,}\p{Ll}")


@dataclass(slots=True)
class Mentions:
    """How often a text mentions one entity. `part`: only as a word of longer names (`Fox` of `Dana Fox`)."""

    name: str
    count: int = 0
    part: bool = False


class _Kind(Enum):
    PLAIN = "plain"
    CAPITALISED = "capitalised"
    ABBREVIATION = "abbreviation"
    # Letters with digits, capitals inside, or joined by underscores: a name wherever it stands.
    CODE = "code"


@dataclass(slots=True)
class _Word:
    text: str
    key: str
    start: int
    end: int
    kind: _Kind
    at_start: bool  # of a sentence; only known of capitalised words

    @property
    def is_name_by_form(self) -> bool:
        return self.kind in (_Kind.CODE, _Kind.ABBREVIATION)


class _Evidence:
    """What the rest of a text says of a capital that any word would have where it stands."""

    def __init__(self, words: Sequence[_Word], plain: Set[str]) -> None:
        capitalised = [word for word in words if word.kind is _Kind.CAPITALISED]
        self._inside = {word.key for word in capitalised if not word.at_start}
        self._starting = Counter(word.key for word in capitalised if word.at_start)
        self._plain = plain | {word.key for word in words if word.kind is _Kind.PLAIN}

    def speaks_for(self, name: Sequence[_Word]) -> bool:
        """Whether a run is a name: always, but for a single plain word at the start of a sentence."""
        word = name[0]
        if len(name) > 1 or word.is_name_by_form or not word.at_start:
            return True
        if word.key in self._plain:
            return False
        return word.key in self._inside or self._starting[word.key] > 1 or bool(POSSESSIVE.search(word.text))


@dataclass(slots=True)
class _Found:
    mentions: dict[str, Mentions] = field(default_factory=dict)

    def add(self, key: str, name: str, *, part: bool = False) -> None:
        name = POSSESSIVE.sub("", name)
        known = self.mentions.setdefault(key, Mentions(name, part=True))
        known.count += 1
        known.part = known.part and part
        known.name = min(known.name, name)


def fold(text: str) -> str:
    """The form in which names are compared: compatibility-normalised, case-folded, without `'s`."""
    if text.isalpha() and text.isascii():
        return text.lower()
    folded = POSSESSIVE.sub("", unicodedata.normalize("NFKC", text)).replace("‐", "-").replace("’", "'").casefold()
    return folded.strip(".")


def extract_entities(text: str) -> dict[str, Mentions]:
    """Key → mentions, of every entity named in `text`. Linear in its length."""
    plain: set[str] = set()
    words = list(_words(text, plain))
    evidence = _Evidence(words, plain)
    found = _Found()
    for run in _runs(text, words):
        name = _trimmed(run)
        if name and evidence.speaks_for(name):
            _add_name(found, text, name)
    for match in CJK_NAME.finditer(text):
        found.add(fold(match[match.lastgroup or 0]), match[match.lastgroup or 0])
    return found.mentions


def candidate_names(question: str) -> dict[str, list[tuple[int, int]]]:
    """Key → places (start, end) in `question`, of everything in it that might be the name of an entity.

    Case doesn't matter. All word sequences of up to MAX_WORDS words but single stop words; in scripts without spaces
    all short substrings. Which of them are known is for the caller to find out; `longest` then chooses.
    """
    words = list(_words(question))
    places: dict[str, list[tuple[int, int]]] = {}
    for size in range(min(MAX_WORDS, len(words)), 0, -1):
        for first in range(len(words) - size + 1):
            run = words[first : first + size]
            if size == 1 and run[0].key in STOP_WORDS and run[0].kind is not _Kind.ABBREVIATION:
                continue
            places.setdefault(_key(run), []).append((run[0].start, run[-1].end))
    for unspaced in CJK_RUN.finditer(question):
        for start in range(unspaced.start(), unspaced.end()):
            for end in range(start + 2, min(unspaced.end(), start + MAX_CJK_CHARS) + 1):
                places.setdefault(fold(question[start:end]), []).append((start, end))
    return dict(list(places.items())[:MAX_CANDIDATES])


def longest(places: Mapping[str, Sequence[tuple[int, int]]], known: Set[str]) -> list[str]:
    """The known names of a question, each place of it read as the longest name that fits; in their order there."""
    spans = sorted(
        (start - end, start, end, key) for key, where in places.items() if key in known for start, end in where
    )
    taken: list[tuple[int, int, str]] = []
    for _, start, end, key in spans:
        if all(end <= other_start or start >= other_end for other_start, other_end, _ in taken):
            taken.append((start, end, key))
    return list(dict.fromkeys(key for _, _, key in sorted(taken)))


def _words(text: str, plain: set[str] | None = None) -> Iterator[_Word]:
    """The words of a text. With `plain`, those that can stand in no name are only added to it: nine of ten."""
    for line in LINE.finditer(text):
        content, offset = line.group(), line.start()
        shouted = content.isupper() and content.count(" ") > 2
        for piece in SPACED.finditer(content):
            if plain is not None and _stands_in_no_name(bare := piece.group().strip(PUNCTUATION)):
                plain.add(bare)
                continue
            for match in WORD.finditer(content, *piece.span()):
                yield _word(match.group(), content, match.start(), offset, shouted)


def _stands_in_no_name(word: str) -> bool:
    return word.islower() and word.isascii() and word.isalpha() and word not in ANY_PARTICLE


def _word(word: str, line: str, start: int, offset: int, shouted: bool) -> _Word:
    place = (offset + start, offset + start + len(word))
    if word.islower() and word.isascii() and word.isalpha():
        return _Word(word, word, *place, _Kind.PLAIN, False)
    kind = _kind(word, shouted)
    return _Word(word, fold(word), *place, kind, kind is _Kind.CAPITALISED and _starts_sentence(line, start))


def _kind(word: str, shouted: bool) -> _Kind:
    if word.isalpha():
        if word.islower() or shouted:
            return _Kind.PLAIN
        if word.isupper() and len(word) > 1:
            return _Kind.ABBREVIATION
    elif DIGIT.search(word):
        named = word[0].isalpha() or sum(map(str.isupper, word)) > 1
        return _Kind.CODE if named and len(word) > 1 else _Kind.PLAIN
    elif "_" in word or word.endswith(("++", "#")):
        return _Kind.CODE
    elif word.isupper() and sum(map(str.isalpha, word)) > 1:
        return _Kind.PLAIN if shouted else _Kind.ABBREVIATION
    if not word[1:].islower() and INNER_CAPITAL.search(word):
        return _Kind.CODE
    return _Kind.CAPITALISED if word[0].isupper() or word[0].istitle() else _Kind.PLAIN


def _starts_sentence(line: str, position: int) -> bool:
    before = line[max(0, position - 12) : position]
    return not before.strip() or bool(SENTENCE_START.search(before))


def _runs(text: str, words: Sequence[_Word]) -> Iterator[list[_Word]]:
    """Longest sequences of words that can be named, small particles between them included."""
    run: list[_Word] = []
    waiting: list[_Word] = []  # particles that belong to the name if it goes on
    for word in words:
        previous = waiting[-1] if waiting else run[-1] if run else None
        joined = previous is not None and _are_joined(text, previous, word)
        if joined and word.kind is not _Kind.PLAIN:
            run += [*waiting, word]
            waiting = []
        elif joined and word.text in (FURTHER_PARTICLES if waiting else PARTICLES) and len(waiting) < 2:
            waiting.append(word)
        else:
            if run:
                yield run
            run, waiting = ([word] if word.kind is not _Kind.PLAIN else []), []
    if run:
        yield run


def _are_joined(text: str, before: _Word, after: _Word) -> bool:
    gap = text[before.end : after.start]
    if GAP_IN_NAME.fullmatch(gap):
        return True
    is_initial = len(before.text) == 1 and before.text.isupper()
    return is_initial and bool(GAP_AFTER_INITIAL.fullmatch(gap)) and after.key not in STOP_WORDS


def _trimmed(run: Sequence[_Word]) -> list[_Word]:
    """A run without what only stands before or after the name; empty if nothing is left."""
    name = list(run)
    while name and _only_leads(name[0]):
        name.pop(0)
    while name and (name[-1].text in PARTICLES or _is_common(name[-1]) or name[-1].key in CURRENCIES):
        name.pop()
    return [] if len(name) == 1 and _is_no_name_alone(name[0]) else name


def _is_no_name_alone(word: _Word) -> bool:
    return len(word.text) < 2 or (word.key in NEVER_ALONE and not word.is_name_by_form)


def _only_leads(word: _Word) -> bool:
    if word.is_name_by_form:
        return False
    return word.text in PARTICLES or word.key in (LEADING if word.at_start else ARTICLES)


def _is_common(word: _Word) -> bool:
    return word.key in STOP_WORDS and not word.is_name_by_form


def _add_name(found: _Found, text: str, name: Sequence[_Word]) -> None:
    if len(name) <= MAX_WORDS:
        found.add(_key(name), text[name[0].start : name[-1].end])
    if len(name) == 1:
        return
    for word in name:
        is_code = word.kind is _Kind.CODE
        if is_code or (len(word.text) > 2 and word.kind is not _Kind.PLAIN and not _is_common(word)):
            found.add(word.key, word.text, part=not is_code)


def _key(words: Sequence[_Word]) -> str:
    return " ".join(word.key for word in words)
