"""Every citation's quote is really there: over compression, retries, marks of all kinds, and later turns.

The whole product over real stores and the embedded models, with an LLM behind HTTP that writes as models do.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, says

from leadline.citations import parse_markers
from leadline.config import RunContext, Settings
from leadline.graph.run import App, open_app
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

pytestmark = LITELLM_WARNINGS

WORDS = {"alpha": 3, "bravo": 5, "charlie": 7, "delta": 9, "echo": 11}
MARKS = {
    "plain": "[{n}]",
    "list": "[{n}, {m}]",
    "range": "[{n}-{m}]",
    "each": "[{n}][{m}]",
    "corner": "【{n}】",
    "wide": "［{n}］",
    "foot": "[^{n}]",
    "link": "[{n}](https://evil.test/?q={n})",
    "double": "[[{n}]]",
    "unknown": "[{n}, 97]",
    "none": "",
}


def text_of(word: str, bar: int) -> str:
    """A file's text with things before and behind the sentence that answers."""
    return (
        f"# The {word} pump\n\nThis sheet is about the {word} pump. Its housing is painted grey.\n\n"
        f"The pressure of the {word} pump is {bar} bar. Serve it every spring.\n\nThe end of the sheet — ünïcödé 泵.\n"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a sheet for each pump."""
    folder = tmp_path_factory.mktemp("pumps")
    for word, bar in WORDS.items():
        (folder / f"{word}.md").write_text(text_of(word, bar), encoding="utf-8")
    asyncio.run(take_in(folder))
    return folder


async def take_in(folder: Path) -> None:
    """Ingests the sheets."""
    settings = Settings(data_dir=folder / "data")
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), [folder / f"{word}.md" for word in WORDS], settings)


@pytest.fixture
async def app(folder: Path, chat_server: ChatServer) -> AsyncIterator[App]:
    """The product with the LLM."""
    settings = Settings(data_dir=folder / "data", llm_api_base=chat_server.url, llm_retries=0)
    async with open_app(settings) as opened:
        yield opened


def numbers_in(request: dict[str, Any]) -> dict[str, int]:
    """Which pump has which number in this prompt."""
    passages = re.findall(r'<passage n="(\d+)" file="(\w+)\.md"', request["messages"][1]["content"])
    return {word: int(n) for n, word in passages}


def writer(word: str, mark: str) -> Callable[[dict[str, Any]], Reply]:
    """An LLM that answers with this form of mark, one character a token where it is a mark."""

    def reply(request: dict[str, Any]) -> Reply:
        system = request["messages"][0]["content"]
        if not system.startswith("You answer"):
            return says(f"pressure of the {word} pump")
        numbers = numbers_in(request)
        if word not in numbers:
            return says("NO_ANSWER")
        other = numbers[word] + 1 if numbers[word] < max(numbers.values()) else numbers[word]
        marks = MARKS[mark].format(n=numbers[word], m=other)
        return Reply((f"The pressure of the {word} pump is {WORDS[word]} bar ", *marks, "."))

    return reply


def places(folder: Path, result: Any) -> Iterator[tuple[str, str]]:
    """What stands in the file where each citation points, and what it quotes."""
    for citation in result["citations"]:
        source = (folder / citation["file_name"]).read_text(encoding="utf-8")
        yield source[citation["start_char"] : citation["end_char"]], citation["quote"]


def assert_true(folder: Path, result: Any, word: str) -> None:
    """Every quote is the slice, every mark of the answer is a citation, and the right file's place is verified."""
    assert result["status"] == "answered"
    for there, quote in places(folder, result):
        assert there == quote
    marks = {n for marker in parse_markers(result["answer"]) for n in marker.numbers}
    assert marks == {citation["n"] for citation in result["citations"]}
    assert "evil.test" not in result["answer"]
    right = [c for c in result["citations"] if c["file_name"] == f"{word}.md"]
    assert [c["quote"] for c in right] == [f"The pressure of the {word} pump is {WORDS[word]} bar."]
    assert right[0]["verified"]


@pytest.mark.parametrize("mark", sorted(MARKS))
async def test_every_form_of_mark_becomes_a_true_place(
    app: App, folder: Path, chat_server: ChatServer, mark: str
) -> None:
    """Split over tokens, in lists and ranges, as links, unknown or missing: what is shown is a real place."""
    chat_server.script(writer("charlie", mark))
    events = [
        event
        async for event in app.stream(
            "What is the pressure of the charlie pump?", context=RunContext(llm="openai/x", web="never")
        )
    ]
    result: Any = events[-1].result  # type: ignore[union-attr]
    assert_true(folder, result, "charlie")
    shown = "".join(event.text for event in events if event.type == "token")
    assert "97" not in shown
    assert "evil" not in shown


async def test_places_survive_compression(app: App, folder: Path, chat_server: ChatServer) -> None:
    """With room for a few sentences only, numbers and offsets are the same as with all."""
    chat_server.script(writer("delta", "plain"))
    for tokens in (64, 90, 150, 2000):
        context = RunContext(llm="openai/x", web="never", max_context_tokens=tokens)
        assert_true(folder, await app.ask("What is the pressure of the delta pump?", context=context), "delta")


async def test_places_survive_a_retry(app: App, folder: Path, chat_server: ChatServer) -> None:
    """The first draft fails; in the second pass the passages seen before have the numbers they had."""
    seen: list[dict[str, int]] = []
    good = writer("bravo", "plain")

    def reply(request: dict[str, Any]) -> Reply:
        if request["messages"][0]["content"].startswith("You answer"):
            seen.append(numbers_in(request))
            if len(seen) == 1:
                return says("NO_ANSWER")
        return good(request)

    chat_server.script(reply)
    context = RunContext(llm="openai/x", web="never", top_k=1, rerank_top_k=2)
    result = await app.ask("What is the pressure of the bravo pump?", context=context)
    assert_true(folder, result, "bravo")
    assert len(seen) == 2
    assert all(seen[1].get(word, n) == n for word, n in seen[0].items())


async def test_a_later_turn_leaves_the_places_of_an_earlier_one(
    app: App, folder: Path, chat_server: ChatServer
) -> None:
    """Each turn numbers its own passages; what the first one cited still stands where it says."""
    context = RunContext(llm="openai/x", web="never")
    results = []
    for word in ("alpha", "echo", "alpha"):
        chat_server.script(writer(word, "plain"))
        question = f"What is the pressure of the {word} pump?"
        results.append((word, await app.ask(question, context=context, thread_id="turns")))
    for word, result in results:
        assert_true(folder, result, word)
