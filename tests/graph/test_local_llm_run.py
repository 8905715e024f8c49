"""Whole runs with a local LLM on llama.cpp's real server: a tiny one, and the product's own where it is there."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models.conftest import small_gguf  # noqa: F401 a fixture of the tests of models

from leadline.config import RunContext, Settings
from leadline.errors import ModelUnavailable
from leadline.graph.run import App, open_app
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library
from leadline.models.local_llm import EVIDENCE_TOKENS, stop_all
from leadline.models.local_llm_weights import FETCH_COMMAND, fetched, models_folder

pytestmark = [
    # LiteLLM's own logging and its cached clients, not ours to close.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# Read here: each test's environment is cleared of settings.
MODELS = models_folder(Path(named) if (named := os.environ.get("LEADLINE_MODELS_DIR")) else None)
LOG = " ".join(f"On day {n} the pumps of the north pier ran for {n} hours at 3 bar." for n in range(1, 80))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """The product over two notes, one of them long."""
    (tmp_path / "fees.md").write_text(
        "# Fees\n\nThe berth fee at the north pier is 12 guilders a day.\n", encoding="utf-8"
    )
    (tmp_path / "log.md").write_text(f"# Pumps of the north pier\n\n{LOG}\n", encoding="utf-8")
    settings = Settings(data_dir=tmp_path / "data", models_dir=MODELS, llm_timeout_s=180)
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), [tmp_path / "fees.md", tmp_path / "log.md"], settings)
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def own_weights() -> None:
    """Skips where the product's own model or its runtime is not on this machine."""
    try:
        fetched(MODELS)
    except ModelUnavailable as missing:
        pytest.skip(f"{missing.message} Run `{FETCH_COMMAND}` to try it.")
    pytest.importorskip("xllamacpp", reason="pip install 'leadline[local-llm]'")


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """No server is left."""
    yield
    stop_all()


async def events_of(app: App, question: str, **knobs: Any) -> list[Any]:
    """All events of one run."""
    context = RunContext(web="never", max_retries=0, show_prompts=True, **knobs)
    return [event async for event in app.stream(question, context=context)]


async def test_a_tiny_model_is_never_believed_unchecked(app: App, small_gguf: Path) -> None:  # noqa: F811
    """Whatever it writes: its evidence is small, its call is counted, and an answer has its citations verified."""
    events = await events_of(app, "How long did the pumps of the north pier run on day 7?", llm=f"local:{small_gguf}")
    result = events[-1].result
    assert "llm" not in result["degraded"]
    assert result["usage"]["llm_calls"] == 1
    assert 200 < result["usage"]["prompt_tokens"] < EVIDENCE_TOKENS + 800
    step = next(e.details for e in events if e.type == "step" and (e.node, e.phase) == ("compressor", "end"))
    assert step["dropped"] > 0
    assert result["status"] in ("answered", "abstained", "interrupted")
    if result["status"] == "answered":
        assert all(citation["verified"] for citation in result["citations"])


async def test_the_products_own_model_answers_and_abstains(own_weights: None, app: App) -> None:
    """With its weights: a fact is told and cited, and what the notes don't say is not made up."""
    told = (await events_of(app, "What is the berth fee at the north pier?", llm="local"))[-1].result
    assert told["status"] == "answered"
    assert "12 guilders" in told["answer"]
    assert told["citations"][0]["file_name"] == "fees.md"
    untold = (await events_of(app, "Who designed the pumps of the north pier?", llm="local"))[-1].result
    assert untold["status"] == "abstained"
