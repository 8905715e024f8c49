"""Numbers the evidence and fits it, by whole sentences, to the token budget and to what the LLM can take.

Knows the numbering `[n]` ↔ chunk id of the run: a chunk that has a number keeps it, also when all its text is left
out, so that a citation can never point elsewhere. The question is never shortened for it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.errors import ModelError
from leadline.models.base import ChatModel
from leadline.nodes.asking import OpenChat, prompt_tokens, room_for_prompt
from leadline.nodes.passages import Span, sentence_spans
from leadline.prompts import answer_prompt
from leadline.prompts.orders import asks_about_orders, orders_among
from leadline.state import Document, EvidenceBlock, RAGState, RAGUpdate

CountTokens = Callable[[str], int]
# With less room than this no passage can be shown; the prompt is then too long for the model, and the writer says so.
MIN_ROOM = 64


@dataclass(frozen=True, slots=True)
class _Budget:
    """How many tokens of evidence, and the model that counts them; None: the embedder's tokenizer does."""

    tokens: int
    model: ChatModel | None = None


async def compressor(
    state: RAGState, runtime: Runtime[RunContext], *, count_tokens: CountTokens, chat: OpenChat | None = None
) -> RAGUpdate:
    """Writes `evidence`: one block a context document, best first, then the numbers of earlier passes without text.

    Sentences are left out from the least relevant end, never a part of one, until `max_context_tokens` is met and,
    where an LLM writes, its window holds prompt and reply. Sentences that give orders to a model go first, unless the
    question is about such. `dropped` of a block counts all those left out.
    """
    context = state.get("context", [])
    if not context:
        return {}
    blocks, unused = await asyncio.to_thread(_numbered, context, state.get("evidence", []))
    if not asks_about_orders(state.get("question", "")):
        blocks = [_without_orders(block) for block in blocks]
    budget = await _budget(state, runtime.context, blocks, chat)
    costs = await _costs(blocks, budget.model, count_tokens)
    return {"evidence": [*_fitted(blocks, costs, budget.tokens), *unused]}


def _without_orders(block: EvidenceBlock) -> EvidenceBlock:
    """The block without sentences that give orders to a model: no writer is to see them, no quote to repeat them."""
    orders = orders_among([text for _, _, text in block["sentences"]])
    kept = [span for place, span in enumerate(block["sentences"]) if place not in orders]
    return EvidenceBlock({**block, "sentences": kept, "dropped": len(orders), "orders": len(orders)})


def _numbered(
    context: Sequence[Document], earlier: Sequence[EvidenceBlock]
) -> tuple[list[EvidenceBlock], list[EvidenceBlock]]:
    """The documents as whole blocks, and the blocks of earlier passes that none of them is, without their text."""
    numbers = {block["chunk_id"]: block["n"] for block in earlier}
    blocks: list[EvidenceBlock] = []
    for document in context:
        chunk_id = document["metadata"]["chunk_id"]
        n = numbers.setdefault(chunk_id, len(numbers) + 1)
        sentences = sentence_spans(document["content"], document["metadata"].get("language", "en"))
        blocks.append(EvidenceBlock(n=n, chunk_id=chunk_id, sentences=sentences, document=document))
    shown = {block["chunk_id"] for block in blocks}
    unused = [
        EvidenceBlock({**block, "sentences": [], "dropped": 0}) for block in earlier if block["chunk_id"] not in shown
    ]
    return blocks, unused


async def _budget(
    state: RAGState, context: RunContext, blocks: Sequence[EvidenceBlock], chat: OpenChat | None
) -> _Budget:
    """What the run allows, and less where its LLM can't take that. An LLM that can't say leaves the run's."""
    if not context.llm or chat is None:
        return _Budget(context.max_context_tokens)
    try:
        model = await chat(context.llm)
        tokens = min(context.max_context_tokens, (await model.limits()).evidence or context.max_context_tokens)
        room = await room_for_prompt(model)
        if room is not None:
            without_text = [EvidenceBlock({**block, "sentences": []}) for block in blocks]
            room -= await prompt_tokens(model, answer_prompt(state.get("question", ""), without_text))
            tokens = min(tokens, room) if room >= MIN_ROOM else tokens
        return _Budget(tokens, model)
    except ModelError:  # the writer calls it next, and says what is wrong with it
        return _Budget(context.max_context_tokens)


async def _costs(blocks: Sequence[EvidenceBlock], model: ChatModel | None, count_tokens: CountTokens) -> dict[str, int]:
    """The tokens of each sentence."""
    texts = list(dict.fromkeys(text for block in blocks for _, _, text in block["sentences"]))
    if model is not None:
        try:
            return dict(zip(texts, await model.count_tokens(texts), strict=True))
        except ModelError:
            pass
    return await asyncio.to_thread(lambda: {text: count_tokens(text) for text in texts})


def _fitted(blocks: Sequence[EvidenceBlock], costs: dict[str, int], budget: int) -> list[EvidenceBlock]:
    fitted, left = [], budget
    for block in blocks:
        kept, left = _fitting(block["sentences"], costs, left)
        dropped = block.get("dropped", 0) + len(block["sentences"]) - len(kept)
        fitted.append(EvidenceBlock({**block, "sentences": kept, "dropped": dropped}))
    return fitted


def _fitting(sentences: Sequence[Span], costs: dict[str, int], left: int) -> tuple[list[Span], int]:
    """The leading sentences that fit into `left` tokens, and what is left then."""
    kept: list[Span] = []
    for span in sentences:
        cost = costs[span[2]]
        if cost > left:
            break
        kept.append(span)
        left -= cost
    return kept, left
