"""Deleting a document takes the answers made from it out of every conversation: out of prompts, and off the disk."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, says

from leadline.config import RunContext, Settings
from leadline.errors import StoreError
from leadline.events import StepEvent
from leadline.graph.build import build_graph
from leadline.graph.conversations import open_conversations
from leadline.graph.redaction import forget_deleted
from leadline.graph.run import App, open_app
from leadline.knowledge import open_library
from leadline.nodes.origins import REMOVED

pytestmark = LITELLM_WARNINGS

SECRET = "Project Quokka has a budget of 42 million."
ROSES = "Roses are pruned in March, before the buds open."
ABOUT_SECRET = "What budget does Project Quokka have?"
ABOUT_ROSES = "When are roses pruned?"
WRITTEN = RunContext(llm="openai/scripted", max_retries=0)


@pytest.fixture
def settings(tmp_path: Path, chat_server: ChatServer) -> Settings:
    """A new data folder, and the scripted chat server for runs that name an LLM."""
    return Settings(data_dir=tmp_path / "data", llm_api_base=chat_server.url, llm_timeout_s=20)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    """The product over a note of a secret and one of roses."""
    async with open_app(settings) as opened:
        await put(opened, {"secret": SECRET, "roses": ROSES})
        yield opened


async def put(app: App, texts: dict[str, str]) -> None:
    """Adds or replaces documents, id → text."""
    await (await app.library.collection()).add_documents([*texts.values()], ids=[*texts])


async def delete_elsewhere(settings: Settings, doc_id: str) -> None:
    """Deletes as another process does that knows of no conversations."""
    async with open_library(settings) as library:
        await (await library.collection()).delete(doc_id)


async def messages_of(app: App, thread: str = "t") -> list[AnyMessage]:
    """The stored conversation."""
    stored = await (await app.conversations.threads()).aget_tuple({"configurable": {"thread_id": thread}})
    assert stored is not None
    messages: list[AnyMessage] = stored.checkpoint["channel_values"]["messages"]
    return messages


def on_disk(folder: Path) -> bytes:
    """Every byte of the conversations' files."""
    files = sorted(folder.glob("threads.db*"))
    assert files
    return b"".join(path.read_bytes() for path in files)


def by_prompt(answer: str, standalone: str) -> Callable[[dict[str, Any]], Reply]:
    """Says one thing where an answer is asked for, another where a question is to stand alone."""

    def reply(request: dict[str, Any]) -> Reply:
        return says(answer if "numbered passages" in request["messages"][0]["content"] else standalone)

    return reply


async def test_a_deleted_document_is_in_no_later_prompt(app: App, settings: Settings, chat_server: ChatServer) -> None:
    """After another process has deleted it, the LLM is shown a note in the place of the answer; the question stays."""
    chat_server.script(by_prompt(f"{SECRET[:-1]} [1].", "Who approved Project Quokka?"))
    first = await app.ask(ABOUT_SECRET, context=WRITTEN, thread_id="t")
    assert "42 million" in first["answer"]
    await delete_elsewhere(settings, "secret")
    chat_server.requests.clear()
    chat_server.script(by_prompt("NO_ANSWER", "Who approved Project Quokka?"))
    second = await app.ask("And who approved it?", context=WRITTEN, thread_id="t")
    assert second["question"] == "Who approved Project Quokka?"
    sent = json.dumps(chat_server.requests)
    assert REMOVED in sent
    assert ABOUT_SECRET in sent
    assert "42 million" not in sent + json.dumps(second)
    assert b"42 million" not in on_disk(settings.data_dir)


async def test_a_question_made_from_a_deleted_answer_goes_too(
    app: App, settings: Settings, chat_server: ChatServer
) -> None:
    """The words of an answer go on in the follow-up that the LLM made to stand alone: that turn is redacted as well,
    and a later follow-up by rule borrows from the person's words only."""
    chat_server.script(by_prompt(f"{SECRET[:-1]} [1].", "When are the roses of the 42 million budget pruned?"))
    await app.ask(ABOUT_SECRET, context=WRITTEN, thread_id="t")
    chat_server.script(by_prompt(f"{ROSES[:-1]} [1].", "When are the roses of the 42 million budget pruned?"))
    only_roses = WRITTEN.model_copy(update={"filters": {"file_name": "roses"}})
    second = await app.ask("And when are its Roses pruned?", context=only_roses, thread_id="t")
    assert "42 million" in second["question"]
    await delete_elsewhere(settings, "secret")
    third = await app.ask("Why is that?", thread_id="t")
    assert "42" not in third["question"]
    assert "Roses" in third["question"]
    texts = [message.text for message in await messages_of(app)]
    assert texts[:4] == [ABOUT_SECRET, REMOVED, "And when are its Roses pruned?", REMOVED]
    assert b"42 million" not in on_disk(settings.data_dir)


async def test_what_an_llm_saw_and_did_not_cite_counts(app: App, settings: Settings, chat_server: ChatServer) -> None:
    """An answer that cites one document of two it was shown is removed with either."""
    chat_server.script(says("Roses are pruned in March [1]."))
    result = await app.ask(ABOUT_ROSES, context=WRITTEN, thread_id="t")
    assert result["status"] == "answered"
    shown = {row["file_name"] for row in result["context"] if row["kept"]}
    assert shown == {"secret", "roses"}
    uncited = shown - {citation["file_name"] for citation in result["citations"]}
    await delete_elsewhere(settings, uncited.pop())
    await app.ask("Thanks!", thread_id="t")
    assert (await messages_of(app))[1].text == REMOVED


async def test_an_answer_from_two_documents_goes_with_one_of_them(app: App, settings: Settings) -> None:
    """Only that answer: one which quotes the other document alone stays as it is."""
    both = await app.ask("When are roses pruned, and what budget has Project Quokka?", thread_id="t")
    assert {citation["doc_id"] for citation in both["citations"]} == {"secret", "roses"}
    roses = await app.ask(ABOUT_ROSES, thread_id="t")
    assert {citation["doc_id"] for citation in roses["citations"]} == {"roses"}
    await delete_elsewhere(settings, "secret")
    await app.ask("Thanks!", thread_id="t")
    texts = [message.text for message in await messages_of(app)]
    assert texts[1] == REMOVED
    assert texts[3] == roses["answer"]


async def test_the_text_of_a_replaced_document_goes(app: App, settings: Settings) -> None:
    """The new version is answered from, and nothing of the old is left."""
    assert "42 million" in (await app.ask(ABOUT_SECRET, thread_id="t"))["answer"]
    await put(app, {"secret": "Project Quokka has a budget of 9 million."})
    again = await app.ask(ABOUT_SECRET, thread_id="t")
    assert "9 million" in again["answer"]
    assert [message.text for message in await messages_of(app)][1] == REMOVED
    assert b"42 million" not in on_disk(settings.data_dir)


async def test_a_conversation_is_left_alone_where_nothing_was_deleted(app: App, settings: Settings) -> None:
    """Its messages stay as they are, also when other documents come and go and its own are put in again."""
    first = await app.ask(ABOUT_SECRET, thread_id="t")
    before = await messages_of(app)
    await put(app, {"other": "Compost needs air."})
    await put(app, {"secret": SECRET})
    await delete_elsewhere(settings, "other")
    assert await app.forget_deleted() == 0
    await app.ask(ABOUT_ROSES, thread_id="t")
    assert (await messages_of(app))[: len(before)] == before
    assert before[1].text == first["answer"]


async def test_the_documents_are_asked_once_a_turn(tmp_path: Path, over: Any, garden: Any) -> None:
    """However many answers came before, and not at all in a first turn or without a conversation."""
    asked = []

    async def still_there(origins: Any) -> set[str]:
        asked.append(len(origins))
        return {origin["chunk_id"] for origin in origins}

    library: Any = None  # toy legs need none
    async with open_conversations(Settings(data_dir=tmp_path)) as conversations:
        app = App(Settings(data_dir=tmp_path), library, conversations, over(garden, still_there=still_there))
        await app.ask(ABOUT_ROSES)
        for question in (ABOUT_ROSES, "How often is the compost heap turned?", "Thanks!"):
            await app.ask(question, thread_id="t")
    assert len(asked) == 2


async def test_a_deletion_can_be_followed_in_all_conversations(app: App, settings: Settings) -> None:
    """At once, while the app has the file open, and its conversations go on. No byte of the text is left."""
    for thread in ("t", "u"):
        await app.ask(ABOUT_SECRET, thread_id=thread)
    kept = await app.ask(ABOUT_ROSES, thread_id="roses")
    assert b"42 million" in on_disk(settings.data_dir)
    async with open_library(settings) as library:
        await (await library.collection()).delete("secret")
        assert await forget_deleted(settings, library) == 2
        assert await forget_deleted(settings, library) == 0
    assert b"42 million" not in on_disk(settings.data_dir)
    assert (await messages_of(app, "roses"))[1].text == kept["answer"]
    assert (await app.ask(ABOUT_SECRET, thread_id="t"))["status"] == "abstained"
    assert [message.text for message in await messages_of(app)][:2] == [ABOUT_SECRET, REMOVED]


async def test_a_run_that_breaks_leaves_no_draft(tmp_path: Path, over: Any, garden: Any, scripted: Any) -> None:
    """The person's question is kept; what an LLM had written from a passage is not, as nothing would say from which.
    The next question is answered, not that one."""

    async def broken() -> Any:
        raise RuntimeError("no facts")

    library: Any = None  # toy legs need none
    draft = "Roses are pruned in early spring [1]."
    async with open_conversations(Settings(data_dir=tmp_path)) as conversations:
        app = App(
            Settings(data_dir=tmp_path), library, conversations, over(garden, llm=scripted([draft]), facts=broken)
        )
        assert (await app.ask(ABOUT_ROSES, context=WRITTEN, thread_id="t"))["status"] == "error"
        assert ABOUT_ROSES.encode() in on_disk(tmp_path)
        assert b"early spring" not in on_disk(tmp_path)
        app = App(Settings(data_dir=tmp_path), library, conversations, over(garden))
        result = await app.ask("How often is the compost heap turned?", thread_id="t")
    assert result["question"] == "How often is the compost heap turned?"


async def test_a_run_that_was_on_during_a_deletion_is_followed_by_the_next(app: App, settings: Settings) -> None:
    """It ends as it began, with the old answer stored again; the turn after it takes that out."""
    await app.ask(ABOUT_SECRET, thread_id="t")
    async for event in app.stream(ABOUT_ROSES, thread_id="t"):
        if isinstance(event, StepEvent) and (event.node, event.phase) == ("hybrid", "start"):
            await delete_elsewhere(settings, "secret")
            await app.forget_deleted()
    assert len(await messages_of(app)) == 4
    await app.ask("Thanks!", thread_id="t")
    texts = [message.text for message in await messages_of(app)]
    assert (len(texts), texts[1]) == (6, REMOVED)
    assert b"42 million" not in on_disk(settings.data_dir)


async def test_a_file_that_is_being_read_is_purged_later(app: App, settings: Settings) -> None:
    """The answers are out at once; that old bytes are left is said, and made up for by the next call."""
    settings = settings.model_copy(update={"lock_timeout_s": 0.1})
    await app.ask(ABOUT_SECRET, thread_id="t")
    reader = sqlite3.connect(settings.data_dir / "threads.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM checkpoints").fetchall()
    async with open_library(settings) as library:
        await (await library.collection()).delete("secret")
        with pytest.raises(StoreError, match="can still be in a file"):
            await forget_deleted(settings, library)
        assert (await messages_of(app))[1].text == REMOVED
        reader.close()
        assert b"42 million" in on_disk(settings.data_dir)
        await forget_deleted(settings, library)
    assert b"42 million" not in on_disk(settings.data_dir)


async def test_only_the_last_state_of_a_conversation_is_kept(app: App, settings: Settings) -> None:
    """A conversation of three turns is one row."""
    for question in (ABOUT_SECRET, ABOUT_ROSES, "Thanks!"):
        await app.ask(question, thread_id="t")
    assert len([stored async for stored in (await app.conversations.threads()).last_states()]) == 1
    file = sqlite3.connect(settings.data_dir / "threads.db")
    assert file.execute("SELECT count(*) FROM checkpoints").fetchone() == (1,)
    file.close()
    assert len(await messages_of(app)) == 6


async def test_any_checkpointer_forgets(over: Any, garden: Any) -> None:
    """Also where another one keeps the conversation, as LangGraph's own server does."""
    gone: set[str] = set()

    async def still_there(origins: Any) -> set[str]:
        return {origin["chunk_id"] for origin in origins} - gone

    graph = build_graph(over(garden, still_there=still_there)).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    first = await graph.ainvoke({"question": ABOUT_ROSES}, config, context=RunContext())
    assert "early spring" in first["messages"][1].text
    gone.add("chunk of roses.md")
    second = await graph.ainvoke({"question": "Thanks!"}, config, context=RunContext())
    assert [message.text for message in second["messages"]][:3] == [ABOUT_ROSES, REMOVED, "Thanks!"]
    assert "early spring" not in str(second)
