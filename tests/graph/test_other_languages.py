"""Questions in another language than the documents, over the real models, with an LLM behind an HTTP server."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.chat_server import ChatServer, Reply, says

from leadline.config import RunContext, Settings
from leadline.graph.run import App, open_app
from leadline.knowledge import open_library

TEXTS = {
    "pump": "The feed pump runs at 3.5 bar and is serviced every 24 months.",
    "roses": "Roses are pruned in March, before the buds open.",
}
QUESTION = "Mit welchem Druck läuft die Speisepumpe?"
# LiteLLM's own.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
async def app(tmp_path: Path, chat_server: ChatServer) -> AsyncIterator[App]:
    """Two English notes."""
    settings = Settings(data_dir=tmp_path, vector_backend="faiss", llm_api_base=chat_server.url, llm_retries=0)
    async with open_library(settings) as library:
        await (await library.collection()).add_documents([*TEXTS.values()], ids=[*TEXTS])
    async with open_app(settings) as app:
        yield app


def writes(answer: str) -> Callable[[dict[str, Any]], Reply]:
    """An LLM that searches in the documents' language, writes this in the question's, and mends nothing."""

    def reply(request: dict[str, Any]) -> Reply:
        system, user = (message["content"] for message in request["messages"][:2])
        if "search queries" in system:
            return says("At what pressure does the feed pump run?")
        place = re.search(r"\[(\d+)\] [^<]*bar", user)
        return says(answer.replace("[n]", f"[{place[1]}]") if place and "You answer questions" in system else "1: DROP")

    return reply


async def test_an_answer_in_the_questions_language_is_said_to_be_unverified(app: App, chat_server: ChatServer) -> None:
    """Its figures are those of the passage; that it says the same can't be told, so it is neither hidden nor vouched
    for: a flag, a reason, and a citation that nobody has verified."""
    chat_server.script(writes("Die Speisepumpe läuft mit 3,5 bar [n]."))
    result = await app.ask(QUESTION, context=RunContext(llm="openai/scripted", web="never"))
    assert (result["status"], result["flags"]) == ("answered", ["unverified"])
    assert "another language" in result["verdict"]["reason"]
    [citation] = result["citations"]
    assert (citation["quote"], citation["verified"]) == (TEXTS["pump"], False)


async def test_a_wrong_figure_is_wrong_in_every_language(app: App, chat_server: ChatServer) -> None:
    """No excuse: the run says, in the question's language, that it has no answer."""
    chat_server.script(writes("Die Speisepumpe läuft mit 4,5 bar [n]."))
    result = await app.ask(QUESTION, context=RunContext(llm="openai/scripted", web="never"))
    assert (result["status"], result["verdict"]["grounding"]) == ("abstained", "ungrounded")
    assert result["answer"].startswith("In den Dokumenten finde ich keine Antwort darauf.")
