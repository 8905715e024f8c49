"""The answer in LangGraph's `messages` stream mode, token by token as it is written.

Nodes tell of tokens in the custom stream and call no LangChain model, so that mode would have nothing before the end.
Knows LangGraph's handlers of that mode. Doesn't know who writes: an LLM's tokens and quotations are told alike.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.callbacks.manager import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langgraph.config import get_config
from langgraph.runtime import Runtime

from leadline.config import RunContext
from leadline.graph.tracing import Node
from leadline.state import RAGState, RAGUpdate


def speaking(node: Callable[[RAGState, Runtime[RunContext]], Awaitable[RAGUpdate]]) -> Node:
    """The node, whose tokens are a message of its own too. A draft that is taken back is another message than the next.

    Its update names the message of the last draft (`draft_id`).
    """

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        voice = _Voice()

        def write(event: Mapping[str, Any]) -> None:
            runtime.stream_writer(event)
            voice.hear(event)

        try:
            update = await node(state, runtime.override(stream_writer=write))
        finally:
            voice.end()
        return {**update, "draft_id": voice.message_id}

    return run


def as_spoken(node: Node) -> Node:
    """The node, whose answer is the message that the draft was streamed as: it replaces that, and isn't said twice."""

    async def run(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        update = await node(state, runtime)
        spoken = state.get("draft_id")
        if spoken and update.get("status") == "answered":
            for message in update.get("messages", []):
                if isinstance(message, AIMessage):
                    message.id = spoken
        return update

    return run


class _Voice:
    """Passes tokens on to whoever listens to messages, in both forms of LangGraph's: chunks, and events of a block."""

    def __init__(self) -> None:
        self.message_id = str(uuid4())
        self._listeners, self._metadata = _listening()
        self._runs: Sequence[CallbackManagerForLLMRun] = ()
        self._said = ""

    def hear(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "token":
            self._say(event["text"])
        elif event["type"] == "retract":
            self.end()
            self.message_id = str(uuid4())

    def _say(self, text: str) -> None:
        if not self._listeners:
            return
        if not self._runs:
            self._begin()
        self._said += text
        chunk = ChatGenerationChunk(message=AIMessageChunk(content=text, id=self.message_id))
        for run in self._runs:
            run.on_llm_new_token(text, chunk=chunk)
            run.on_stream_event({"event": "content-block-delta", "index": 0, "delta": _text(text, "text-delta")})

    def _begin(self) -> None:
        manager = CallbackManager(self._listeners, metadata=self._metadata)
        self._runs, self._said = manager.on_chat_model_start({}, [[]]), ""
        for run in self._runs:
            run.on_stream_event({"event": "message-start", "role": "ai", "id": self.message_id})
            run.on_stream_event({"event": "content-block-start", "index": 0, "content": _text("")})

    def end(self) -> None:
        """No more of this message."""
        whole = ChatGeneration(message=AIMessage(content=self._said, id=self.message_id))
        for run in self._runs:
            run.on_stream_event({"event": "content-block-finish", "index": 0, "content": _text(self._said)})
            run.on_stream_event({"event": "message-finish"})
            run.on_llm_end(LLMResult(generations=[[whole]]))
        self._runs = ()


def _text(text: str, kind: str = "text") -> Any:
    return {"type": kind, "text": text}


def _listening() -> tuple[list[BaseCallbackHandler], dict[str, Any]]:
    """Handlers that take tokens in the event loop, as those of streams do, and what they want to know of the node."""
    config = get_config()
    manager = config.get("callbacks")
    handlers = manager.handlers if isinstance(manager, BaseCallbackManager) else []
    return [handler for handler in handlers if handler.run_inline], dict(config.get("metadata", {}))
