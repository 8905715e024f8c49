"""Proper names and codes that a sentence mentions, and whether a text mentions them too.

By rule: capitals, digits within words, signs. Knows endings that turn a country into its people; knows no list of
names. A capital at the start of a sentence, and every noun of a German one, is a name only if more speaks for it.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from leadline.analysis import STOP_WORDS, normalised
from leadline.citations.units import UNITS
from leadline.citations.wordforms import same_place

_TOKEN = re.compile(r"\w[\w.’'&/@+#-]*[\w+#]|\w")
_CODE = re.compile(r"(?=.*[^\W\d_])(?=.*\d)|.*[_@#]|.*\+\+|\d+(?:\.\d+){2,}|.*[^\W_][a-zà-ÿ]+[A-ZÀ-Þ]|[A-ZÀ-Þ&]{2,}\Z")
_AMOUNT = re.compile(r"\d[\d.,]*(?:[^\W\d_]{1,3})?|\d+-\w+|[ivxlc]+", re.IGNORECASE)
_RUN = re.compile(r"\b[A-ZÀ-Þ]\w*(?:(?: (?:of|the|and|for))* [A-ZÀ-Þ]\w*)+")
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}|\b[A-Z]{2,}\b")
_SIGN = re.compile(r"[€$£¥%]")
_PLURAL = re.compile(r"s\Z")
_ENDINGS = ("ian", "an", "n", "ese", "ish", "y", "e")
_ROOT = 6
_SPELLED = 12  # words that a row of initials stands for, at most
_SENTENCE_END = re.compile(r"[.!?:;。！？\n\"“”(]\s*\Z|\A\W*\Z|^\s*[-*•]\s*\Z")
_AFTER_COMMON = (["of"], ["in"], ["on"], ["for"], ["to"], ["with"], ["that"], ["between"], ["from"])
_NO_NAME = re.compile(r"(?:ly|ing|ed|tion|ions|ment|ments|ness|ers|ists|ity)\Z")
# Words that open a sentence in capitals without being names, beyond the stop words.
_OPENERS = frozenset(
    """according accordingly additionally although among another around as because besides consequently despite due
    either even eventually everyone finally following for furthermore generally given hence however initially instead
    it its lastly later like likewise many meanwhile moreover near nearly neither nevertheless next no none note
    nonetheless now often only originally others overall people perhaps please previously rather recently regarding
    several similarly since some sometimes soon specifically subsequently such therefore though throughout thus today
    together typically unlike unless usually various when whenever where whereas whether while within without yes yet
    one two three four five six seven eight nine ten i we he she they you der die das ein eine im am zum nach bei für
    auf aus mit und wenn weil auch es sie er wir ihr le la les un une des il elle ils dans pour sur el los las una en
    along prior low lower high higher new newer old older early earlier late most more less least modern large larger
    small smaller great total main major minor local single double common general public private special various example
    examples casualties members part parts half over under about approximately roughly nearly almost just still even
    every each all both any other another same different first second third last final current former recent long short
    people men women children students workers scientists researchers experts evidence research water air light heat
    january february march april may june july august september october november december""".split()
)
_NO_NAMES = STOP_WORDS | _OPENERS | UNITS.keys()
_GERMAN = frozenset(
    """der die das und ist nicht ein eine wird mit für den dem im bis zum zur vom nach auch sich wurde wurden sind kann
    einer einem einen kein keine oder beträgt""".split()
)


@dataclass(frozen=True, slots=True)
class Name:
    """One capitalised word, or a `code`: a word with digits, signs or capitals inside.

    `opens`: its capital may be that of the sentence.
    """

    text: str
    code: bool
    opens: bool = False


def names(text: str) -> list[Name]:
    """The words of `text` that are names or codes, each once."""
    text = normalised(text)
    tokens = list(_TOKEN.finditer(text))
    words = [match.group() for match in tokens]
    german = len({word.casefold() for word in words} & _GERMAN) >= 2
    found = [
        name
        for place, match in enumerate(tokens)
        if (name := _name(match.group(), _opens(text, match), words[place + 1 : place + 2], german=german))
    ]
    return list(dict.fromkeys(found))


def _opens(text: str, match: re.Match[str]) -> bool:
    return bool(_SENTENCE_END.search(text[max(0, match.start() - 4) : match.start()]))


def _name(word: str, opens: bool, following: list[str], *, german: bool) -> Name | None:
    word = re.sub(r"[’']s?\Z", "", word)
    lower = word.casefold()
    if _AMOUNT.fullmatch(word) and not _CODE.fullmatch(word[-1:] * 2):
        return None
    if len(word) > 1 and _CODE.match(word):
        return Name(word, code=True)
    if not word[:1].isupper() or len(word) < 2 or lower in _NO_NAMES:
        return None
    in_a_row = following[0][:1].isupper() and following[0].casefold() not in STOP_WORDS if following else False
    if (german and not in_a_row) or (opens and not in_a_row and _is_common(word, following)):
        return None
    return Name(word, code=False, opens=opens and not in_a_row)


def written_out(text: str, sources: "Iterable[Mentions]") -> frozenset[str]:
    """The words of names in `text` that a source has as initials: United States for US."""
    initials = frozenset[str]().union(*(source.initials for source in sources))
    runs = (match.group() for match in _RUN.finditer(normalised(text)))
    return frozenset(word for run in runs for word in _spelled(run.split(), initials))


def _spelled(words: list[str], initials: frozenset[str]) -> list[str]:
    """The words, if their initials are known; those of a shorter run inside count too (the European Union said)."""
    for length in range(min(len(words), _SPELLED), 1, -1):
        for first in range(len(words) - length + 1):
            part = words[first : first + length]
            capitals = [word for word in part if word[0].isupper()]
            if part[0] in capitals and "".join(word[0] for word in capitals) in initials and len(capitals) > 1:
                return part
    return []


def _is_common(word: str, following: list[str]) -> bool:
    """Whether a word that opens a sentence looks like no name: by its ending, or as in `Results of` and `Humans in`."""
    return bool(_NO_NAME.search(word)) or (following[:1] in _AFTER_COMMON and len(word) > 3)


class Mentions:
    """The words of a source's text, made ready for looking names up in it."""

    def __init__(self, *texts: str) -> None:
        words = [word for text in texts for word in _words(text)]
        self._text = _fold(normalised("\n".join(texts)))
        self._words = frozenset(words)
        self._stems = frozenset(stem for word in words for stem in _stems(word))
        self._units = frozenset(UNITS[word] for word in [*words, *_SIGN.findall(self._text)] if word in UNITS)
        self._places = frozenset(place for word in words if (place := same_place(word)))
        self._roots = frozenset(word[:_ROOT] for word in words if len(word) >= _ROOT)
        self.initials = frozenset(w.replace(".", "") for text in texts for w in _INITIALS.findall(normalised(text)))
        tokens = [token for text in texts for token in _TOKEN.findall(normalised(text))]
        self._initials = "".join(_initial(token) for token in tokens if token[0].isupper())
        # A member of the Scottish Parliament is an MSP. Two letters would stand somewhere in any text.
        self._any_initials = "".join(_initial(token) for token in tokens if token.casefold() not in STOP_WORDS).upper()

    def has(self, name: Name) -> bool:
        """Whether the name stands in the text: as it is, in parts, as a people's name, or as the initials of words."""
        folded = _fold(name.text)
        if folded in self._words or folded.replace(".", "") in self._words:
            return True
        if UNITS.get(folded) in self._units:  # USD, where the text has $
            return True
        if same_place(folded.replace(".", "")) in self._places:
            return True
        parts = [part for part in re.split(r"[-/.’'&+]|(?<=\d)(?=a\Z)", folded) if part]  # 16A is 16 A
        if name.code:
            return self._stand_together(parts) or self._are_initials(name.text)
        return all(part in self._words or not self._stems.isdisjoint(_stems(part)) for part in parts) or (
            name.opens and folded[:_ROOT] in self._roots and len(folded) >= _ROOT
        )

    def _stand_together(self, parts: list[str]) -> bool:
        """Whether the parts of a code follow each other, however they are joined (GPT 4, GPT-4)."""
        together = r"[-\s/._’'&+]{0,2}".join(map(re.escape, parts))
        return len(parts) > 1 and re.search(rf"(?<!\w){together}(?!\w)", self._text) is not None

    def _are_initials(self, text: str) -> bool:
        letters = text.removesuffix("s").replace("-", "").replace(".", "")
        if not (len(letters) >= 2 and letters.isalpha() and letters.isupper()):
            return False
        return letters in self._initials or (len(letters) >= 3 and letters in self._any_initials)


def _initial(word: str) -> str:
    """The first letter; a word that is all capitals stands for itself (World War II)."""
    return word if len(word) > 1 and word.isalpha() and word.isupper() else word[0]


def _words(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(normalised(text)):
        word = _fold(re.sub(r"[’']s?\Z", "", match.group()))
        yield word
        yield word.replace(".", "")
        yield from (part for part in re.split(r"[-/.’'&_@+]", word) if part and part != word)


def _stems(word: str) -> set[str]:
    """The word without the endings of plurals and peoples, each as far as it may go; none for a short word."""
    stems = {word, _PLURAL.sub("", word)}
    stems |= {re.sub(rf"{ending}\Z", "", stem) for stem in stems for ending in _ENDINGS}
    return {stem for stem in stems if len(stem) >= 4}


def _fold(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))
