"""The budgets of a run, kept at each call of an LLM: one that could go over is not made.

Knows what was spent and what a call may cost at most. A reply is bounded by what is left of tokens and money, and cut
off when the run's seconds are over. Every LLM that a node opens goes through here, so no node can forget to ask.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langgraph.runtime import Runtime
from pydantic import BaseModel

from leadline.config import Budgets, RunContext
from leadline.errors import ChatFailed, ModelError
from leadline.models.base import ChatDelta, ChatLimits, ChatModel, ChatUsage
from leadline.nodes.asking import OpenChat, prompt_tokens, usage_of, usage_of_failure
from leadline.nodes.progress import overwrite, plain
from leadline.nodes.record import without_folder
from leadline.state import RAGState, RAGUpdate, Usage, add_usage, merge_unique
from leadline.telemetry import Span, span

T = TypeVar("T", bound=BaseModel)
Result = TypeVar("Result")
Node = Callable[[RAGState, Runtime[RunContext]], Awaitable[RAGUpdate]]

# A reply of fewer tokens is of no use.
MIN_REPLY_TOKENS = 16
# The longest reply of a model of which nobody says what it can take.
UNKNOWN_REPLY_TOKENS = 4096
# What asking for a repair says beside the reply and the problem.
REPAIR_TOKENS = 200


class BudgetSpent(ChatFailed):
    """A call that was not made, or not ended, since it would have gone over the budget `limit`."""

    def __init__(self, limit: str, *, usage: Usage | None = None) -> None:
        spent = usage or Usage(llm_calls=0)
        super().__init__(f"The run's budget of {limit.replace('_', ' ')} is spent.", usage=spent)
        self.limit = limit


@dataclass(slots=True)
class Ledger:
    """What a run has spent. `limits` names the budgets that stood in the way of something."""

    budgets: Budgets
    usage: Usage
    started_at: float
    limits: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """What is left of the run's time."""
        return self.started_at + self.budgets.seconds - time.time()

    def refuse(self, limit: str, *, usage: Usage | None = None) -> BudgetSpent:
        """The error to raise, noted."""
        self.limits = merge_unique(self.limits, [limit])
        return BudgetSpent(limit, usage=usage)

    def add(self, usage: Usage) -> None:
        """Counts what a call has spent."""
        self.usage = add_usage(self.usage, usage)

    def tokens_left(self) -> int:
        """Prompt and completion together."""
        return self.budgets.tokens - self.usage.get("prompt_tokens", 0) - self.usage.get("completion_tokens", 0)

    def money_left(self) -> float:
        """In the currency of the prices."""
        return self.budgets.money - self.usage.get("cost", 0.0)

    def require_call(self, calls: int) -> None:
        """Raises BudgetSpent where `calls` more calls, or any time at all, are not left."""
        if self.seconds <= 0:
            raise self.refuse("seconds")
        if self.usage.get("llm_calls", 0) + calls > self.budgets.llm_calls:
            raise self.refuse("llm_calls")

    async def within_time(self, work: Awaitable[Result], so_far: Callable[[], Usage]) -> Result:
        """The result of `work`, unless the run's time is over first: then BudgetSpent with what it spent `so_far`."""
        try:
            async with asyncio.timeout(max(0.0, self.seconds)) as clock:
                return await work
        except TimeoutError:
            if not clock.expired():
                raise
            raise self.refuse("seconds", usage=so_far()) from None


class BudgetedChat:
    """A chat model whose calls are bounded by what the ledger has left, and counted in it."""

    def __init__(self, model: ChatModel, ledger: Ledger) -> None:
        self._model = model
        self._ledger = ledger

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    async def limits(self) -> ChatLimits:
        """The model's."""
        return await self._model.limits()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The model's count."""
        return await self._model.count_tokens(texts)

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """As the model's; a reply that the budget cuts off is a failure, not an answer. Raises BudgetSpent."""
        with self._span() as told:
            async with aclosing(self._stream(messages, max_tokens)) as deltas:
                async for delta in deltas:
                    if delta.finish_reason:
                        told.set(_spent(usage_of(delta.usage), delta.finish_reason))
                    yield delta

    async def _stream(
        self, messages: Sequence[Mapping[str, Any]], max_tokens: int | None
    ) -> AsyncGenerator[ChatDelta, None]:
        self._ledger.require_call(1)
        bound, prompt, limit = await self._bound(messages, max_tokens)
        received: list[str] = []

        def so_far() -> Usage:
            return Usage(llm_calls=1, prompt_tokens=prompt, completion_tokens=min(bound, len("".join(received))))

        try:
            async with aclosing(self._model.stream(messages, max_tokens=bound)) as deltas:  # type: ignore[type-var]  # an async generator, typed as an iterator
                while (delta := await self._ledger.within_time(anext(deltas, None), so_far)) is not None:
                    received.append(delta.text)
                    if delta.finish_reason:
                        self._ledger.add(usage_of(delta.usage))
                        if delta.finish_reason == "length" and limit:
                            raise self._ledger.refuse(limit, usage=usage_of(delta.usage))
                    yield delta
        except BudgetSpent as error:
            if error.limit == "seconds":
                self._ledger.add(error.usage or Usage())
            raise
        except ModelError as error:
            self._ledger.add(usage_of_failure(error))
            raise

    async def structured(
        self, messages: Sequence[Mapping[str, Any]], schema: type[T], *, max_tokens: int | None = None
    ) -> tuple[T, ChatUsage]:
        """As the model's, its one repair set aside. Raises BudgetSpent."""
        self._ledger.require_call(2)
        asked = [*messages, {"content": json.dumps(schema.model_json_schema())}]
        bound, prompt, _ = await self._bound(asked, max_tokens, calls=2)
        spent = Usage(llm_calls=2, prompt_tokens=2 * prompt + bound, completion_tokens=2 * bound)
        try:
            with self._span() as told:
                work = self._model.structured(messages, schema, max_tokens=bound)
                found, usage = await self._ledger.within_time(work, lambda: spent)
                told.set(_spent(usage_of(usage)))
        except ModelError as error:
            self._ledger.add(usage_of_failure(error))
            raise
        self._ledger.add(usage_of(usage))
        return found, usage

    def _span(self) -> AbstractContextManager[Span]:
        named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": without_folder(self.name)}
        return span("llm", named, current=False)

    async def _bound(
        self, messages: Sequence[Mapping[str, Any]], wanted: int | None, *, calls: int = 1
    ) -> tuple[int, int, str]:
        """The longest reply that may be had, the tokens of the prompt, and the budget that shortened it ("": none).

        With `calls` 2 the prompt is sent twice, the second time with the first reply.
        """
        limits = await self._model.limits()
        prompt = await prompt_tokens(self._model, messages)
        longest = wanted or limits.reply or UNKNOWN_REPLY_TOKENS
        if limits.context is not None:
            longest = max(1, min(longest, limits.context - prompt))
        replies = 2 * calls - 1
        extra = REPAIR_TOKENS * (calls - 1)
        allowed = {"tokens": (self._ledger.tokens_left() - calls * prompt - extra) / replies}
        price = max(limits.prompt_price, limits.reply_price)
        if price > 0:
            left = self._ledger.money_left() - limits.prompt_price * (calls * prompt + extra)
            allowed["money"] = left / (calls * limits.reply_price + (calls - 1) * limits.prompt_price or price)
        limit = min(allowed, key=lambda name: allowed[name])
        if allowed[limit] >= longest:
            return longest, prompt, ""
        if allowed[limit] < MIN_REPLY_TOKENS:
            raise self._ledger.refuse(limit)
        return int(allowed[limit]), prompt, limit


def _spent(usage: Usage, finish: str | None = None) -> dict[str, str | int | float | bool]:
    told: dict[str, str | int | float | bool] = {
        "gen_ai.usage.input_tokens": usage.get("prompt_tokens", 0),
        "gen_ai.usage.output_tokens": usage.get("completion_tokens", 0),
    }
    return {**told, "leadline.finish_reason": finish} if finish else told


def metered(make: Callable[[OpenChat], Node], open_chat: OpenChat, *, begins: bool = False) -> Node:
    """The node that `make` gives for a way to open LLMs, with every LLM that it opens kept within the run's budgets.

    Its update names the budgets that stood in the way (`limits`). `begins`: the node starts the run, what the state
    says is of the last one.
    """

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        budgets = runtime.context.budgets
        spent, since = (Usage(), time.time()) if begins else (state.get("usage", {}), state["started_at"])
        ledger = Ledger(budgets, spent, since)

        async def opened(name: str) -> ChatModel:
            return BudgetedChat(await open_chat(name), ledger)

        update = await make(opened)(state, runtime)
        return _with_limits(state, update, ledger, begins=begins)

    return run


def _with_limits(state: RAGState, update: RAGUpdate, ledger: Ledger, *, begins: bool) -> RAGUpdate:
    if begins:  # its keys replace what the last run left
        return {**update, "limits": overwrite(merge_unique(ledger.limits, plain(update.get("limits", []))))}
    limits = merge_unique(ledger.limits, update.get("limits", []))
    if not limits:
        return update
    if "result" in update:
        update["result"]["limits"] = merge_unique(state.get("limits", []), limits)
    return {**update, "limits": limits}
