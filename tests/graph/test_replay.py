"""A recorded answer searched again: the same over unchanged documents, and every change named as what it is."""

import asyncio
import copy
import json
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.config import RunContext, Settings
from leadline.errors import CollectionUnknown, RecordError
from leadline.graph.differences import TOLERANCE
from leadline.graph.recorded import read_record
from leadline.graph.replay import Replay, replay
from leadline.graph.run import open_app
from leadline.graph.seal import hash_of_result, sealed
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import Library, open_library

DOCUMENTS = {
    "watering.md": "# Watering\n\nWater the tomatoes in the early morning. "
    "Tomatoes need about two litres of water a day. Never water the leaves: wet leaves get blight.\n",
    "pruning.md": "# Pruning\n\nRoses are pruned in March, before the buds open. "
    "Cut above a bud that points outward.\n",
    "compost.txt": "The compost heap was built by Dana Fox in 2019. It stands behind the shed and needs turning.\n",
}
QUESTION = "How much water do tomatoes need?"
QUESTIONS = [QUESTION, "Who built the compost heap?", "When are roses pruned?", "Who won the 1990 world cup?", "hi"]


async def take_in(library: Library, folder: Path, documents: dict[str, str], collection: str = "default") -> None:
    """Writes the documents to the folder and puts them in."""
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-8")
    base = await library.collection(collection, create=True)
    await ingest_paths(base, [folder / name for name in documents], library.settings)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A data folder with three notes, and question → result of a run over them."""
    folder = tmp_path_factory.mktemp("garden")

    async def make() -> dict[str, Any]:
        own = Settings(data_dir=folder / "data")
        async with open_library(own) as library:
            await take_in(library, folder, DOCUMENTS)
            async with open_app(own, library=library) as app:
                context = RunContext(web="never")
                return {question: await app.ask(question, context=context) for question in QUESTIONS}

    return folder / "data", asyncio.run(make())


Again = Callable[..., Awaitable[Replay]]


@pytest.fixture
def again(recorded: tuple[Path, dict[str, Any]], tmp_path: Path) -> Again:
    """Replays the answer to QUESTION over a copy of the data folder, after `change` was done to the copy.

    `result` stands for what such a run would have written, so it is sealed anew; `edited` is taken as it is.
    """
    shutil.copytree(recorded[0], tmp_path / "data")

    async def run(
        change: Callable[[Library], Awaitable[Any]] | None = None,
        *,
        result: Any = None,
        edited: Any = None,
        collection: str | None = None,
        **changed: Any,
    ) -> Replay:
        own = Settings(data_dir=tmp_path / "data", **changed)
        async with open_library(own) as library:
            if change is not None:
                await change(library)
            written = edited or sealed(result or recorded[1][QUESTION])
            return await replay(read_record(json.dumps(written)), library, collection=collection)

    return run


def kinds(found: Replay, file_name: str | None = None) -> set[str]:
    """What kinds of difference there are, of this file."""
    return {d.kind for d in found.differences if file_name is None or d.file_name == file_name}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_unchanged_documents_give_the_same(again: Again, recorded: Any, question: str) -> None:
    """Answered, abstained after retries, or a greeting: no difference and no note of one."""
    found = await again(edited=recorded[1][question])
    assert found.differences == ()
    assert found.same
    assert not any("generation" in note for note in found.notes)


async def test_a_retry_is_replayed_pass_by_pass(recorded: Any) -> None:
    """The record of a run that looked again holds each search and what was decided after it."""
    record = recorded[1]["Who won the 1990 world cup?"]["record"]
    assert len(record["passes"]) == 3
    assert [verdict["action"] for verdict in record["path"]] == ["retry", "retry", "abstain"]
    assert len({(search["query"], search["width"]) for search in record["passes"]}) == 3


async def test_a_removed_document_is_named(again: Again) -> None:
    """Each of its passages is gone, since it was removed; the sign of the others is told too."""

    async def remove(library: Library) -> None:
        base = await library.collection()
        await base.delete((await base.find_sources("watering.md"))[0].doc_id)

    found = await again(remove)
    assert kinds(found, "watering.md") == {"gone"}
    gone = next(d for d in found.differences if d.kind == "gone")
    assert gone.used
    assert "not in the documents any more" in gone.text
    assert "evidence" in kinds(found)
    assert any("generation" in note for note in found.notes)


async def test_a_replaced_document_is_told_from_a_removed_one(again: Again, tmp_path: Path) -> None:
    """The passage that isn't in the new version is gone, and the new one is new."""
    changed = {"watering.md": DOCUMENTS["watering.md"].replace("two litres", "nine litres")}
    found = await again(lambda library: take_in(library, tmp_path, changed))
    assert kinds(found, "watering.md") == {"gone", "new"}
    assert "was replaced" in next(d for d in found.differences if d.kind == "gone").text


async def test_a_document_put_in_elsewhere_only_is_a_note(again: Again, tmp_path: Path) -> None:
    """Another collection's change changes nothing that is found: the same, and the generation is told."""
    found = await again(lambda library: take_in(library, tmp_path, {"other.md": "Beans climb."}, "beans"))
    assert found.same
    assert any("generation" in note for note in found.notes)


async def test_a_new_document_is_new_and_moves_the_others(again: Again, tmp_path: Path) -> None:
    """What pushes others down is named with its rank, and they with theirs then and now."""
    text = "Tomatoes need three litres of water a day, and how much water they need depends on the sun."
    found = await again(lambda library: take_in(library, tmp_path, {"sun.md": text}))
    assert kinds(found, "sun.md") == {"new"}
    moved = next(d for d in found.differences if d.kind in ("moved", "legs"))
    assert moved.was["legs"] != moved.now["legs"]


async def test_another_collection_is_said(again: Again, tmp_path: Path) -> None:
    """Every passage is gone, where it is instead is told, and that its text is found under another id."""
    found = await again(lambda library: take_in(library, tmp_path, DOCUMENTS, "twin"), collection="twin")
    assert "collection" in kinds(found)
    gone = [d for d in found.differences if d.kind == "gone"]
    assert gone
    assert all("in default" in d.text and "same text" in d.text for d in gone)


async def test_a_collection_that_is_not_there_is_an_error(again: Again) -> None:
    """Not a difference: nothing was compared."""
    with pytest.raises(CollectionUnknown):
        await again(collection="nowhere")


async def test_a_record_of_another_library(recorded: Any, tmp_path: Path) -> None:
    """Without any of its documents nothing can be compared, which is an error; with the same ones it is a note."""
    own = Settings(data_dir=tmp_path / "data")
    given = read_record(json.dumps(recorded[1][QUESTION]))
    async with open_library(own) as library:
        await take_in(library, tmp_path, {"foreign.md": "Water boils."})
        with pytest.raises(RecordError, match="another library: none of its 3 documents"):
            await replay(given, library)
        base = await library.collection()
        await base.clear()
        await take_in(library, tmp_path, DOCUMENTS)
        found = await replay(given, library)
    assert found.same
    assert "The record is of another library; 3 of its 3 documents are here too." in found.notes


async def test_other_settings_are_named_one_by_one(again: Again) -> None:
    """Name, value then and value now; the run's own width is kept for the comparison."""
    found = await again(run=RunContext(rerank_top_k=3), max_wrong=0.2)
    told = {d.text for d in found.differences if d.kind == "setting"}
    assert told == {
        "max_wrong was not set, it is now 0.2.",
        "rerank_top_k was 5, it is now 3 (replayed with 5).",
    }
    assert kinds(found) == {"setting"}


async def test_another_zero_point_is_told_from_other_passages(again: Again, recorded: Any) -> None:
    """A calibration moves every logit by the same: the zero point is named, and each passage's logits."""
    result = copy.deepcopy(recorded[1][QUESTION])
    result["record"]["zero_point"] = 0.5
    for row in result["context"]:
        row["rerank_score"] -= 0.5
    found = await again(result=result)
    assert "zero_point" in kinds(found)
    assert kinds(found, "watering.md") == {"rescored"}


async def test_other_models_are_named(again: Again, recorded: Any) -> None:
    """By their weights: the same name with other weights is another model."""
    result = copy.deepcopy(recorded[1][QUESTION])
    result["models"]["reranker"] += "x"
    found = await again(result=result)
    assert kinds(found) == {"model"}
    assert result["models"]["reranker"] in found.differences[0].text


async def test_logits_within_the_tolerance_are_the_same(again: Again, recorded: Any) -> None:
    """Another processor rounds otherwise; beyond the tolerance it is a difference."""
    for off, wanted in ((TOLERANCE * 0.5, set()), (TOLERANCE * 2, {"rescored"})):
        result = copy.deepcopy(recorded[1][QUESTION])
        result["context"][0]["rerank_score"] += off
        assert kinds(await again(result=result)) == wanted


async def test_a_text_that_was_tampered_with_is_seen(again: Again) -> None:
    """The same id with another text in the content store."""
    from sqlalchemy import text

    async def tamper(library: Library) -> None:
        with library.catalog.write_cache() as connection:
            connection.execute(text("UPDATE texts SET text = replace(text, 'two litres', 'six litres')"))

    found = await again(tamper)
    assert "changed" in kinds(found, "watering.md")


async def test_a_passage_that_is_found_no_more_but_is_there(again: Again, recorded: Any) -> None:
    """Told from one that is gone: narrower searches leave it out."""
    result = copy.deepcopy(recorded[1][QUESTION])
    for search in result["record"]["passes"]:
        search["width"] = 1
    found = await again(result=result)
    assert "not_found" in kinds(found)
    assert "gone" not in kinds(found)


async def test_what_the_web_gave_stands_as_it_was(again: Again, recorded: Any) -> None:
    """Nothing is asked of the web; its passage competes with the rank and logit that it had."""
    result = copy.deepcopy(recorded[1][QUESTION])
    first = result["context"][0]
    for row in result["context"]:
        row["rank"] += 1
    found_by = {"web": {"rank": 0, "score": 1.0, "in_pass": 1}}
    result["context"].append(
        {**first, "chunk_id": "w", "source_type": "web", "found_by": found_by, "rank": 0, "rerank_score": 50.0}
    )
    result["record"]["passes"][0]["sources"].append("web")
    found = await again(result=result)
    assert found.same
    assert any("web" in note for note in found.notes)


def set_answer(result: Any) -> None:
    """Another word in the answer."""
    result["answer"] = result["answer"].replace("two", "nine")


def set_number(result: Any) -> None:
    """Another number of a citation."""
    result["citations"][0]["n"] += 1


def set_kept(result: Any) -> None:
    """A passage that the writer saw is said to have been dropped."""
    result["context"][0].update(kept=False, fate="beyond_top", why="ranked too low")


def set_verdict(result: Any) -> None:
    """Another verdict on the answer."""
    result["verdict"]["grounding"] = "ungrounded"


def set_cost(result: Any) -> None:
    """Another cost."""
    result["usage"]["cost"] = 12.0


def take_hash(result: Any) -> None:
    """The record's hash of itself is taken out, to hide an edit."""
    set_answer(result)
    del result["record"]["result_hash"]


@pytest.mark.parametrize("edit", [set_answer, set_number, set_kept, set_verdict, set_cost, take_hash])
async def test_a_record_that_was_edited_is_not_the_same(
    again: Again, recorded: Any, edit: Callable[[Any], None]
) -> None:
    """Also where what is found is as it was: a label that was changed by hand is no label of the run."""
    result = copy.deepcopy(recorded[1][QUESTION])
    edit(result)
    found = await again(edited=result)
    assert kinds(found) == {"record"}
    assert not found.same


def test_a_record_that_was_only_written_otherwise_is_as_it_was(recorded: Any) -> None:
    """Other blanks, another order of keys, 1 for 1.0, as other programs write JSON."""

    def as_a_browser(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, dict):
            return {key: as_a_browser(value[key]) for key in reversed(value)}
        return [as_a_browser(each) for each in value] if isinstance(value, list) else value

    for result in recorded[1].values():
        written = as_a_browser({**result, "context": [{**row, "rerank_score": 2.0} for row in result["context"]]})
        read = read_record(json.dumps(written, indent=3))
        floats = {**result, "context": [{**row, "rerank_score": 2.0} for row in result["context"]]}
        assert read.hash_now == hash_of_result(floats)


async def test_the_final_event_of_a_stream_is_a_record(again: Again, recorded: Any) -> None:
    """Whatever surface the answer came from."""
    assert (await again(edited={"type": "final", "result": recorded[1][QUESTION]})).same


def test_a_record_holds_no_text_and_no_folder(recorded: Any) -> None:
    """Of the passages only what the answer quotes; nothing of this machine; a hash of every text."""
    folder, results = recorded
    result = results[QUESTION]
    quotes = {citation["quote"] for citation in result["citations"]}
    written = json.dumps(
        {key: value for key, value in result.items() if key not in ("answer", "citations")}, ensure_ascii=False
    )
    assert str(folder) not in written
    assert str(folder.parent) not in written
    for text in DOCUMENTS.values():
        for sentence in text.split(". "):
            assert sentence.strip() not in written or sentence in quotes
    assert all(len(row["content_hash"]) == 32 for row in result["context"])
    assert set(result["record"]["sources"]) == {row["doc_id"] for row in result["context"]}
    assert all("/" not in source["file_name"] for source in result["record"]["sources"].values())


async def test_a_conversation_keeps_no_record(recorded: Any, tmp_path: Path) -> None:
    """The asker gets it; what is stored of the turn names no document that wasn't cited."""
    shutil.copytree(recorded[0], tmp_path / "data")
    async with open_app(Settings(data_dir=tmp_path / "data")) as app:
        result = await app.ask(QUESTION, context=RunContext(web="never"), thread_id="t")
    assert "compost.txt" in json.dumps(result["record"])
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("threads.db*"))
    assert b"watering.md" in stored
    assert b"compost.txt" not in stored
    assert b"settings_hash" not in stored


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "isn't JSON"),
        ("{", "isn't JSON"),
        ("[" * 100_000, "isn't JSON"),
        ("[]", "not the record"),
        ('{"question": "x"}', "not the record"),
        ('{"question": "x", "context": []}', "no record"),
        ('{"question": "x", "context": [], "record": {"format": 99}}', "format 99"),
        ('{"question": "x", "context": [], "record": {"format": 1}}', "damaged"),
        ('{"result": 5}', "not the record"),
        ('{"question": "x", "context": ' + "[" * 900 + "]" * 900 + ', "record": {"format": 1}}', "damaged"),
    ],
)
def test_something_else_is_no_record(text: str, told: str) -> None:
    """One clear sentence, whatever it is."""
    with pytest.raises(RecordError, match=told):
        read_record(text)


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_record_is_an_error_or_still_a_record(recorded: Any, data: Any) -> None:
    """Any value anywhere replaced by any other: a RecordError or a checked record, never another exception."""
    result = copy.deepcopy(recorded[1][QUESTION])
    part: Any = result
    while True:
        key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        if isinstance(part[key], dict | list) and part[key] and data.draw(st.booleans()):
            part = part[key]
            continue
        part[key] = data.draw(st.none() | st.integers() | st.floats() | st.text() | st.lists(st.none(), max_size=2))
        break
    with suppress(RecordError):
        assert len(read_record(json.dumps(result)).record.passes) == len(result["record"]["passes"])
