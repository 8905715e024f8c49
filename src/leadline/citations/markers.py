"""The `[n]` marks of an answer: found, brought to one form, and cleared of numbers that don't exist.

The whole text and any cut of it into tokens give the same result. Doesn't know what a number stands for.
"""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

from leadline.citations.scanner import OPEN, Mark, Scanner

MAX_GAP_CHARS = 4
_GAP = re.compile(r"[ \t]*[(（]?[ \t]*")
_SEPARATOR = re.compile(r"[ \t]*[,;，、；]?[ \t]*")
_PUNCTUATION = frozenset(".,;:!?)]}»”’…。，、！？：；）】］\n\r")
_UNCLOSED_NUMBERS = re.compile(r"[\[【［][\d\s^\-–—‑~,;，、；]*\Z")


@dataclass(frozen=True, slots=True)
class Marker:
    """A mark in a text: `[start:end]` is the mark with a link behind it, `numbers` what it names, in its order."""

    start: int
    end: int
    numbers: tuple[int, ...]


def parse_markers(text: str) -> list[Marker]:
    """The marks of `text`: `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `[[1]]`, `【1】`, `[1](https://…)`, in any digits.

    Not marks: an index (`arr[0]`), anything in code, a footnote's definition, brackets around words, years, and
    brackets of more than 27 characters (a list of data).
    """
    if not any(bracket in text for bracket in OPEN):
        return []
    scanner = Scanner()
    pieces = [*scanner.feed(text), *scanner.flush()]
    return [Marker(piece.start, piece.end, piece.numbers) for piece in pieces if isinstance(piece, Mark)]


def clean_answer(text: str, known: Set[int]) -> tuple[str, list[int]]:
    """`text` with every mark written as `[n]`, and without the numbers that aren't `known`; these come second."""
    stream = MarkerStream(known)
    cleaned = stream.feed(text) + stream.flush()
    return cleaned, stream.removed


class MarkerStream:
    """Cleans an answer while it streams.

    What `feed` and `flush` return, joined, is `clean_answer`'s text, however the answer is cut into tokens. Never
    holds back more than 32 characters. `removed` lists the unknown numbers so far.
    """

    def __init__(self, known: Set[int]) -> None:
        self.removed: list[int] = []
        self._known = known
        self._scanner = Scanner()
        self._writer = _Writer()

    def feed(self, token: str) -> str:
        """The text that is safe to show after this token; often the token itself, sometimes empty."""
        return self._write(self._scanner.feed(token))

    def flush(self) -> str:
        """What was held back, at the end of the answer."""
        return self._write(self._scanner.flush()) + self._writer.end()

    def _write(self, pieces: Iterable[str | Mark]) -> str:
        out = []
        for piece in pieces:
            if isinstance(piece, str):
                out.append(self._writer.text(piece))
            else:
                self.removed.extend(n for n in piece.numbers if n not in self._known and n not in self.removed)
                out.append(self._writer.mark([n for n in piece.numbers if n in self._known]))
        return "".join(out)


class _Writer:
    """Writes characters and marks; closes the gaps that removed marks leave."""

    def __init__(self) -> None:
        self._gap = ""  # blanks, an opening bracket or a comma, not written yet
        self._before = ""  # the gap before a mark that was removed
        self._after: str = ""  # "mark" right behind a written mark, "hole" right behind a removed one
        self._group: set[int] = set()
        self._last = ""

    def mark(self, numbers: list[int]) -> str:
        new = [n for n in dict.fromkeys(numbers) if n not in self._group]
        lead = self._gap if not self._after else self._before if self._after == "hole" else ""
        self._gap = ""
        if new:
            self._group.update(new)
            self._after, self._before = "mark", ""
            return self._out(lead + "".join(f"[{n}]" for n in new))
        if self._after == "mark":
            return ""
        if _UNCLOSED_NUMBERS.search(self._last + lead):
            # Without a sign in the hole, what stands around it would close to a mark of its own.
            self._after = ""
            return self._out(lead + "…")
        self._after, self._before = "hole", lead
        return ""

    def text(self, char: str) -> str:
        if self._after:
            if _fits(_SEPARATOR, self._gap + char):
                self._gap += char
                return ""
            rest, self._gap = self._gap + char, ""
            out = self._close_hole(rest) if self._after == "hole" else ("", rest)
            self._after, self._before = "", ""
            self._group.clear()
            return self._out(out[0]) + "".join(self.text(c) for c in out[1])
        if _fits(_GAP, self._gap + char):
            self._gap += char
            return ""
        written, self._gap = self._gap, ""
        if written and _fits(_GAP, char):
            self._gap = char
            return self._out(written)
        return self._out(written + char)

    def end(self) -> str:
        out = self._before.strip() + self._gap.strip() if self._after == "hole" else self._gap
        self._gap, self._before, self._after = "", "", ""
        return self._out(out)

    def _close_hole(self, rest: str) -> tuple[str, str]:
        """What to write for the gap before a removed mark, and what is left of the text behind it."""
        before, first = self._before, rest[0]
        bracket = before.rstrip()
        if bracket and first in ")）":
            return "", rest[1:]
        if bracket or not self._last.rpartition("\n")[2]:
            return before, rest.lstrip(" \t") if first in " \t" else rest
        if first in "." and self._last[-1:] in tuple(".!?。！？"):
            return "", rest[1:]
        if first in " \t" or first in _PUNCTUATION:
            return "", rest
        glued = f"{self._last[-1:]}{first}"
        return before or (" " if glued.isascii() and glued.isalnum() else ""), rest

    def _out(self, text: str) -> str:
        self._last = (self._last + text)[-64:]
        return text


def _fits(pattern: re.Pattern[str], text: str) -> bool:
    return len(text) <= MAX_GAP_CHARS and pattern.fullmatch(text) is not None
