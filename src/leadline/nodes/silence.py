"""Keeps NO_ANSWER, the word that stands for an empty answer, out of what is shown of a reply.

Knows the word and what models put around it. Knows no model and no event.
"""

import re
from typing import NamedTuple

from leadline.citations import NO_ANSWER

# The blanks and marks before the word, and the marks, citations and one sign behind it, go with it.
_BEFORE = r"\s{0,8}[*`\"'(]{0,2}"
_WORD = re.compile(
    rf"{_BEFORE}(?<![A-Za-z0-9_]){NO_ANSWER}(?![A-Za-z0-9_])[*`\"')]{{0,2}}(?:\s?\[\d{{1,3}}\]){{0,3}}[.:;,!]?"
)
_BEGINNINGS = "|".join(NO_ANSWER[:length] for length in range(len(NO_ANSWER), 0, -1))
_BEGUN = re.compile(rf"{_BEFORE}(?:{_BEGINNINGS})?\Z")
# The most that can stand behind the word and go with it.
_BEHIND_CHARS = 21


class WithoutNoAnswer:
    """A reply piece by piece without the word. Holds back some forty characters at most, from a possible beginning on.

    However the reply is cut, the pieces give the same text. Blanks before its first word go too: a reply of nothing
    but NO_ANSWER is an empty one.
    """

    def __init__(self) -> None:
        self._held = ""
        self._last = ""  # what was shown last, which says whether a word begins

    def feed(self, text: str) -> str:
        """What can be shown after this piece."""
        self._held += text
        shown = ""
        while (found := self._find()) and len(self._held) - found.end > _BEHIND_CHARS:
            shown += self._taken(found)
        if found:
            return shown + self._shown(found.start)
        begun = _BEGUN.search(self._held)
        return shown + self._shown(begun.start() if begun else len(self._held))

    def flush(self) -> str:
        """What was held back, at the end."""
        shown = ""
        while found := self._find():
            shown += self._taken(found)
        return shown + self._shown(len(self._held))

    def _find(self) -> "_Found | None":
        found = _WORD.search(self._last + self._held, len(self._last))
        return _Found(found.start() - len(self._last), found.end() - len(self._last)) if found else None

    def _taken(self, found: "_Found") -> str:
        """What stands before the word, which goes."""
        length = found.end - found.start
        shown = self._shown(found.start)
        self._held = self._held[length:]
        return shown

    def _shown(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        text = text if self._last else text.lstrip()
        self._last = text[-1:] or self._last
        return text


class _Found(NamedTuple):
    start: int
    end: int
