"""How nodes call the LLM: the exact messages shown when asked for, and what a call cost.

Knows the chat contract and the usage keys of the state. Writes no prompt: those are files.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.errors import ChatFailed
from leadline.events import PromptEvent
from leadline.models.base import ChatModel, ChatUsage
from leadline.nodes.progress import emit
from leadline.state import Usage

OpenChat = Callable[[str], Awaitable[ChatModel]]
# A question or a query longer than this is no reply to what was asked.
MAX_LINE_CHARS = 1000


def show_prompt(
    runtime: Runtime[RunContext], node: str, model: ChatModel, messages: Sequence[Mapping[str, Any]]
) -> None:
    """Streams the messages as they are sent, when the run asks for that."""
    if runtime.context.show_prompts:
        emit(runtime, PromptEvent(node=node, model=model.name, messages=[dict(message) for message in messages]))


def usage_of(spent: ChatUsage) -> Usage:
    """One call, in the keys of the state."""
    return Usage(
        llm_calls=1,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        cost=spent.cost,
    )


async def ask_for_line(
    runtime: Runtime[RunContext], node: str, model: ChatModel, messages: Sequence[Mapping[str, Any]]
) -> tuple[str, Usage]:
    """A reply of one line, never shown as tokens, and what it cost. Raises ModelError: callers fall back to a rule."""
    show_prompt(runtime, node, model, messages)
    reply, spent = "", ChatUsage()
    async for delta in model.stream(messages):
        reply += delta.text
        spent = delta.usage if delta.finish_reason else spent
    line = next((line for raw in reply.splitlines() if (line := raw.strip().strip("\"'`“”„«»").strip())), "")
    if not line or len(line) > MAX_LINE_CHARS:
        raise ChatFailed(f"{model.name} replied with {len(line)} characters where one line was asked for.")
    return line, usage_of(spent)
