"""Why a document was used, or which stage lost it: each stage reached for real, over real stores and models."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from leadline.config import RunContext, Settings
from leadline.errors import InvalidFilter, StoreError
from leadline.graph.explain import explain
from leadline.graph.run import App, open_app
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

LONG = " ".join(f"Bed number {n} of the garden is watered with {n} litres of water every morning." for n in range(40))
DOCUMENTS = {
    "watering.md": "# Watering\n\nWater the tomatoes in the early morning. "
    "Tomatoes need about two litres of water a day. Never water the leaves: wet leaves get blight.\n",
    "water-meter.md": "# Meter\n\nThe water meter of the garden is read every second week by Dana Fox.\n",
    "pruning.md": "# Pruning\n\nRoses are pruned in March, before the buds open.\n",
    "compost.txt": "The compost heap was built by Dana Fox in 2019. It stands behind the shed.\n",
    "beds.txt": LONG,
    "Zürich trip.txt": "The club went to the botanical garden by train.\n",
}
QUESTION = "How much water do tomatoes need?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder: notes about a garden, one more in another collection."""
    place = tmp_path_factory.mktemp("garden")
    for name, content in {**DOCUMENTS, "elsewhere.md": "Tomatoes need water.\n"}.items():
        (place / name).write_text(content, encoding="utf-8")

    async def take_in() -> None:
        own = Settings(data_dir=place / "data")
        async with open_library(own) as library:
            await ingest_paths(await library.collection(), [place / name for name in DOCUMENTS], own)
            other = await library.collection("other", create=True)
            await ingest_paths(other, [place / "elsewhere.md"], own)

    asyncio.run(take_in())
    return place / "data"


@pytest.fixture
async def app(folder: Path) -> AsyncIterator[App]:
    """The product over the garden."""
    async with open_app(Settings(data_dir=folder)) as opened:
        yield opened


async def told(app: App, wanted: str, question: str = QUESTION, **knobs: Any) -> Any:
    """The explanation, which must be JSON too."""
    found = await explain(app, question, wanted, RunContext(**{"web": "never", **knobs}))
    json.dumps(found.to_json(), allow_nan=False)
    return found


async def test_a_cited_document_is_used(app: App) -> None:
    """Its best passage says with which number."""
    found = await told(app, "watering.md")
    assert (found.stage, found.used) == ("cited", True)
    assert found.passages[0].row["n"] == 1
    assert "[1]" in found.why


async def test_used_means_cited_whatever_the_document(app: App) -> None:
    """The explanation and the answer's own citations agree on every document."""
    cited = {citation["file_name"] for citation in (await app.ask(QUESTION))["citations"]}
    for name in DOCUMENTS:
        found = await told(app, name)
        assert found.used == (name in cited), name
        assert len(found.passages) == found.document.chunks


async def test_shown_and_not_cited(app: App) -> None:
    """In the evidence, with its logit where that is below zero."""
    found = await told(app, "water-meter")
    assert found.stage == "not_cited"
    assert not found.used


async def test_ranked_behind_what_the_writer_is_given(app: App) -> None:
    """With its rank, its logit, and what would give it to the writer."""
    found = await told(app, "compost.txt", rerank_top_k=1)
    assert found.stage == "beyond_top"
    rank = found.passages[0].row["rank"]
    assert f"ranked {rank + 1} of" in found.why
    assert f"RERANK_TOP_K={rank + 1}" in found.hint


async def test_no_room_for_it(app: App) -> None:
    """The budget is spent on what came before."""
    found = await told(app, "beds.txt", max_context_tokens=64)
    stages = {passage.stage for passage in found.passages}
    assert "no_room" in stages
    lost = next(passage.row for passage in found.passages if passage.stage == "no_room")
    assert lost["sentences"]["shown"] == 0
    assert lost["sentences"]["no_room"] > 0


async def test_not_found_by_any_leg(app: App) -> None:
    """At which rank each leg would have it, why a leg has it nowhere, and what the reranker would say."""
    found = await told(app, "Zürich trip.txt", top_k=1, max_retries=0)
    assert found.stage == "not_found"
    passage = found.passages[0]
    ranks = {deep.leg: deep.rank for deep in passage.deep}
    assert ranks["vector"] is not None
    assert ranks["vector"] > 0
    assert ranks["bm25"] is None
    assert f"vector has it at {ranks['vector'] + 1}" in found.why
    assert "bm25 shares no word" in found.why
    assert passage.logit < 0
    assert f"TOP_K={ranks['vector'] + 1} would find it" in found.hint
    assert "below zero" in found.hint


async def test_the_ranks_of_a_deeper_search_come_true(app: App) -> None:
    """Asked for as many as the hint says, the run finds it: the promise is kept."""
    found = await told(app, "Zürich trip.txt", top_k=1, max_retries=0)
    needed = 1 + min(deep.rank for deep in found.passages[0].deep if deep.rank is not None)
    assert (await told(app, "Zürich trip.txt", top_k=needed, max_retries=0)).stage != "not_found"
    assert (await told(app, "Zürich trip.txt", top_k=needed - 1, max_retries=0)).stage == "not_found"


async def test_nothing_above_zero(app: App) -> None:
    """Abstained: the sign of the reranker lost it, and its logit is told; each search of the run is counted."""
    found = await told(app, "pruning.md", "What is the capital of Mongolia?")
    assert found.result["status"] == "abstained"
    passes = {row["in_pass"] for p in found.passages if p.row for row in p.row["found_by"].values()}
    assert passes <= {1, 2, 3}
    assert {p.stage for p in found.passages} <= {"below_zero", "beyond_top"}
    assert "below zero" in found.why


async def test_filtered_out(app: App) -> None:
    """No search is made for a document that the filter leaves out."""
    found = await told(app, "watering.md", filters={"file_name": "pruning.md"})
    assert (found.stage, found.result) == ("filtered_out", None)
    for wrong in ({"file_name": {"$nope": 1}}, {"nofield": 1}):
        with pytest.raises(InvalidFilter, match=r"nope|nofield"):
            await told(app, "watering.md", filters=wrong)


async def test_a_filter_on_passages_leaves_some_out(app: App) -> None:
    """Those have a line that says so; the others are searched for."""
    found = await told(app, "beds.txt", filters={"chunk_index": {"$lt": 1}})
    assert {p.stage for p in found.passages if p.chunk_index > 0} == {"filtered_out"}
    assert found.passages[0].chunk_index == 0
    assert found.passages[0].stage != "filtered_out"


async def test_not_in_the_catalog_or_elsewhere(app: App) -> None:
    """No run is made for what can't be found, and the place of what is elsewhere is told."""
    missing = await told(app, "no-such-file.pdf")
    assert (missing.stage, missing.document, missing.result) == ("not_in_catalog", None, None)
    other = await told(app, "elsewhere")
    assert other.stage == "other_collection"
    assert "other" in other.why
    assert "--collection other" in other.hint


async def test_not_ready(app: App) -> None:
    """A version that another process is putting in is no document yet; what was interrupted is finished on opening."""
    await app.library.collection()
    with app.library.catalog.write_cache() as connection:
        connection.execute(text("UPDATE sources SET live_version = NULL WHERE uri LIKE '%pruning.md'"))
        connection.execute(
            text(
                "UPDATE versions SET status = 'pending' "
                "WHERE doc_id IN (SELECT doc_id FROM sources WHERE live_version IS NULL)"
            )
        )
    try:
        assert (await told(app, "pruning.md")).stage == "not_ready"
    finally:
        with app.library.catalog.write_cache() as connection:
            connection.execute(
                text(
                    "UPDATE sources SET live_version = "
                    "(SELECT id FROM versions v WHERE v.doc_id = sources.doc_id) WHERE live_version IS NULL"
                )
            )
            connection.execute(text("UPDATE versions SET status = 'ready' WHERE status = 'pending'"))
    assert (await told(app, "pruning.md")).stage != "not_ready"


async def test_a_greeting_searches_nothing(app: App) -> None:
    """So no stage lost anything."""
    found = await told(app, "watering.md", "hi")
    assert found.stage == "not_searched"


async def test_names(app: App) -> None:
    """By name, part, other spelling, id and its beginning; several that fit are listed."""
    whole = (await told(app, "watering.md")).document
    for wanted in ("WATERING.MD", "waterin", whole.doc_id, whole.doc_id[:12], whole.uri, whole.file_hash):
        assert (await told(app, wanted)).document == whole, wanted
    assert (await told(app, "zu\u0308rich")).document.file_name == "Zürich trip.txt"
    with pytest.raises(StoreError, match=r"2 documents fit 'water'.*watering\.md") as several:
        await told(app, "water")
    assert "water-meter.md" in several.value.message
    assert (await told(app, "")).stage == "not_in_catalog"
    assert (await told(app, "%")).stage == "not_in_catalog"


async def test_equal_texts(app: App, tmp_path: Path) -> None:
    """A copy is found, and the one that stands for it is named."""
    (tmp_path / "copy of watering.md").write_text(DOCUMENTS["watering.md"], encoding="utf-8")
    base = await app.library.collection("twins", create=True)
    (tmp_path / "watering.md").write_text(DOCUMENTS["watering.md"], encoding="utf-8")
    await ingest_paths(base, [tmp_path / "watering.md", tmp_path / "copy of watering.md"], app.settings)
    stages = {}
    for source in await base.list_sources():
        found = await told(app, source.doc_id, collection="twins")
        stages[found.stage] = found
    assert set(stages) == {"cited", "same_text"}
    assert stages["cited"].document.file_name in stages["same_text"].why


async def test_a_leg_that_is_down_is_no_leg_that_found_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ranks are unknown, which is said; the others still tell theirs."""
    from leadline.knowledge.retrievers import LexicalRetriever

    async def down(*_: Any) -> Any:
        raise StoreError("The index is on fire.")

    monkeypatch.setattr(LexicalRetriever, "hits", down)
    found = await told(app, "Zürich trip.txt", top_k=1, max_retries=0)
    assert found.stage == "not_found"
    assert "bm25 could not be asked (it failed in the run)" in found.why
    assert "vector has it at" in found.why
    assert "on fire" in found.failed["bm25"]
