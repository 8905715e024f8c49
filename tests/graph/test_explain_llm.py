"""An explanation of a run whose answer an LLM wrote: what the check left out is what lost a document."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, says

from leadline.config import RunContext, Settings
from leadline.graph.explain import explain
from leadline.graph.recorded import read_record
from leadline.graph.replay import replay
from leadline.graph.run import App, open_app
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

pytestmark = LITELLM_WARNINGS

DOCUMENTS = {
    "pruning.md": "Roses are pruned in early spring.\n",
    "tomatoes.md": "Tomatoes want six hours of sun, and roses want five.\n",
    "compost.md": "Compost needs air. Turn the heap every second week.\n",
}
QUESTION = "When are roses pruned in early spring?"


@pytest.fixture
async def app(tmp_path: Path, chat_server: ChatServer) -> AsyncIterator[App]:
    """The product over three notes, with an LLM behind HTTP."""
    own = Settings(data_dir=tmp_path / "data", llm_api_base=chat_server.url, llm_timeout_s=5, llm_retries=0)
    for name, text in DOCUMENTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    async with open_library(own) as library:
        await ingest_paths(await library.collection(), [tmp_path / name for name in DOCUMENTS], own)
        async with open_app(own, library=library) as opened:
            yield opened


def numbered(request: dict[str, Any]) -> dict[str, int]:
    """File name → its number in the evidence of a prompt."""
    prompt = request["messages"][1]["content"]
    at = {name: prompt.find(text.split(",")[0].split(".")[0]) for name, text in DOCUMENTS.items()}
    marks = [(prompt.find(f"[{n}]"), n) for n in (1, 2, 3)]
    return {name: max((place, n) for place, n in marks if place < start)[1] for name, start in at.items() if start > 0}


def writes(request: dict[str, Any]) -> Any:
    """An answer with one right sentence and one wrong; what it wrote is not to be repaired."""
    if not request["messages"][0]["content"].startswith("You answer questions"):
        return says("1:")
    n = numbered(request)
    wrong = f"Tomatoes want nine hours of sun [{n['tomatoes.md']}]."
    return says(f"Roses are pruned in early spring [{n['pruning.md']}]. {wrong}")


async def test_a_sentence_that_failed_the_check_lost_its_document(app: App, chat_server: ChatServer) -> None:
    """Cited, left out by the check, and never cited are three different things, as is the replay of all of them."""
    chat_server.script(writes)
    context = RunContext(web="never", llm="openai/scripted")
    found = {name: await explain(app, QUESTION, name, context) for name in DOCUMENTS}
    stages = {name: explanation.stage for name, explanation in found.items()}
    assert stages["pruning.md"] == "cited"
    assert stages["tomatoes.md"] == "check_failed"
    assert stages["compost.md"] == "not_cited"
    assert "the check doesn't confirm" in found["tomatoes.md"].why


async def test_a_replay_calls_no_llm(app: App, chat_server: ChatServer) -> None:
    """The record of an answer that an LLM wrote is replayed without it."""
    chat_server.script(writes)
    result = await app.ask(QUESTION, context=RunContext(web="never", llm="openai/scripted"))
    assert result["models"]["llm"] == "openai/scripted"
    chat_server.requests.clear()
    assert (await replay(read_record(json.dumps(result)), app.library)).same
    assert chat_server.requests == []
