"""Where in a numbered passage a sentence has its support: the shortest run of sentences that passes the rules.

Knows evidence blocks and their offsets; a place is always an exact slice of the passage's own text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.citations.rules import Problem, check_sentence, coverage
from leadline.records import EvidenceBlock

MAX_SENTENCES = 3
_TRIED = 6
# A place with much fewer of the sentence's words speaks of something else, so its silence is no support.
NEAR = 0.7
_FIGURES = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Span:
    """`[start:end]` of the block's own text, and what is wrong with the sentence there."""

    block: EvidenceBlock
    start: int
    end: int
    problems: tuple[Problem, ...]
    share: float

    @property
    def quote(self) -> str:
        """The text of the place."""
        return self.block["document"]["content"][self.start : self.end]


def best_span(sentence: str, block: EvidenceBlock) -> Span:
    """The place in the block that supports `sentence` best: without problems if there is one, else with the fewest.

    Of equal places the shorter, then the earlier one. A place that says the opposite outweighs every other that has
    fewer of the sentence's words, and every longer one around it that has no more of them.
    """
    context = block_context(block)
    windows = [(_share(sentence, block, window), window) for window in dict.fromkeys(_windows(block))]
    near = max(share for share, _ in windows) * NEAR
    content, figures = block["document"]["content"], set(_FIGURES.findall(sentence))
    ranked = sorted(
        (len(figures.difference(_FIGURES.findall(content[start:end]))), -share, end - start, start)
        for share, (start, end) in windows
        if share >= near
    )[:_TRIED]
    spans = [_checked(sentence, block, (start, start + length), context) for *_, length, start in ranked]
    return min(standing(spans), key=lambda s: (len(s.problems), -s.share if s.problems else 0.0, len(s.quote), s.start))


def standing(spans: Sequence[Span]) -> list[Span]:
    """The places that no denial outweighs. Never empty if `spans` isn't: a denial stands."""
    denials = [span for span in spans if any(problem.kind == "negation" for problem in span.problems)]
    return [span for span in spans if span.problems or not any(_outweighs(denial, span) for denial in denials)]


def _outweighs(denial: Span, span: Span) -> bool:
    inside = denial.block is span.block and span.start <= denial.start and denial.end <= span.end
    return denial.share > span.share or (inside and denial.share == span.share)


def block_context(block: EvidenceBlock) -> str:
    """What else of the block may supply names: its whole text, headings, title and file name."""
    metadata = block["document"]["metadata"]
    headings = metadata.get("headings") or ()
    labels = [str(metadata.get(key) or "") for key in ("title", "file_name")]
    return "\n\n".join([*([headings] if isinstance(headings, str) else map(str, headings)), *labels, shown(block)])


def shown(block: EvidenceBlock) -> str:
    """The sentences of the block that the writer saw."""
    return " ".join(text for _, _, text in block["sentences"])


def _windows(block: EvidenceBlock) -> Iterator[tuple[int, int]]:
    """Start and end of every run of up to three sentences that stand next to each other in the passage."""
    content, sentences = block["document"]["content"], block["sentences"]
    for first in range(len(sentences)):
        for last in range(first, min(first + MAX_SENTENCES, len(sentences))):
            if last > first and content[sentences[last - 1][1] : sentences[last][0]].strip():
                break  # something between them was left out, so the writer never saw it
            if last > first and any(content.startswith("|", sentences[n][0]) for n in (last - 1, last)):
                break  # what stands in two rows of a table is said of two things
            yield _trimmed(content, sentences[first][0], sentences[last][1])
    if not sentences:
        yield 0, 0


def _trimmed(content: str, start: int, end: int) -> tuple[int, int]:
    text = content[start:end]
    return start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))


def _share(sentence: str, block: EvidenceBlock, window: tuple[int, int]) -> float:
    return round(coverage(sentence, block["document"]["content"][window[0] : window[1]]), 6)


def _checked(sentence: str, block: EvidenceBlock, window: tuple[int, int], context: str) -> Span:
    text = block["document"]["content"][window[0] : window[1]]
    problems = tuple(check_sentence(sentence, text, context=context))
    return Span(block, *window, problems, _share(sentence, block, window))
