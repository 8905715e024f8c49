"""The one door over real stores and the embedded models: documents in, cited answers out, conversations kept."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from leadline.config import RunContext, Settings
from leadline.graph.run import App, open_app
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

DOCUMENTS = {
    "watering.md": "# Watering\n\nWater the tomatoes in the early morning. "
    "Tomatoes need about two litres of water a day. Never water the leaves: wet leaves get blight.\n",
    "pruning.md": "# Pruning\n\nRoses are pruned in March, before the buds open. "
    "Cut above a bud that points outward.\n",
    "compost.txt": "The compost heap was built by Dana Fox in 2019. It stands behind the shed and needs turning.\n",
}


@pytest.fixture(scope="module")
def garden_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with three notes about a garden."""
    folder = tmp_path_factory.mktemp("garden")
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    asyncio.run(take_in(folder))
    return folder / "data"


async def take_in(folder: Path) -> None:
    """Ingests the notes."""
    settings = Settings(data_dir=folder / "data")
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), [folder / name for name in DOCUMENTS], settings)


@pytest.fixture
async def app(garden_folder: Path) -> AsyncIterator[App]:
    """The product over the garden."""
    async with open_app(Settings(data_dir=garden_folder)) as opened:
        yield opened


def bytes_in(folder: Path) -> bytes:
    """Everything in the conversations' files."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("threads.db*")))


async def test_a_question_is_answered_with_the_exact_place(app: App) -> None:
    """The sentence that answers, word for word, with file and offsets."""
    result = await app.ask("How much water do tomatoes need?")
    assert result["status"] == "answered"
    assert "about two litres of water a day" in result["answer"]
    citation = next(c for c in result["citations"] if "two litres" in c["quote"])
    assert (citation["file_name"], citation["verified"]) == ("watering.md", True)
    assert {"vector", "bm25"} <= set(result["context"][0]["found_by"])
    assert result["generation"] > 0
    json.dumps(result)


async def test_what_the_garden_does_not_know_is_abstained(app: App) -> None:
    """General knowledge is no source."""
    result = await app.ask("What is the capital of France?")
    assert result["status"] == "abstained"
    assert "Paris" not in result["answer"]


async def test_a_conversation_is_read_again_after_a_restart(garden_folder: Path) -> None:
    """Real scores go through the checkpointer; the second turn, in a new process's app, knows the first."""
    async with open_app(Settings(data_dir=garden_folder)) as app:
        first = await app.ask("Who built the compost heap?", thread_id="t")
        assert first["status"] == "answered"
    async with open_app(Settings(data_dir=garden_folder)) as app:
        second = await app.ask("When did Dana Fox build it?", thread_id="t")
        assert "2019" in second["answer"]
    stored = bytes_in(garden_folder)
    assert b"Dana Fox" in stored
    assert b"points outward" not in stored


async def test_what_was_deleted_is_no_longer_answered(tmp_path: Path) -> None:
    """Neither in a new conversation nor in the one that had the answer, and not after a restart."""
    question = "What budget does Project Quokka have?"
    async with open_app(Settings(data_dir=tmp_path)) as app:
        kb = await app.library.collection()
        (put, _) = await kb.add_documents(["Project Quokka has a budget of 42 million.", "Roses are pruned in March."])
        assert "42 million" in (await app.ask(question, thread_id="t"))["answer"]
        await kb.delete(put.doc_id)
        for thread in ("t", "new", None):
            result = await app.ask(question, thread_id=thread)
            assert result["status"] == "abstained"
            assert "42 million" not in json.dumps(result)
    async with open_app(Settings(data_dir=tmp_path)) as app:
        assert (await app.ask(question, thread_id="t"))["status"] == "abstained"


async def test_a_reranker_that_is_not_there_degrades(garden_folder: Path) -> None:
    """The run goes on in fused order, says that it is unranked, and quotes by the embedded scorer."""
    settings = Settings(data_dir=garden_folder, reranker_model=str(garden_folder / "no-such-model"))
    async with open_app(settings) as app:
        result = await app.ask("How much water do tomatoes need?")
    assert result["degraded"] == ["reranker"]
    assert result["verdict"]["evidence"] == "unranked"
    assert (result["status"], result["flags"]) == ("answered", ["unranked"])
    assert {row["rerank_score"] for row in result["context"]} == {0.0}


async def test_a_collection_that_is_not_there_is_an_error(app: App) -> None:
    """The result says which there are."""
    result = await app.ask("Anything?", context=RunContext(collection="other"))
    assert (result["status"], result["answer"]) == ("error", "")
    assert result["error"]["code"] == "collection_unknown"


async def test_a_filter_is_kept_in_every_leg(app: App) -> None:
    """Nothing outside the filter is found by any leg."""
    context = RunContext(filters={"file_name": "compost.txt"}, max_retries=0)
    result: Any = await app.ask("How much water do tomatoes need?", context=context)
    assert {row["file_name"] for row in result["context"]} <= {"compost.txt"}
