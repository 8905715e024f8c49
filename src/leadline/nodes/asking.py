"""How nodes call the LLM: whether the prompt fits, the exact messages shown when asked for, and what a call cost.

Knows the chat contract and the usage keys of the state. Writes no prompt: those are files.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.errors import ChatFailed, ChatInterrupted, ContextTooLong, ModelError
from leadline.events import PromptEvent
from leadline.models.base import ChatModel, ChatUsage
from leadline.nodes.progress import emit
from leadline.state import Usage

OpenChat = Callable[[str], Awaitable[ChatModel]]
# A question or a query longer than this is no reply to what was asked.
MAX_LINE_CHARS = 1000
# Finish reasons of a reply that is none, or not all of it: no tools are offered.
CUT_SHORT = frozenset({"length", "content_filter", "tool_calls", "function_call"})
# What is left of a model's window for its reply, and at most half of that window.
REPLY_TOKENS = 1000
MESSAGE_TOKENS = 8  # the marks of a role


def show_prompt(
    runtime: Runtime[RunContext], node: str, model: ChatModel, messages: Sequence[Mapping[str, Any]]
) -> None:
    """Streams the messages as they are sent, when the run asks for that."""
    if runtime.context.show_prompts:
        emit(runtime, PromptEvent(node=node, model=model.name, messages=[dict(message) for message in messages]))


def usage_of(spent: ChatUsage) -> Usage:
    """What was spent, in the keys of the state."""
    return Usage(
        llm_calls=spent.calls,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        cost=spent.cost,
    )


def usage_of_failure(error: ModelError) -> Usage:
    """What a call that failed or broke off has spent all the same, as far as known; one call at least."""
    known: Usage | None = getattr(error, "usage", None)
    return known or Usage(llm_calls=1)


async def room_for_prompt(model: ChatModel) -> int | None:
    """The tokens that a prompt may have, a reply's set aside; None where nobody says. Raises ModelError."""
    context = (await model.limits()).context
    return None if context is None else context - min(REPLY_TOKENS, context // 2)


async def prompt_tokens(model: ChatModel, messages: Sequence[Mapping[str, Any]]) -> int:
    """The tokens of the messages with the marks of their roles. Raises ModelError."""
    counted = await model.count_tokens([str(message["content"]) for message in messages])
    return sum(counted) + MESSAGE_TOKENS * len(counted)


async def refuse_too_long(model: ChatModel, messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises ContextTooLong for a prompt that the model can't take whole: many servers cut it without a word."""
    room = await room_for_prompt(model)
    if room is None or sum(len(str(message["content"]).encode()) + MESSAGE_TOKENS for message in messages) <= room:
        return  # a token has a byte at least
    tokens = await prompt_tokens(model, messages)
    if tokens > room:
        problem = f"The prompt has {tokens} tokens; {model.name} takes {room} beside its reply."
        raise ContextTooLong(problem, usage=Usage(llm_calls=0))  # nothing was sent


async def ask_for_line(
    runtime: Runtime[RunContext],
    node: str,
    model: ChatModel,
    messages: Sequence[Mapping[str, Any]],
    *,
    max_tokens: int | None = None,
) -> tuple[str, Usage]:
    """A reply of one line, never shown as tokens, and what it cost. Raises ModelError: callers fall back to a rule."""
    await refuse_too_long(model, messages)
    show_prompt(runtime, node, model, messages)
    reply, spent = "", ChatUsage()
    async for delta in model.stream(messages, max_tokens=max_tokens):
        reply = delta.text if delta.restart else reply + delta.text
        spent = delta.usage if delta.finish_reason else spent
        if delta.finish_reason in CUT_SHORT:
            raise ChatInterrupted(f"{model.name} was cut off: {delta.finish_reason}.", usage=usage_of(spent))
    line = next((line for raw in reply.splitlines() if (line := raw.strip().strip("\"'`“”„«»").strip())), "")
    if not line or len(line) > MAX_LINE_CHARS:
        problem = f"{model.name} replied with {len(line)} characters where one line was asked for."
        raise ChatFailed(problem, usage=usage_of(spent))
    return line, usage_of(spent)
