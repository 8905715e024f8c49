"""A figure that stands at the place, but for another thing: in a clause of its own there, or as a share.

Knows clauses by their signs and words, and the noun that opens one. Doesn't look for figures that are nowhere.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from leadline.analysis import STOP_WORDS, english_stem
from leadline.citations.quantities import Quantity, quantities
from leadline.citations.sentences import text_sentences
from leadline.citations.wordforms import base_form

_CLAUSE = re.compile(r"[;,]\s+(?:and |but |while |whereas )?|\s(?:and|but|while|whereas)\s")
_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_MEANT = re.compile(r"\b(?:it|its|he|his|she|her|they|their|this|these|that|those|who|which)\b", re.IGNORECASE)
_SHARE = re.compile(
    r"%|‰|\b(?:per ?cent\w*|prozent|pourcent|shares?|rates?|proportions?|ratios?|points?)\b", re.IGNORECASE
)
_RANGE = re.compile(r"\d\s*(?:[-–—]|to|and)\s*\Z")


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    amounts: tuple[Quantity, ...]
    stems: dict[str, None]

    def is_of_another(self, words: dict[str, None]) -> bool:
        """Whether it opens with a thing that the sentence of these words doesn't name, and says the same of that."""
        named = next(iter(words)) in self.stems or next(iter(self.stems), "") in words
        return not named and not self.stems.keys().isdisjoint(words) and not _MEANT.search(self.text)


def of_another_clause(sentence: str, text: str) -> str:
    """The figure of `sentence` that a clause of `text` has for another thing, beside one with the right thing's own.

    Children pay 8 EUR, where children pay half; pensioners pay 8 EUR. "" if there is none.
    """
    said = quantities(sentence)
    words = _stems(sentence, said)
    if len(said) != 1 or not words:
        return ""
    for part in text_sentences(text):
        clauses = _clauses(part)
        has = [any(map(said[0].agrees, clause.amounts)) for clause in clauses]
        own = [bool(clause.amounts) and words.keys() <= clause.stems.keys() for clause in clauses]
        if not any(own) or any(h and o for h, o in zip(has, own, strict=True)):
            continue
        if any(h and clause.is_of_another(words) for h, clause in zip(has, clauses, strict=True)):
            return said[0].text
    return ""


def stands_among(quantity: Quantity, sentence: str, amounts: Sequence[Quantity]) -> bool:
    """Whether one of `amounts` is that of `sentence`; a bare number is no percentage (30 people, 30 % of them)."""
    same = [amount for amount in amounts if quantity.agrees(amount)]
    bare = not quantity.unit and quantity.text.isdigit() and not _SHARE.search(sentence)
    if bare and not _RANGE.search(sentence[: quantity.start]):
        same = [amount for amount in same if amount.unit != "percent"]
    return bool(same)


@lru_cache(maxsize=1024)
def _clauses(sentence: str) -> tuple[_Clause, ...]:
    read = [(clause, tuple(quantities(clause))) for clause in _CLAUSE.split(sentence)]
    return tuple(_Clause(clause, amounts, _stems(clause, amounts)) for clause, amounts in read)


def _stems(text: str, amounts: Sequence[Quantity]) -> dict[str, None]:
    """The content words outside of the amounts, in order."""
    chars = list(text)
    for amount in amounts:
        chars[amount.start : amount.start + len(amount.text)] = " " * len(amount.text)
    words = (re.sub(r"[’']s?\Z", "", word).casefold() for word in _WORD.findall("".join(chars)))
    return {base_form(english_stem(word)): None for word in words if word not in STOP_WORDS}
