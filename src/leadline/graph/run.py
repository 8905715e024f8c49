"""The one door: a question goes in, the events of its run come out, the last one with the Result.

Knows how a run starts, ends and fails on every surface. Opens what the graph depends on, once, and closes it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter

from leadline.config import RunContext, Settings
from leadline.errors import LeadlineError
from leadline.events import DegradedEvent, FinalEvent, RunEvent
from leadline.graph.build import Dependencies, build_graph
from leadline.graph.conversations import (
    PART,
    Conversations,
    ThreadInfo,
    ThreadView,
    Turn,
    open_conversations,
)
from leadline.graph.opening import dependencies, refuse_knobs
from leadline.graph.redaction import sweep
from leadline.graph.seal import sealed
from leadline.graph.threads import COLLECTION
from leadline.graph.watching import RunObserver, watched
from leadline.knowledge import Library, open_library
from leadline.nodes.planner import refuse_no_question
from leadline.nodes.web import AskConsent
from leadline.state import RAGInput, RAGState, Result, merge_unique
from leadline.telemetry import tracing

log = logging.getLogger(__name__)

Compiled = CompiledStateGraph[RAGState, RunContext, RAGInput, RAGState]

# Nodes on the way of one pass, from the search to reflection, and those of a run outside its passes.
STEPS_PER_PASS = 6
STEPS_AROUND = 4

_EVENTS: TypeAdapter[RunEvent] = TypeAdapter(RunEvent)


class App:
    """An open installation. One at a time serves any number of runs at once, one per conversation."""

    def __init__(self, settings: Settings, library: Library, conversations: Conversations, deps: Dependencies) -> None:
        self.settings = settings
        self.library = library
        self.conversations = conversations
        self.deps = deps
        self.observers: list[RunObserver] = []
        self.graph: Compiled = build_graph(deps).compile()

    async def stream(
        self,
        question: str,
        *,
        context: RunContext | None = None,
        thread_id: str | None = None,
        history: Sequence[Mapping[str, str]] = (),
    ) -> AsyncGenerator[RunEvent, None]:
        """The events of one run, as they happen; exactly one `final`, the last, also when the run fails.

        `context` is that of the settings where none is given. With `thread_id` the turns before are remembered and
        this one is kept; without, nothing is. Raises ThreadBusy while another run is on in that conversation, in this
        process or another, and ThreadElsewhere where it is about another collection. Where the conversations can't be
        used, the run has no memory and `checkpointer` stands in its `degraded`. Closing the iterator cancels the run.
        `history` is what was said before where there is no thread, as in ThreadView: it is used, and not kept.
        """
        context = context or self.settings.run
        async with aclosing(
            watched(self._run(question, context, thread_id, history), self.observers, context)
        ) as events:
            async for event in events:
                yield event

    async def _run(
        self, question: str, context: RunContext, thread_id: str | None, history: Sequence[Mapping[str, str]]
    ) -> AsyncGenerator[RunEvent, None]:
        async with self.conversations.turn(thread_id, context.collection) as turn:
            try:
                refuse_no_question(question)  # before the conversation has it
                await refuse_knobs(self.library, context)
                async for event in self._events(_given(history, question), context, turn, thread_id):
                    yield event
            except Exception as error:  # noqa: BLE001 a named degrade point: the run ends with an error result
                yield FinalEvent(result=dict(_with_failure(_failed(question, context, error), turn)))

    async def ask(
        self,
        question: str,
        *,
        context: RunContext | None = None,
        thread_id: str | None = None,
        history: Sequence[Mapping[str, str]] = (),
    ) -> Result:
        """The result of one run, without its events. Same arguments as `stream`."""
        result: Result | None = None
        async with aclosing(self.stream(question, context=context, thread_id=thread_id, history=history)) as events:
            async for event in events:
                if isinstance(event, FinalEvent):
                    result = event.result  # type: ignore[assignment]  # a Result in its wire form
        assert result is not None, "a run always ends with a final event"
        return result

    async def _events(
        self, given: RAGInput, context: RunContext, turn: Turn | None, thread_id: str | None
    ) -> AsyncGenerator[RunEvent, None]:
        config: RunnableConfig = {"recursion_limit": recursion_limit(context)}
        options: dict[str, Any] = {"stream_mode": ["custom", "values"], "context": context}
        graph = self.graph
        if turn is not None and turn.saver is not None:
            graph, options["durability"] = graph.copy({"checkpointer": turn.saver}), "exit"
            config["configurable"] = {"thread_id": thread_id}
            config["metadata"] = {COLLECTION: context.collection}
        state: dict[str, Any] = {}
        told = False
        try:
            if turn is not None and turn.failed:
                told = True
                yield _told(turn.failed)
            async with aclosing(graph.astream(given, config, **options)) as parts:  # type: ignore[type-var]  # an async generator, typed as an iterator
                async for mode, part in parts:
                    if mode == "custom":
                        yield _EVENTS.validate_python(part)
                    else:
                        state = part
        finally:
            if turn is not None and state.get("redacted"):
                await self._purge()
        if turn is not None and turn.failed and not told:
            yield _told(turn.failed)
        yield FinalEvent(result=dict(_with_failure(state["result"], turn)))

    async def threads(self) -> list[ThreadInfo]:
        """The stored conversations, the one used last first. Raises StoreError."""
        return await self.conversations.listed()

    async def thread(self, thread_id: str) -> ThreadView:
        """A stored conversation, without the answers whose documents are gone. Raises ThreadUnknown, StoreError."""
        return await self.conversations.view(thread_id, self.library.still_there)

    async def delete_thread(self, thread_id: str) -> None:
        """Removes a conversation from the store and its files. Raises ThreadUnknown, ThreadBusy, StoreError."""
        await self.conversations.delete(thread_id)

    async def forget_deleted(self) -> int:
        """Takes the answers that were made from documents deleted since out of every conversation, on disk too.

        Returns how many conversations had some. A turn does this for its own conversation when it begins; this is for
        right after a deletion. Raises StoreError.
        """
        return await sweep(await self.conversations.threads(), self.library.still_there)

    async def _purge(self) -> None:
        try:
            await (await self.conversations.threads()).purge()
        except Exception as error:  # noqa: BLE001 - the conversation itself is clean, and so is what a model is shown
            log.warning("%s", error)


@asynccontextmanager
async def open_app(
    settings: Settings, *, ask_consent: AskConsent | None = None, library: Library | None = None
) -> AsyncIterator[App]:
    """Opens the library (unless one is given, which stays open), and compiles the graph.

    Conversations are opened by the first question in one, models when the first question needs them. `ask_consent` is
    asked with the outgoing query when the web is to be searched and consent is `ask`. Raises StoreError, ConfigError.
    """
    tracing.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, tracing.flush)
        if library is None:
            library = await stack.enter_async_context(open_library(settings))
        conversations = await stack.enter_async_context(open_conversations(settings))
        yield App(settings, library, conversations, dependencies(settings, library, ask_consent=ask_consent))


def recursion_limit(context: RunContext) -> int:
    """Enough steps for the first pass, every retry and one escalation; a run that wants more is broken."""
    return STEPS_AROUND + STEPS_PER_PASS * (context.max_retries + 2)


def _given(history: Sequence[Mapping[str, str]], question: str) -> RAGInput:
    before = [HumanMessage(m["text"]) if m["role"] == "user" else AIMessage(m["text"]) for m in history]
    return RAGInput(messages=[*before, HumanMessage(question)])


def _told(error: Exception) -> DegradedEvent:
    return DegradedEvent(part=PART, reason=str(error) or type(error).__name__)


def _with_failure(result: Result, turn: Turn | None) -> Result:
    """The result, which says if the conversation could not be read or kept."""
    if turn is None or not turn.failed:
        return result
    return sealed({**result, "degraded": merge_unique(result["degraded"], [PART])})


def _failed(question: str, context: RunContext, error: Exception) -> Result:
    """The result of a run that broke: what broke is said beside the answer, never in it."""
    code, hint = "internal", "This is a fault of the program: please report it."
    if isinstance(error, LeadlineError):
        code, hint = error.code, error.hint
    elif isinstance(error, GraphRecursionError):
        code = "recursion"
    message = error.message if isinstance(error, LeadlineError) else f"{type(error).__name__}: {error}"
    return Result(
        question=question,
        status="error",
        answer="",
        citations=[],
        verdict={"evidence": "nothing", "grounding": "not_attempted", "action": "finish", "reason": message},
        flags=[],
        context=[],
        queries=[],
        web_used=False,
        degraded=[],
        usage={},
        models={"llm": context.llm or "extractive"},
        generation=0,
        indexing=[],
        error={"code": code, "message": message, "hint": hint},
    )
