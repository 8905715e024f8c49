"""The pieces a chunk may be made of: sentences, list items, rows, lines, each with its length in tokens.

Knows blocks, sentences and the embedder's tokens. Doesn't know what goes together.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.ingest.extracted import Block
from leadline.models.base import Tokenizer
from leadline.sentences import boundaries, trimmed

LONG_TOKEN = 64
"""A tokenizer may take a word of any length for one unknown token; longer ones than this are cut, so that what they
hold isn't lost to the model. Counted in characters."""
LONG_TOKEN_COST = LONG_TOKEN // 2
"""What a cut piece of such a word is taken to cost in tokens: it may become up to one a character, hardly ever does."""
_SOFT_BREAK = re.compile(r"[;,:.!?、。；，]?\s")
SLICE = 50_000
"""Characters that are tokenized in one call."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A span of the whole text that a chunk takes or leaves whole. `starts_block` marks where a block begins."""

    start: int
    end: int
    tokens: int
    block: Block
    starts_block: bool
    cut: bool = False
    """Part of a sentence longer than the window."""


class TokenIndex:
    """The tokens of one block, tokenized once: counts and cut points by bisection."""

    def __init__(self, text: str, start: int, end: int, tokenizer: Tokenizer) -> None:
        spans = list(_token_spans(text, start, end, tokenizer))
        if all(last - first <= LONG_TOKEN for first, last in spans):
            self.starts = [first for first, _ in spans]
            self.costs: Sequence[int] = range(len(spans) + 1)
            return
        self.starts, costs = [], [0]
        for first, last in spans:
            pieces = range(first, last, LONG_TOKEN) if last - first > LONG_TOKEN else (first,)
            for piece in pieces:
                self.starts.append(piece)
                costs.append(costs[-1] + (LONG_TOKEN_COST if len(pieces) > 1 else 1))
        self.costs = costs

    def count(self, start: int, end: int) -> int:
        """Tokens that begin in the span."""
        return self.costs[bisect_left(self.starts, end)] - self.costs[bisect_left(self.starts, start)]

    def cut(self, text: str, start: int, end: int, budget: int) -> int:
        """The furthest end of a piece from `start` on that costs at most `budget`, back to a blank if one is near."""
        first = bisect_left(self.starts, start)
        last = bisect_left(self.costs, self.costs[first] + budget + 1) - 1
        last = max(last, first + 1)
        if last >= len(self.starts) or self.starts[last] >= end:
            return end
        limit = self.starts[last]
        floor = self.starts[first + 3 * (last - first) // 4]
        soft = [match.end() for match in _SOFT_BREAK.finditer(text, floor, limit)]
        strong = [stop for stop in soft if not text[stop - 2].isalnum()]
        return (strong or soft or [limit])[-1]


def _token_spans(text: str, start: int, end: int, tokenizer: Tokenizer) -> Iterator[tuple[int, int]]:
    """Token spans in a part of the text, tokenized by slices that end at a blank where there is one."""
    while start < end:
        stop = min(start + SLICE, end)
        if stop < end:
            blank = max(text.rfind(" ", start + SLICE // 2, stop), text.rfind("\n", start + SLICE // 2, stop))
            stop = blank if blank > 0 else stop
        for first, last in tokenizer.token_spans(text[start:stop]):
            yield start + first, start + last
        start = stop


def block_units(text: str, block: Block, tokenizer: Tokenizer, language: str, window: int) -> Iterator[Unit]:
    """The units of a block. Rows and list items stay whole if they fit the window, lines of code too, prose goes by
    sentences; what is longer than `window` tokens is cut between tokens."""
    index = TokenIndex(text, block.start, block.end, tokenizer)
    first = True
    for start, end in _spans(text, block, index, language, window):
        for piece in _fitting(text, start, end, index, window):
            if (span := trimmed(text, *piece)) is None:
                continue
            cut = piece != (start, end)
            yield Unit(*span, max(index.count(*span), 1), block, starts_block=first, cut=cut)
            first = False


def _spans(text: str, block: Block, index: TokenIndex, language: str, window: int) -> Iterator[tuple[int, int]]:
    whole = index.count(block.start, block.end) <= window
    if block.kind == "code":
        position = block.start
        for line in text[block.start : block.end].splitlines(keepends=True):
            yield position, position + len(line)
            position += len(line)
    elif whole and block.kind != "paragraph":
        yield block.start, block.end
    else:
        whole_text = text[block.start : block.end]
        for start, end in boundaries(whole_text, language):
            if (span := trimmed(whole_text, start, end)) is not None:
                yield block.start + span[0], block.start + span[1]


def _fitting(text: str, start: int, end: int, index: TokenIndex, window: int) -> Iterator[tuple[int, int]]:
    """The span itself, or its pieces of at most `window` tokens."""
    while start < end:
        stop = end if index.count(start, end) <= window else index.cut(text, start, end, window)
        yield start, stop
        start = stop
