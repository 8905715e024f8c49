"""Numbers the evidence and fits it to the token budget by whole sentences.

Knows the numbering `[n]` ↔ chunk id of the run: a chunk that has a number keeps it, also when all its text is left
out, so that a citation can never point elsewhere.
"""

import asyncio
from collections.abc import Callable, Sequence

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.nodes.passages import Span, sentence_spans
from leadline.state import Document, EvidenceBlock, RAGState, RAGUpdate

CountTokens = Callable[[str], int]


async def compressor(state: RAGState, runtime: Runtime[RunContext], *, count_tokens: CountTokens) -> RAGUpdate:
    """Writes `evidence`: one block a context document, best first, then the numbers of earlier passes without text.

    Sentences are left out from the least relevant end until `max_context_tokens` is met; never a part of one.
    """
    context = state.get("context", [])
    if not context:
        return {}
    budget = runtime.context.max_context_tokens
    return {
        "evidence": await asyncio.to_thread(_number_and_fit, context, state.get("evidence", []), budget, count_tokens)
    }


def _number_and_fit(
    context: Sequence[Document], earlier: Sequence[EvidenceBlock], budget: int, count_tokens: CountTokens
) -> list[EvidenceBlock]:
    numbers = {block["chunk_id"]: block["n"] for block in earlier}
    blocks: list[EvidenceBlock] = []
    left = budget
    for document in context:
        chunk_id = document["metadata"]["chunk_id"]
        n = numbers.setdefault(chunk_id, len(numbers) + 1)
        language = document["metadata"].get("language", "en")
        kept, left = _fitting(sentence_spans(document["content"], language), left, count_tokens)
        blocks.append(EvidenceBlock(n=n, chunk_id=chunk_id, sentences=kept, document=document))
    shown = {block["chunk_id"] for block in blocks}
    unused = [EvidenceBlock({**block, "sentences": []}) for block in earlier if block["chunk_id"] not in shown]
    return [*blocks, *unused]


def _fitting(sentences: Sequence[Span], left: int, count_tokens: CountTokens) -> tuple[list[Span], int]:
    """The leading sentences that fit into `left` tokens, and what is left then."""
    kept: list[Span] = []
    for span in sentences:
        cost = count_tokens(span[2])
        if cost > left:
            break
        kept.append(span)
        left -= cost
    return kept, left
