"""A name in the place of another of the same passage: the words beside it stand there beside a name it doesn't say.

Names may come from the whole passage, since a source goes on with "she" or "it". So a wrong one of them is told only by
its place: who resigned after the fire, where the one sentence that says it has another name before `resigned`. Knows
words beside names, asides, and names put together of two; knows no grammar, and finds nothing where those words differ.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from leadline.analysis import STOP_WORDS, english_stem
from leadline.citations.names import Mentions, Name, names
from leadline.citations.sentences import text_sentences
from leadline.citations.wordforms import base_form

# Of a sentence's words other than names, the share that the place may lack and still be where it is said.
MAX_LACKING = 0.3
_TOKEN = re.compile(r"\w[\w.’'&/@+#-]*[\w+#]|\w|[^\w\s]")
_ROOT = 5
_FEW = 2
_SMALL = 4  # small words between a name and the word beside it, at most
_ASIDE = 13  # tokens of an aside: Dana Fox, the head of the board, resigned
_TRIED = 3  # names in one place that are looked at, and places
_NAMED = 24  # names of a sentence that are looked at; what has more of them lists them
_APART = 80  # characters between two names of one thing: Samuel Clemens, known as Mark Twain
_PREPOSITIONS = frozenset(
    "of in on at by to from with for into between against over under through during after before about".split()
)
# Behind one of these, who is meant stands in another sentence, or further before.
_PRONOUNS = frozenset(
    "he she it they we his her its their him them this these those who which whom whose that there and or".split()
)
_OBJECTS = frozenset(["it", "him", "them"])
_CLAUSES = _PRONOUNS - {"who", "and"} | {";", ":", "while", "whereas", "but", "although", "though"}
_DETERMINERS = frozenset("the this that these those his her its their a an another".split())
_JOINTS = frozenset([",", "and", "or", "&", "the", "of"])
_OTHERS_TOO = frozenset(["also", "too", "another"])
_SAME = re.compile(
    r"\b(?:known|called|named|nicknamed|alias|née|born|renamed|formerly|abbreviated|short|or|is|was|became)\b|\("
)
# Before a name, not part of it: President Kennedy.
_TITLES = frozenset(
    """president king queen pope emperor empress prince princess sir lord lady dr mr mrs ms professor saint st general
    captain minister prime chancellor bishop archbishop judge justice governor senator mayor colonel duke
    count""".split()
)

# A short answer stands behind its question.
_ASKED = re.compile(r"(?:Who|What|Which \w+) ([^?:]+): (.+?)\.?")

# On which side of a name, the prepositions between, and the stem of the word.
Beside = tuple[str, frozenset[str], str]


@dataclass(frozen=True, slots=True)
class _Row:
    """Names that stand in a row, where they begin, and what stands right beside them."""

    at: int
    words: tuple[str, ...]
    names: tuple[Name, ...]
    beside: frozenset[Beside]
    determined: bool

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def plain(self) -> tuple[str, ...]:
        return tuple(map(_plain, self.words))


@dataclass(frozen=True, slots=True)
class _Read:
    """A sentence of either text: `said` are the stems of its words other than names, `stems` those of all."""

    text: str
    tokens: tuple[str, ...]
    rows: tuple[_Row, ...]
    said: frozenset[str]
    stems: frozenset[str]
    roots: frozenset[str]

    def lacking(self, said: frozenset[str]) -> float:
        """The share of these stems that stand here neither as they are nor with another ending."""
        gone = [s for s in said if s not in self.stems and (s[:_ROOT] not in self.roots or not s.isalpha())]
        meant = not _OBJECTS.isdisjoint(self.tokens)  # it, for one of them
        return max(0, len(gone) - meant) / len(said) if len(said) - len(gone) > 1 else len(gone) / len(said)


def exchanged_name(sentence: str, *texts: str) -> str:
    """The name of `sentence` in whose place the texts have another, which the sentence never names; "" if none.

    The place is the sentence of the texts that lacks fewest of its words. A name that any like sentence has is right,
    as is one that may be meant by a pronoun there. Linear in the texts, which are remembered.
    """
    asked = _ASKED.fullmatch(sentence)
    claim = _read(f"{asked[2]} {asked[1]}" if asked else sentence)
    if not claim.rows or not claim.said:
        return ""
    there = [_read(text) for text in dict.fromkeys(part for text in texts for part in text_sentences(text))]
    lacking = [place.lacking(claim.said) for place in there]
    least = min(lacking, default=1.0)
    if least > MAX_LACKING:
        return ""
    best = [place for place, share in zip(there, lacking, strict=True) if share == least]
    like = [place for place, share in zip(there, lacking, strict=True) if share <= MAX_LACKING]
    near, beside = Mentions(*(place.text for place in like)), _besides(like)
    for row in claim.rows[:_NAMED] if asked is None else claim.rows[:1]:
        has = [near.has(name) for name in row.names]
        elsewhere = least == 0 and all(has) and _stands_beside_others(row, claim, beside)
        if (elsewhere or not any(has)) and _exchanged(row, claim, best, there):
            return row.text
        if any(has) and not all(has) and _put_together(row, claim, best, there):
            return row.text
    return ""


def _stands_beside_others(row: _Row, claim: _Read, beside: Mapping[str, Set[Beside]]) -> bool:
    """Whether the name is at the place, but beside other words than here: died in Oslo, not born in Oslo.

    Where the claim says little, only a preposition tells one word beside it from another.
    """
    told = len(claim.said) > _FEW or any(side == "before" and prepositions for side, prepositions, _ in row.beside)
    return told and bool(row.beside) and all(_differs(row.beside, beside.get(word, frozenset())) for word in row.plain)


def _differs(mine: Set[Beside], there: Set[Beside]) -> bool:
    """Whether none of it stands there, though other words do on the same side: the Foxes who stayed resigned."""
    return mine.isdisjoint(there) and {side for side, *_ in mine} <= {side for side, *_ in there}


def _besides(places: Iterable[_Read]) -> Mapping[str, Set[Beside]]:
    """What stands beside each word of a name, anywhere in these places."""
    found: defaultdict[str, set[Beside]] = defaultdict(set)
    for place in places:
        for row in place.rows:
            for word in row.plain:
                found[word] |= row.beside
    return found


def _exchanged(row: _Row, claim: _Read, best: Sequence[_Read], there: Sequence[_Read]) -> bool:
    """Whether another name, that the claim lacks, stands in this one's place."""
    own = _mentions(claim.text)
    others = [
        other
        for place in best
        if _OTHERS_TOO.isdisjoint(token.casefold() for token in place.tokens)
        for other in place.rows
        if (row.determined or not other.determined)
        and (not row.beside.isdisjoint(other.beside) or _both_open(row, other, place))
    ]
    lacked = [other for other in others[: _TRIED * _TRIED] if not any(map(own.has, other.names))]
    return any(not _one_thing(row, other, there) for other in lacked[:_TRIED])


def _both_open(row: _Row, other: _Row, place: _Read) -> bool:
    """Whether both open their sentence, and the claim's verb stands further behind, no other having come between."""
    if row.at > 1 or other.at > 1:
        return False
    verbs = {stem for side, prepositions, stem in row.beside if side == "behind" and not prepositions}
    for token in place.tokens[other.at + len(other.words) :] if verbs else ():
        if token.casefold() in _CLAUSES or (token[0].isupper() and _plain(token) in row.plain):
            return False
        if _has_content(token) and _stem(token) in verbs:
            return True
    return False


def _one_thing(row: _Row, other: _Row, there: Iterable[_Read]) -> bool:
    """Whether a text says that two names are of one thing: known as, formerly, in brackets."""
    mine, theirs = row.plain[-1], other.plain[-1]
    for place in there:
        lower = place.text.casefold()
        first, last = sorted((lower.find(mine), lower.find(theirs)))
        if first >= 0 and last - first < _APART and _SAME.search(lower[first:last]):
            return True
    return False


def _put_together(row: _Row, claim: _Read, best: Sequence[_Read], there: Sequence[_Read]) -> bool:
    """Whether a name is one half of a name at the place and one half that stands with it nowhere: Mira Fox."""
    if not _TITLES.isdisjoint(row.plain):
        return False
    own = _mentions(claim.text)
    for place in best[:_TRIED]:
        here = _mentions(place.text)
        half = {word for word, name in zip(row.plain, row.names, strict=True) if here.has(name)}
        rest = set(row.plain) - half
        left_out = any(
            not half.isdisjoint(other.plain) and not all(map(own.has, other.names)) for other in place.rows if half
        )
        if rest and left_out and not any(_has_both(half, rest, other.text.casefold()) for other in there):
            return True
    return False


def _has_both(half: set[str], rest: set[str], text: str) -> bool:
    return any(word in text for word in rest) and any(word in text for word in half)


_mentions = lru_cache(maxsize=1024)(Mentions)


@lru_cache(maxsize=2048)
def _read(text: str) -> _Read:
    tokens = tuple(_TOKEN.findall(text))
    rows = _joined(tokens, _rows(tokens, {name.text.casefold(): name for name in names(text) if not name.code}))
    named = {place for row in rows for place in range(row.at, row.at + len(row.words))}
    stems = {place: _stem(token) for place, token in enumerate(tokens) if token[0].isalnum()}
    said = frozenset(stem for place, stem in stems.items() if place not in named and _has_content(tokens[place]))
    every = frozenset(stems.values())
    return _Read(text, tokens, rows, said, every, frozenset(stem[:_ROOT] for stem in every if len(stem) >= _ROOT))


def _rows(tokens: Sequence[str], known: dict[str, Name]) -> Iterator[_Row]:
    is_name = [token[0].isupper() and _plain(token) in known for token in tokens]
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and is_name[end]:
            end += 1
        if end > at:
            words = tuple(tokens[at:end])
            beside = frozenset([*_behind(tokens, at, end, is_name), *_before(tokens, at, is_name)])
            determined = at > 0 and tokens[at - 1].casefold() in _DETERMINERS
            yield _Row(at, words, tuple(known[_plain(word)] for word in words), beside, determined)
        at = max(end, at + 1)


def _joined(tokens: Sequence[str], rows: Iterable[_Row]) -> tuple[_Row, ...]:
    """Rows with what stands beside those that they are listed with: Mira Stone and Tom Hale opened it."""
    lists: list[list[_Row]] = []
    for row in rows:
        end = lists[-1][-1].at + len(lists[-1][-1].words) if lists else 0
        between = [token.casefold() for token in tokens[end : row.at]]
        if lists and (_JOINTS.issuperset(between) or (between[-2:-1] == ["and"] and between[-1] in _PREPOSITIONS)):
            lists[-1].append(row)
        else:
            lists.append([row])
    every = [frozenset[Beside]().union(*(row.beside for row in group)) for group in lists]
    return tuple(replace(row, beside=beside) for group, beside in zip(lists, every, strict=True) for row in group)


def _behind(tokens: Sequence[str], at: int, end: int, is_name: Sequence[bool]) -> Iterator[Beside]:
    """The word behind, also behind small words (was born), or an aside, as a name is one: the head, Fox, resigned."""
    closes = {",": ",", "(": ")"}.get(tokens[end]) if end < len(tokens) else None
    aside = tokens[end + 1 : end + _ASIDE]
    starts = [end, end + 2 + aside.index(closes)] if closes in aside else [end]
    if at > 0 and end < len(tokens) and tokens[at - 1] == tokens[end] == ",":
        starts.append(end + 1)
    for start in starts:
        yield from _first(tokens, range(start, len(tokens)), is_name, "behind")


def _before(tokens: Sequence[str], at: int, is_name: Sequence[bool]) -> Iterator[Beside]:
    """The word before, also before small words: founded; born in."""
    yield from _first(tokens, range(at - 1, -1, -1), is_name, "before")


def _first(tokens: Sequence[str], places: range, is_name: Sequence[bool], side: str) -> Iterator[Beside]:
    small: list[str] = []
    for place in places[: _SMALL + 1]:
        lower = tokens[place].casefold()
        if lower in _PRONOUNS:
            return
        if _has_content(tokens[place]):
            if not is_name[place]:
                yield side, _PREPOSITIONS.intersection(small), _stem(tokens[place])
                if side == "before" and small == ["by"]:  # who opened it, where it was opened by them
                    yield "behind", frozenset(), _stem(tokens[place])
            return
        if lower not in STOP_WORDS:
            return
        small.append(lower)


def _has_content(token: str) -> bool:
    return token[0].isalnum() and token.casefold() not in STOP_WORDS


def _plain(word: str) -> str:
    return re.sub(r"[’']s?\Z", "", word).casefold()


def _stem(word: str) -> str:
    return base_form(english_stem(_plain(word)))
