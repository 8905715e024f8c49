"""How nodes call the LLM: the exact messages shown when asked for, and what a call cost.

Knows the chat contract and the usage keys of the state. Writes no prompt: those are files.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from langgraph.runtime import Runtime
from pydantic import BaseModel

from leadline.config import RunContext
from leadline.events import PromptEvent
from leadline.models.base import ChatModel, ChatUsage
from leadline.nodes.progress import emit
from leadline.state import Usage

OpenChat = Callable[[str], Awaitable[ChatModel]]
T = TypeVar("T", bound=BaseModel)


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


async def ask_for(
    schema: type[T], runtime: Runtime[RunContext], node: str, model: ChatModel, messages: Sequence[Mapping[str, Any]]
) -> tuple[T, Usage]:
    """One structured reply and what it cost. Raises ChatFailed: callers fall back to their rule."""
    show_prompt(runtime, node, model, messages)
    reply, spent = await model.structured(messages, schema)
    return reply, usage_of(spent)
