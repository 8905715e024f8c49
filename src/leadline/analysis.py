"""How text becomes search terms: the one analyser behind every lexical index and every count of shared words.

Pure and deterministic. Knows scripts, identifiers, English word endings and English stop words; knows no index. The
terms of a passage and the terms of a question come from two methods of one class, because what is stored may be
richer than what is asked: see `Analyzer`.
"""

import functools
import itertools
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal

import regex
import Stemmer

VERSION = "leadline-1"
# Longer terms are cut, in the index and in the question alike. Engines refuse terms of tens of kilobytes.
MAX_TERM_CHARS = 128
# Pieces of text whose terms are remembered are at most this long.
LONGEST_KEPT = 40

# Scripts written without spaces between words. ー belongs to both kana, so to neither by its script property.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
LETTER = rf"[[\p{{L}}\p{{M}}\p{{Nd}}\p{{Nl}}]--[{UNSPACED}\p{{Hangul}}]]"
# A part of an identifier: letters and digits, with the signs of C++ and C#.
PART = rf"{LETTER}+(?:\+\+(?!\+)|(?<!{LETTER}{LETTER})\#(?![\p{{L}}\p{{N}}]))?"
TOKEN = regex.compile(
    rf"""(?V1)
      (?P<unspaced>[{UNSPACED}]+)
    | (?P<hangul>\p{{Hangul}}+)
    | (?P<number>(?<![\p{{L}}\p{{N}}])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\p{{L}}\p{{N}},]))
    | (?P<word>{PART}(?:(?:[-./\\@&']|_+|::?){PART})*)
    """,
    flags=regex.VERBOSE,
)
SIGNS = regex.compile(r"[-./\\@&':_]+")
VERSION_NUMBER = regex.compile(r"v?(\d+(?:\.\d+){2,5})")
CONTRACTION = regex.compile(r"'(?:s|t|d|m|re|ve|ll)$", flags=regex.IGNORECASE)
CASE_CHANGE = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})")
# Soft hyphens, zero-width signs, byte order marks and tag characters: nothing a reader sees.
INVISIBLE = regex.compile(r"[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
ACCENTS = regex.compile(r"[\u0300-\u036f\u064b-\u0652\u0670]")
OTHER_DIGITS = regex.compile(r"(?V1)[\p{Nd}--[0-9]]")
LIKE_ASCII = str.maketrans({"’": "'", "ʼ": "'", "‐": "-", "‒": "-", "−": "-"})

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but
    by can could did do does doing done down during each else ever for from further had has have having he her here
    hers him his how i if in into is it its itself just may me might more most much must my no nor not of off on once
    only or other our ours out over own please same shall she should so some such tell than that the their theirs them
    then there these they this those through to too under until up upon us very was we were what when where whether
    which while who whom whose why will with would you your yours""".split()
)


class Analyzer:
    """Turns text into terms.

    `terms` is for what is stored and `query_terms` for what is asked. They agree on words: Unicode-normalised
    (NFKC), case-folded, without `'s` and its like; with `stemmer="english"`, plain Latin words are cut to their
    Snowball stem. Identifiers give the whole form and the parts (`ERR-4021`: err-4021, err, 4021; `getUserId`:
    getuserid, get, user, id); `C++` and `C#` stay whole; an accented word gives itself and its form without accents.
    In scripts without spaces and in Korean the terms are pairs of characters. What is stored has single characters
    too, so that a question of one character finds them, and stop words, so that a question of nothing else does.

    Safe to use from several threads. `name` goes into the manifest of an index: another name, another index.
    """

    def __init__(self, stemmer: Literal["english", "none"] = "english") -> None:
        self.name = f"{VERSION}/{stemmer}"
        self._stop_words = STOP_WORDS if stemmer == "english" else frozenset[str]()
        self._stem: Callable[[str], str] = english_stem if stemmer == "english" else str
        self._known = functools.lru_cache(maxsize=65536)(self._piece_terms)

    def terms(self, text: str) -> list[str]:
        """The terms to store for `text`, in its order, repeated as often as they occur."""
        found: list[str] = []
        # No token holds white space, so each piece between blanks can be read, and remembered, by itself.
        for piece in normalised(text).split():
            found.extend(self._known(piece) if len(piece) <= LONGEST_KEPT else self._piece_terms(piece))
        return found

    def _piece_terms(self, piece: str) -> tuple[str, ...]:
        found: list[str] = []
        for kind, token in tokens(piece):
            if kind == "word":
                found.extend(map(self._stem, word_forms(token)))
            else:
                found.extend(run_forms(kind, token))
                if len(token) > 1:
                    found.extend(characters(token))
        return tuple(found)

    def query_terms(self, text: str) -> list[str]:
        """The terms to look up for a question: without stop words, unless there is nothing else in it.

        Empty when `text` holds no letter and no digit.
        """
        found: list[str] = []
        in_capitals = text.isupper()
        for kind, token in tokens(text):
            if kind != "word":
                found.extend(run_forms(kind, token))
            elif not in_capitals and token.isupper() and len(token) > 1:
                found.extend(map(self._stem, word_forms(token)))  # WHO, IT and US are names
            else:
                found.extend(self._stem(form) for form in word_forms(token) if form not in self._stop_words)
        return found or self.terms(text)


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The kind and the normalised, not yet case-folded text of each run of letters and digits."""
    for match in TOKEN.finditer(normalised(text)):
        kind = match.lastgroup or ""
        if kind == "number":
            yield "word", match.group().replace(",", "")
        else:
            yield kind, match.group()


def normalised(text: str) -> str:
    """`text` in NFKC with ASCII digits, hyphens and apostrophes, and without what can't be seen."""
    if text.isascii():
        return text
    text = INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(LIKE_ASCII)
    return OTHER_DIGITS.sub(lambda digit: str(unicodedata.decimal(digit.group(), digit.group())), text)


def word_forms(token: str) -> list[str]:
    """The whole of a word or identifier, case-folded, then its parts where it has some."""
    if token.isascii() and token.isalpha() and (token.islower() or token[1:].islower()):
        return [token.lower()[:MAX_TERM_CHARS]]
    token = CONTRACTION.sub("", token)
    whole = token.casefold()
    pieces = [piece for piece in SIGNS.split(token) if piece]
    if len(pieces) > 1 and all(len(piece) == 1 and piece.isalpha() for piece in pieces) and "." in token:
        return [whole.replace(".", "")]  # U.S.A.
    forms = [whole, *version_forms(whole)]
    if len(pieces) > 1 and not is_decimal(token):
        forms.extend(piece.casefold() for piece in pieces)
    for piece in pieces:
        cased = CASE_CHANGE.split(piece)
        if len(cased) > 1:
            forms.extend(part.casefold() for part in cased if len(part) > 1)
    forms = [form[:MAX_TERM_CHARS] for form in forms]
    return list(dict.fromkeys(forms if token.isascii() else with_plain(forms)))


def is_decimal(token: str) -> bool:
    """Whether `token` is a number such as 0.05, whose halves mean nothing alone."""
    left, dot, right = token.partition(".")
    return bool(dot) and left.isdigit() and right.isdigit()


def version_forms(whole: str) -> list[str]:
    """For `v2.10.3`: 2.10.3 and 2.10, so that a question may leave out the v or the patch level."""
    match = VERSION_NUMBER.fullmatch(whole)
    if not match:
        return []
    levels = match.group(1).split(".")
    return [".".join(levels[:count]) for count in range(len(levels), 1, -1)]


def with_plain(forms: list[str]) -> Iterator[str]:
    """Each form, and behind it the form without accents where that is another one."""
    for form in forms:
        yield form
        plain = ACCENTS.sub("", unicodedata.normalize("NFD", form))
        if plain:
            yield unicodedata.normalize("NFC", plain)


def run_forms(kind: str, token: str) -> list[str]:
    """The pairs of characters of a run in a script without spaces; for Korean the whole word, then its pairs."""
    singles = characters(token)
    pairs = [first + second for first, second in itertools.pairwise(singles)]
    if kind == "hangul" and len(singles) > 2:
        return [token[:MAX_TERM_CHARS], *pairs]
    return pairs or singles


def characters(token: str) -> list[str]:
    """What a reader takes for one character: Thai vowel signs stay with their consonants."""
    found: list[str] = regex.findall(r"\X", token)
    return found


_stemmer_lock = threading.Lock()


@functools.lru_cache(maxsize=65536)
def english_stem(word: str) -> str:
    """The Snowball stem of a plain Latin word; anything else as it is."""
    if not (word.isascii() and word.isalpha()):
        return word
    with _stemmer_lock:
        stem: str = _stemmer().stemWord(word)
    return stem


@functools.cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english")
