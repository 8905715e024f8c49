"""The one door: events and their end, conversations on disk, one run at a time in each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from leadline.config import MAX_QUESTION_CHARS, Budgets, RunContext, Settings
from leadline.errors import CollectionUnknown, StoreDamaged, ThreadBusy
from leadline.events import FinalEvent, StepEvent
from leadline.graph.conversations import open_conversations
from leadline.graph.run import App
from leadline.graph.threads_sqlite import open_sqlite

QUESTION = "When are roses pruned?"
SECRET = "outward bud"  # stands beside the sentence that answers, never in it


@pytest.fixture
def app_over(tmp_path: Path) -> Callable[..., Any]:
    """Opens an App over these dependencies, with real conversations in a file."""

    @asynccontextmanager
    async def opened(deps: Any) -> AsyncIterator[App]:
        settings = Settings(data_dir=tmp_path)
        async with open_conversations(settings) as conversations:
            library: Any = None  # toy legs need none
            yield App(settings, library, conversations, deps)

    return opened


def bytes_in(folder: Path) -> bytes:
    """Everything in the conversation's files."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("threads.db*")))


async def test_a_run_ends_with_exactly_one_final(app_over: Any, over: Any, garden: Any) -> None:
    """The last event holds the result that `ask` gives."""
    async with app_over(over(garden)) as app:
        events = [event async for event in app.stream(QUESTION)]
        finals = [event for event in events if isinstance(event, FinalEvent)]
        assert finals == events[-1:]
        asked: Any = await app.ask(QUESTION)
    streamed = finals[0].result
    for result in (streamed, asked):  # two runs take not the same time, and the hash is of that too
        assert result.pop("usage")
        assert result["record"].pop("result_hash")
    assert streamed == asked
    assert asked["status"] == "answered"


async def test_a_broken_run_ends_with_an_error_result(app_over: Any, over: Any) -> None:
    """What broke is in `error`, with its code and what to do; the answer stays empty; the node ended in error."""

    async def none(collection: str) -> Any:
        raise CollectionUnknown(f"There is no collection {collection}.", hint="Ingest something.")

    async with app_over(over(retrievers=none)) as app:
        events = [event async for event in app.stream(QUESTION)]
    assert isinstance(events[-1], FinalEvent)
    assert events[-1].result["error"] == {
        "code": "collection_unknown",
        "message": "There is no collection default.",
        "hint": "Ingest something.",
    }
    assert (events[-1].result["status"], events[-1].result["answer"]) == ("error", "")
    ends = [event.phase for event in events if isinstance(event, StepEvent) and event.node == "hybrid"]
    assert ends == ["start", "error"]


async def test_a_conversation_remembers_and_starts_fresh(app_over: Any, over: Any, garden: Any, scripted: Any) -> None:
    """After a first turn that spent everything, the second has its whole budget, and knows what `them` means."""
    chat = scripted(["Roses need 700 gardeners [1]."])
    spendthrift = RunContext(llm="x", max_retries=1, budgets=Budgets(llm_calls=2))
    async with app_over(over(garden, llm=chat)) as app:
        first = await app.ask("When are Roses pruned?", context=spendthrift, thread_id="t")
        assert first["status"] == "abstained"
        assert first["usage"]["llm_calls"] >= 1
        second = await app.ask("Where to cut them?", thread_id="t")
        assert second["question"] == "Where to cut them? (Roses)"
        assert "llm_calls" not in second["usage"]
        assert second["degraded"] == []
        assert second["queries"][0] == second["question"]


async def test_without_a_thread_nothing_is_kept(app_over: Any, over: Any, garden: Any, tmp_path: Path) -> None:
    """A single question leaves no conversation on disk."""
    async with app_over(over(garden)) as app:
        await app.ask(QUESTION)
        assert await app.threads() == []
    assert QUESTION.encode() not in bytes_in(tmp_path)


async def test_no_passage_reaches_the_disk(app_over: Any, over: Any, garden: Any, tmp_path: Path) -> None:
    """The conversation holds the answer and its quotes, not the text around them."""
    async with app_over(over(garden)) as app:
        result = await app.ask(QUESTION, thread_id="t")
        assert QUESTION.encode() in bytes_in(tmp_path)
        assert SECRET.encode() not in bytes_in(tmp_path)
        await app.ask("What is the capital of France?", thread_id="t")
    assert result["answer"].encode() in bytes_in(tmp_path)
    assert SECRET.encode() not in bytes_in(tmp_path)


async def test_a_cancelled_run_leaves_no_passage_and_a_usable_thread(
    app_over: Any, over: Any, garden: Any, tmp_path: Path
) -> None:
    """A client that goes away in the middle costs nothing: not on disk, not in the next turn."""
    async with app_over(over(garden)) as app:
        async with aclosing(app.stream(QUESTION, thread_id="t")) as events:
            async for event in events:
                if isinstance(event, StepEvent) and (event.node, event.phase) == ("compressor", "end"):
                    break
        assert SECRET.encode() not in bytes_in(tmp_path)
        result = await app.ask(QUESTION, thread_id="t")
        assert (result["status"], result["question"]) == ("answered", QUESTION)
    assert SECRET.encode() not in bytes_in(tmp_path)


async def test_a_run_that_breaks_in_a_thread_leaves_no_passage(
    app_over: Any, over: Any, garden: Any, tmp_path: Path
) -> None:
    """An error after the search stores nothing of what was found, and the thread goes on."""

    def breaks(text: str) -> int:
        raise RuntimeError("tokenizer")

    async with app_over(over(garden, count_tokens=breaks)) as app:
        assert (await app.ask(QUESTION, thread_id="t"))["status"] == "error"
    assert SECRET.encode() not in bytes_in(tmp_path)
    async with app_over(over(garden)) as app:
        assert (await app.ask(QUESTION, thread_id="t"))["status"] == "answered"


async def test_a_second_run_in_a_busy_thread_is_refused(app_over: Any, over: Any, garden: Any) -> None:
    """One run per conversation; another conversation, or a single question, goes on."""
    async with app_over(over(garden)) as app, aclosing(app.stream(QUESTION, thread_id="t")) as events:
        await anext(events)
        with pytest.raises(ThreadBusy):
            await app.ask(QUESTION, thread_id="t")
        for other in ("u", None):
            assert (await app.ask(QUESTION, thread_id=other))["status"] == "answered"
        async for _ in events:
            pass
        assert (await app.ask(QUESTION, thread_id="t"))["status"] == "answered"


async def test_many_runs_at_once_stay_apart(app_over: Any, over: Any, garden: Any) -> None:
    """Runs share the graph, not their state."""
    asked = [QUESTION, "What is the capital of France?", "Hello!"] * 4
    async with app_over(over(garden)) as app:
        results = await asyncio.gather(*(app.ask(question) for question in asked))
    assert [result["question"] for result in results] == asked
    assert [result["status"] for result in results] == ["answered", "abstained", "answered"] * 4


async def test_a_question_of_any_length_ends_soon(app_over: Any, over: Any, garden: Any, tmp_path: Path) -> None:
    """One that is too long is refused with the limit, before a model or the conversation has it; the thread goes on."""
    endless = "outward bud " * MAX_QUESTION_CHARS
    async with app_over(over(garden)) as app:
        refused = await app.ask(endless, thread_id="t")
        assert (refused["status"], refused["error"]["code"]) == ("error", "question")
        assert f"{MAX_QUESTION_CHARS:,}" in refused["error"]["message"]
        assert (await app.ask(QUESTION, thread_id="t"))["status"] == "answered"
    assert SECRET.encode() not in bytes_in(tmp_path)


async def test_a_damaged_file_of_conversations_is_refused_and_kept(tmp_path: Path) -> None:
    """The error names the file and what to do, and not a byte of it is changed."""
    path = tmp_path / "threads.db"
    path.write_bytes(b"no database " * 500)
    with pytest.raises(StoreDamaged, match=r"threads\.db") as caught:
        async with open_sqlite(path):
            pass
    assert caught.value.hint
    assert path.read_bytes() == b"no database " * 500
