"""Parts that are slow over their own wire: a search server that answers late, a locked table, an LLM that stops."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.chat_server import ChatServer, Reply, says
from tests.servers.opensearch_server import OpenSearchStandIn
from tests.servers.postgres import PostgresServer

from leadline.config import RunContext, Settings
from leadline.graph.run import App, open_app
from leadline.knowledge import open_library

QUESTION = "When are Roses pruned?"
TEXTS = {
    "roses": "Roses are pruned in March, before the buds open.",
    "compost": "The compost heap stands behind the shed and is turned every second week.",
}
WAIT_S = 1.5
# LiteLLM's own: it reads deprecated fields, and leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


async def filled(tmp_path: Path, **given: Any) -> Settings:
    """The settings of an installation with two notes."""
    settings = Settings(data_dir=tmp_path, vector_backend="faiss", **given)
    async with open_library(settings) as library:
        await (await library.collection()).add_documents([*TEXTS.values()], ids=[*TEXTS])
    return settings


async def back_again(app: App) -> bool:
    """Whether a part that was left is used again, some time after it is well."""
    for _ in range(50):
        if not (await app.ask(QUESTION))["degraded"]:
            return True
        await asyncio.sleep(0.1)
    return False


async def test_a_keyword_server_that_answers_late(tmp_path: Path, opensearch_standin: OpenSearchStandIn) -> None:
    """The other legs answer, the keyword leg is named, and is used again when it answers in time."""
    options = {"url": opensearch_standin.url}
    settings = await filled(tmp_path, lexical_backend="opensearch", lexical_options=options, leg_timeout_s=WAIT_S)
    async with open_app(settings) as app:
        assert (await app.ask(QUESTION))["degraded"] == []
        opensearch_standin.delay_s = 2 * WAIT_S
        result = await app.ask(QUESTION)
        opensearch_standin.delay_s = 0.0
        assert (result["status"], result["degraded"]) == ("answered", ["bm25"])
        assert await back_again(app)


async def test_a_graph_whose_tables_are_locked(tmp_path: Path, postgres: PostgresServer) -> None:
    """As maintenance of a PostgreSQL database locks them: the other legs answer, and the graph is named."""
    url = postgres.database()
    settings = await filled(tmp_path, catalog_url=url, leg_timeout_s=WAIT_S)
    async with open_app(settings) as app:
        assert (await app.ask(QUESTION))["degraded"] == []
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE graph_entities, graph_mentions IN ACCESS EXCLUSIVE MODE")
            result = await app.ask(QUESTION)
        assert (result["status"], result["degraded"]) == ("answered", ["graph"])
        assert await back_again(app)


def judged_by(verdict: Reply) -> Callable[[dict[str, Any]], Reply]:
    """An LLM that answers rightly, and judges answers so."""

    def reply(request: dict[str, Any]) -> Reply:
        writes = request["messages"][0]["content"].startswith("You answer questions")
        return says("Roses are pruned in March, before the buds open [1].") if writes else verdict

    return reply


async def test_a_critic_that_stops_in_the_middle(tmp_path: Path, chat_server: ChatServer) -> None:
    """It is waited for as long as the settings say: the answer stands, and nobody vouches for it."""
    settings = await filled(tmp_path, llm_api_base=chat_server.url, llm_retries=0, llm_timeout_s=WAIT_S)
    chat_server.script(judged_by(Reply(tokens=('{"sentences": [',), end="hang", hang_s=60)))
    async with open_app(settings) as app:
        result = await app.ask(QUESTION, context=RunContext(llm="openai/scripted", web="never", critic=True))
    assert (result["status"], result["flags"], result["degraded"]) == ("answered", ["unverified"], ["critic"])
