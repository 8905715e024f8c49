"""Cuts streaming text into characters and citation marks.

Knows the many ways models write a mark, and what only looks like one (an index, code, a footnote's definition). It
never needs more than a few characters beyond a mark to tell.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

MAX_MARK_CHARS = 27
_PIECE_CHARS = 256
OPEN, CLOSE = "[【［", "]】］"
_NUMBERS = re.compile(r"\^?\d{1,3}(?:\s*[-–—‑~,;，、；\s]\s*\^?\d{1,3})*")
_RANGE = re.compile(r"(\d+)(?:\s*[-–—‑~]\s*\^?(\d+))?")
_INSIDE = frozenset(" \t^-–—‑~,;，、；")
_WORD_BEFORE = re.compile(r"\w+\Z")
# What is indexed in code far more often than cited in prose.
_VARIABLES = frozenset(
    """arr array args argv buf cells cols data dict elements idx items keys lines list lst map matrix nums obj params
    parts res row rows self str tmp tuple values vec xs ys""".split()
)
_URL_STARTS = ("(http://", "(https://", "(www.", "(#", "(/", "(mailto:")


@dataclass(slots=True)
class Mark:
    """`[start:end]` of the text; `end` still moves while a link behind the mark is swallowed."""

    start: int
    end: int
    numbers: tuple[int, ...]


class Scanner:
    """Yields characters and marks, in order, as soon as they are certain."""

    def __init__(self) -> None:
        self._held = ""
        self._at = 0  # where the held text starts
        self._tail = ""  # the text before, as far as it can matter
        self._line_empty = True
        self._code = _Code()
        self._index_end = -1  # where the last index such as arr[0] ended
        self._link: Mark | None = None  # the mark whose link may follow, or is being swallowed
        self._depth = 0

    def feed(self, text: str) -> Iterator[str | Mark]:
        """What is certain after this text. To be exhausted before the next call."""
        for at in range(0, len(text), _PIECE_CHARS):  # in pieces, so that time grows with the length only
            yield from self._scan(text[at : at + _PIECE_CHARS], final=False)

    def flush(self) -> Iterator[str | Mark]:
        """What is left at the end of the text."""
        yield from self._scan("", final=True)

    def _scan(self, text: str, *, final: bool) -> Iterator[str | Mark]:
        self._held += text
        while self._held:
            if self._link is not None and not self._after_mark(final=final):
                return
            if not self._held:
                return
            mark = (
                None if self._code.holds(self._held[0]) or self._held[0] not in OPEN else self._read_mark(final=final)
            )
            if mark is _MORE:
                return
            if mark is None:
                yield self._advance(1)
            else:
                assert isinstance(mark, Mark)
                self._advance(mark.end - mark.start)
                self._link, self._depth = mark, 0
                yield mark

    def _advance(self, count: int) -> str:
        passed, self._held = self._held[:count], self._held[count:]
        self._at += count
        self._tail = (self._tail + passed)[-48:]
        for char in passed:
            self._code.see(char, line_empty=self._line_empty)
            self._line_empty = char == "\n" or (self._line_empty and char in " \t")
        return passed

    def _after_mark(self, *, final: bool) -> bool:
        """Swallows the link behind a mark; False while more text is needed."""
        assert self._link is not None
        if self._depth == 0:
            start = next((s for s in _URL_STARTS if self._held.startswith(s)), None)
            if start is None:
                viable = any(s.startswith(self._held) for s in _URL_STARTS)
                self._link = self._link if viable and not final else None
                return self._link is None
        return self._swallow()

    def _swallow(self) -> bool:
        assert self._link is not None
        for place, char in enumerate(self._held):
            self._depth += (char == "(") - (char == ")")
            if char.isspace() or self._depth == 0:
                self._advance(place + (not char.isspace()))
                self._link.end, self._link = self._at, None
                return True
        self._advance(len(self._held))
        self._link.end = self._at
        return False

    def _read_mark(self, *, final: bool) -> "Mark | _More | None":
        """The mark that the held text starts with, None if it is none, _MORE if that can't be told yet."""
        held, double = self._held, self._held[1:2] in tuple(OPEN)
        first = 1 + double
        if len(held) == 1:
            return None if final else _MORE
        for place in range(first, len(held)):
            char = held[place]
            if place >= MAX_MARK_CHARS:
                return None
            if char in CLOSE:
                return self._close(held, first, place, final=final)
            if char not in _INSIDE and not char.isdecimal():
                return None
        return None if final or len(held) > MAX_MARK_CHARS else _MORE

    def _close(self, held: str, first: int, place: int, *, final: bool) -> "Mark | _More | None":
        numbers = _numbers(held[first:place])
        following = held[place + 1 : place + 2]
        if not numbers or self._tail.endswith("\\"):
            return None
        if not following and not final:
            return _MORE
        if first == 2 and (following == "" or following not in CLOSE):
            return None
        if self._line_empty and following == ":":
            return None
        if self._is_index(numbers):
            self._index_end = self._at + place + 1
            return None
        return Mark(self._at, self._at + place + first, numbers)

    def _is_index(self, numbers: tuple[int, ...]) -> bool:
        """Whether the bracket is an index into what stands before it, as in `x[1]` and `arr[0][2]`."""
        if self._index_end == self._at:
            return True
        word = _WORD_BEFORE.search(self._tail)
        if word is None or not word.group().isascii() or word.group().isdigit():
            return False
        name = word.group()
        return 0 in numbers or "_" in name or name in _VARIABLES or (len(name) == 1 and name.islower())


class _More:
    """Says that the text held so far doesn't settle the matter."""


_MORE = _More()


class _Code:
    """Follows code spans (to the matching backticks, at most to the end of the line) and fenced blocks."""

    def __init__(self) -> None:
        self._fence = ""
        self._span = 0
        self._run = ""
        self._run_at_line_start = False

    def see(self, char: str, *, line_empty: bool) -> None:
        self.holds(char)
        if char == "`" or (char == "~" and (line_empty or self._run)):
            self._run_at_line_start = line_empty if not self._run else self._run_at_line_start
            self._run += char
        elif char == "\n":
            self._span = 0

    def holds(self, char: str) -> bool:
        """Whether the next character, if it is this one, is code."""
        if self._run and char != self._run[0]:
            self._end_of_run()
        return bool(self._fence or self._span or self._run)

    def _end_of_run(self) -> None:
        run, self._run = self._run, ""
        fence = self._run_at_line_start and len(run) >= 3
        if self._fence:
            if fence and run.startswith(self._fence):
                self._fence = ""
        elif self._span:
            self._span = 0 if run == "`" * self._span else self._span
        elif fence:
            self._fence = run
        elif run[0] == "`":
            self._span = len(run)


def _numbers(inside: str) -> tuple[int, ...]:
    """The numbers a bracket names, () if what is inside isn't a list of them."""
    plain = unicodedata.normalize("NFKC", inside).strip()
    if not _NUMBERS.fullmatch(plain):
        return ()
    numbers: list[int] = []
    for first, last in _RANGE.findall(plain):
        low, high = int(first), int(last or first)
        if min(low, high) == 0 and plain != first:
            return ()  # [0-9] and [0, 1] are a class of digits and an interval
        numbers.extend(range(min(low, high), max(low, high) + 1) if abs(high - low) < 100 else (low, high))
    return tuple(dict.fromkeys(numbers))
