"""Budgets at each call of an LLM: what could go over is not made, what is cut off is no answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from leadline.config import Budgets
from leadline.models.base import ChatDelta, ChatLimits, ChatUsage
from leadline.nodes.asking import MESSAGE_TOKENS
from leadline.nodes.spending import BudgetedChat, BudgetSpent, Ledger

ASKED = [{"role": "user", "content": "one two three"}]
PROMPT = 3 + MESSAGE_TOKENS


class Reply(BaseModel):
    """What is asked for."""

    ok: bool


class WordChat:
    """Replies with `words` words, a token each, and keeps to `max_tokens` as servers do."""

    name = "words"

    def __init__(self, words: int = 5, *, pause_s: float = 0.0, **limits: Any) -> None:
        self.words, self.pause_s, self._limits = words, pause_s, ChatLimits(**limits)
        self.bounds: list[int | None] = []

    async def limits(self) -> ChatLimits:
        """As given."""
        return self._limits

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words."""
        return [len(text.split()) for text in texts]

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """Word after word."""
        self.bounds.append(max_tokens)
        said = self.words if max_tokens is None else min(self.words, max_tokens)
        for _ in range(said):
            await asyncio.sleep(self.pause_s)
            yield ChatDelta("word ")
        finish = "stop" if said == self.words else "length"
        yield ChatDelta(finish_reason=finish, usage=ChatUsage(PROMPT, said, 0.0))

    async def structured(self, messages: Any, schema: Any, *, max_tokens: int | None = None) -> Any:
        """An object."""
        self.bounds.append(max_tokens)
        await asyncio.sleep(self.pause_s)
        return schema(ok=True), ChatUsage(20, 5, 0.0)


def ledger(usage: Any = None, **budgets: Any) -> Ledger:
    """A run that began just now."""
    return Ledger(Budgets(**budgets), usage or {}, time.time())


async def reply(chat: BudgetedChat, max_tokens: int | None = None) -> str:
    """The whole reply."""
    return "".join([delta.text async for delta in chat.stream(ASKED, max_tokens=max_tokens)])


async def test_a_call_within_the_budget_is_as_the_models_own() -> None:
    """The reply, and what it cost in the ledger."""
    book = ledger()
    assert await reply(BudgetedChat(WordChat(), book)) == "word " * 5
    assert book.usage == {"llm_calls": 1, "prompt_tokens": PROMPT, "completion_tokens": 5, "cost": 0.0}
    assert book.limits == []


@pytest.mark.parametrize(
    ("usage", "budgets", "limit"),
    [
        ({"llm_calls": 3}, {"llm_calls": 3}, "llm_calls"),
        ({"prompt_tokens": 80, "completion_tokens": 10}, {"tokens": 100}, "tokens"),
        ({"cost": 0.9}, {"money": 1.0}, "money"),
    ],
)
async def test_a_call_that_could_go_over_is_not_made(usage: Any, budgets: Any, limit: str) -> None:
    """Nothing is sent, nothing is spent, and the budget is named."""
    model, book = WordChat(prompt_price=0.01, reply_price=0.01), ledger(usage, **budgets)
    with pytest.raises(BudgetSpent) as caught:
        await reply(BudgetedChat(model, book))
    assert (caught.value.limit, caught.value.usage) == (limit, {"llm_calls": 0})
    assert (model.bounds, book.limits, book.usage) == ([], [limit], usage)


async def test_the_reply_is_bounded_by_what_is_left() -> None:
    """Of tokens and of money, whichever is less; and by what the model can take."""
    model = WordChat(reply=50)
    await reply(BudgetedChat(model, ledger(tokens=100)))
    await reply(BudgetedChat(model, ledger(tokens=40)))
    await reply(BudgetedChat(WordChat(context=30), ledger()))
    assert model.bounds == [50, 40 - PROMPT]
    priced = WordChat(prompt_price=0.01, reply_price=0.02)
    await reply(BudgetedChat(priced, ledger(money=0.61)))
    assert priced.bounds == [25]


async def test_a_reply_that_the_budget_cuts_off_is_a_failure_with_its_cost() -> None:
    """Not a short answer: its end is missing. What it spent counts."""
    book = ledger(tokens=PROMPT + 20)
    with pytest.raises(BudgetSpent, match="tokens"):
        await reply(BudgetedChat(WordChat(words=500), book))
    assert book.usage["prompt_tokens"] + book.usage["completion_tokens"] <= PROMPT + 20
    assert book.limits == ["tokens"]


async def test_a_reply_ends_with_the_runs_time() -> None:
    """In the middle of a word if need be; what it may have cost until then counts."""
    book = ledger(seconds=0.2)
    begun = time.perf_counter()
    with pytest.raises(BudgetSpent, match="seconds"):
        await reply(BudgetedChat(WordChat(words=1000, pause_s=0.05), book))
    assert time.perf_counter() - begun < 5
    assert book.limits == ["seconds"]
    assert book.usage["llm_calls"] == 1
    late = Ledger(Budgets(seconds=1), {}, time.time() - 2)
    with pytest.raises(BudgetSpent, match="seconds"):
        await reply(BudgetedChat(WordChat(), late))


async def test_an_object_sets_its_repair_aside() -> None:
    """Two calls must be left, and tokens for both."""
    model, book = WordChat(), ledger()
    found, _ = await BudgetedChat(model, book).structured(ASKED, Reply)
    assert found == Reply(ok=True)
    assert book.usage["llm_calls"] == 1
    with pytest.raises(BudgetSpent, match="llm calls"):
        await BudgetedChat(model, ledger(llm_calls=1)).structured(ASKED, Reply)
    with pytest.raises(BudgetSpent, match="tokens"):
        await BudgetedChat(model, ledger(tokens=250)).structured(ASKED, Reply)
