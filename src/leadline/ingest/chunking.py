"""Cuts a text into chunks that an embedder reads whole.

Knows tokens, sentences, pages and headings. Knows no file format and no store. Chunks don't overlap: each is an exact
slice of the text, a sentence stands in one chunk only, so a citation names one place and nothing is found twice. What a
chunk lacks of its surroundings comes from its prefix: the path of headings, and the header row of a table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from leadline.drafts import ChunkDraft
from leadline.ingest.extracted import Block, Extracted
from leadline.ingest.units import Unit, block_units
from leadline.models.base import Tokenizer
from leadline.sentences import trimmed

PREFIX_SHARE = 4
# Tokens of whole sentences add up, but for a few at the joints of some tokenizers: below this share of the window the
# sum is trusted, above it the chunk is counted again.
SAFE = 0.9
"""The prefix may take one part in this many of the model's window."""
SEPARATOR = " > "
HALF_FULL = 0.5
"""A chunk filled to this share of its budget ends at a block's end rather than take part of the next block."""


def chunk(
    extracted: Extracted,
    tokenizer: Tokenizer,
    *,
    chunk_tokens: int = 200,
    language: str = "en",
    check: Callable[[], None] = lambda: None,
) -> tuple[tuple[ChunkDraft, ...], tuple[str, ...]]:
    """The chunks in order, and notes on what had to be shortened or cut.

    A chunk lies on one page and under one heading. It holds whole sentences, list items and table rows, about
    `chunk_tokens` tokens of them; a single one that is longer has a chunk of its own, and is cut between tokens only
    when it alone exceeds the window. Prefix and text together never exceed `tokenizer.max_tokens`. A heading goes into
    the prefix of what stands under it, and into the text only where nothing does. Linear in the length of the text.
    `check` is called every now and then, at least once in 50,000 characters: what it raises ends the work.
    """
    cutter = _Cutter(extracted.text, tokenizer, chunk_tokens, language, check)
    drafts = tuple(draft for section in _sections(extracted.blocks) for draft in cutter.section(section))
    return drafts, tuple(cutter.notes())


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks of one page under one path of headings."""
    kept = [*_without_titles(blocks)]
    for _, section in groupby(kept, key=lambda block: (block.page, block.headings)):
        yield list(section)


def _without_titles(blocks: Sequence[Block]) -> Iterator[Block]:
    """All blocks but the headings that something stands under: those are in its path."""
    for i, block in enumerate(blocks):
        below = blocks[i + 1 : i + 2]
        if block.kind != "heading" or not below or len(below[0].headings) <= len(block.headings):
            yield block


class _Checked:
    """A tokenizer that checks before each text: one block can be the whole file."""

    def __init__(self, tokenizer: Tokenizer, check: Callable[[], None]) -> None:
        self._tokenizer = tokenizer
        self._check = check
        self.max_tokens = tokenizer.max_tokens

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        self._check()
        return self._tokenizer.token_spans(text)


class _Cutter:
    """Cuts the sections of one text and counts what it had to do to them."""

    def __init__(
        self, text: str, tokenizer: Tokenizer, chunk_tokens: int, language: str, check: Callable[[], None]
    ) -> None:
        self._text = text
        self._check = check
        self._tokenizer = _Checked(tokenizer, check)
        self._window = tokenizer.max_tokens
        self._target = min(chunk_tokens, self._window)
        self._language = language
        self._lengths: dict[str, int] = {}
        self._shortened: set[tuple[str, ...]] = set()
        self._cut_sentences = 0

    def notes(self) -> Iterator[str]:
        if self._shortened:
            yield f"{len(self._shortened)} heading paths were too long for the window and were shortened for search."
        if self._cut_sentences:
            yield f"{self._cut_sentences} chunks hold part of a sentence that is longer than the model's window."

    def section(self, blocks: list[Block]) -> Iterator[ChunkDraft]:
        units = []
        for block in blocks:
            for unit in block_units(self._text, block, self._tokenizer, self._language, self._window):
                self._check()
                units.append(unit)
        for group in self._pack(units):
            self._check()
            yield from self._drafts(group)

    def _pack(self, units: list[Unit]) -> Iterator[list[Unit]]:
        """Groups of neighbours that fit the budget."""
        group: list[Unit] = []
        used = budget = 0
        sizes = _block_sizes(units)
        for unit in units:
            if group and self._is_full(used, budget, unit, sizes[unit.block]):
                kept = self._leave_header(group)
                yield group[: len(group) - len(kept)]
                group, used = kept, sum(one.tokens for one in kept)
            if not group or used == 0:
                budget = min(self._target, self._window - self._prefix_tokens(unit.block))
            group.append(unit)
            used += unit.tokens
        if group:
            yield group

    @staticmethod
    def _is_full(used: int, budget: int, unit: Unit, block_tokens: int) -> bool:
        if used + unit.tokens > budget:
            return True
        return unit.starts_block and used >= HALF_FULL * budget and used + block_tokens > budget

    @staticmethod
    def _leave_header(group: list[Unit]) -> list[Unit]:
        """A table's header row at the end of a full group goes to the rows that follow."""
        return group[-1:] if len(group) > 1 and group[-1].block.kind == "table_header" else []

    def _drafts(self, group: list[Unit]) -> Iterator[ChunkDraft]:
        """The chunk of a group; halves of it where the tokens turn out to be more than were counted."""
        tokens = sum(unit.tokens for unit in group)
        draft = self._draft(group, tokens)
        if tokens + self._cached_count(draft.prefix) <= SAFE * self._window and not any(unit.cut for unit in group):
            yield draft
            return
        size = self._count(draft.embedded_text)
        if size > self._window:
            # The sum of the parts was too low (a word cut in pieces); count the whole before giving up on it.
            draft = self._draft(group, self._count(draft.text))
            size = self._count(draft.embedded_text)
        if size > self._window and len(group) > 1:
            yield from self._drafts(group[: len(group) // 2])
            yield from self._drafts(group[len(group) // 2 :])
            return
        if size > self._window:
            yield from self._halves(group[0])
            return
        self._cut_sentences += any(unit.cut for unit in group)
        yield draft

    def _halves(self, unit: Unit) -> Iterator[ChunkDraft]:
        middle = (unit.start + unit.end) // 2
        for half in ((unit.start, middle), (middle, unit.end)):
            if (span := trimmed(self._text, *half)) is not None:
                yield from self._drafts([replace(unit, start=span[0], end=span[1], cut=True)])

    def _draft(self, group: list[Unit], tokens: int) -> ChunkDraft:
        start, end, block = group[0].start, group[-1].end, group[0].block
        prefix = self._prefix(block, min(self._window // PREFIX_SHARE, self._window - tokens))
        return ChunkDraft(self._text[start:end], start, end, prefix, block.page, block.headings)

    def _prefix_tokens(self, block: Block) -> int:
        return self._cached_count(self._prefix(block, self._window // PREFIX_SHARE))

    def _prefix(self, block: Block, room: int) -> str:
        """Headings and table header within `room` tokens: outer headings go first, then the header's tail."""
        header = self._clipped(block.prefix, room)
        parts = list(block.headings)
        while parts and self._cached_count(_joined(parts, header)) > room:
            parts.pop(0)
        if len(parts) < len(block.headings):
            self._shortened.add(block.headings)
        if not parts and block.headings and not header:
            return self._clipped(block.headings[-1], room)
        return _joined(parts, header)

    def _clipped(self, text: str, room: int) -> str:
        """As many whole tokens of `text` as there is room for."""
        if not text or room <= 0:
            return ""
        spans = self._tokenizer.token_spans(text)
        if len(spans) <= room:
            return text
        clipped = text[: spans[room - 1][1]].rstrip()
        return clipped if self._count(clipped) <= room else ""

    def _cached_count(self, text: str) -> int:
        if text not in self._lengths:
            self._lengths[text] = self._count(text)
        return self._lengths[text]

    def _count(self, text: str) -> int:
        return len(self._tokenizer.token_spans(text)) if text else 0


def _joined(headings: Sequence[str], header: str) -> str:
    return "\n".join(filter(None, (SEPARATOR.join(headings), header)))


def _block_sizes(units: list[Unit]) -> dict[Block, int]:
    sizes: dict[Block, int] = {}
    for unit in units:
        sizes[unit.block] = sizes.get(unit.block, 0) + unit.tokens
    return sizes
