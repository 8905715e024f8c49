"""A run that followed a name from one passage to another, searched again."""

import asyncio
import copy
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from leadline.config import RunContext, Settings
from leadline.graph.recorded import read_record
from leadline.graph.replay import Replay, replay
from leadline.graph.run import open_app
from leadline.graph.seal import sealed
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import Library, open_library

QUESTION = "Where was the director of Alpha Station born?"
NOTES = {
    "film.md": "Alpha Station is a film. The director of Alpha Station is Dana Fox, they say.",
    "fox.md": "Dana Fox came into the world in Oslo.",
    **{f"noise{n}.md": f"The station number {n} is where the director of trains works." for n in range(12)},
}
Again = Callable[..., Awaitable[Replay]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A data folder, and the result of a run whose first search is too narrow to find the second passage."""
    folder = tmp_path_factory.mktemp("hops")

    async def make() -> Any:
        own = Settings(data_dir=folder / "data")
        async with open_library(own) as library:
            for name, text in NOTES.items():
                (folder / name).write_text(text, encoding="utf-8")
            await ingest_paths(await library.collection(), [folder / name for name in NOTES], own)
            async with open_app(own, library=library) as app:
                return await app.ask(QUESTION, context=RunContext(web="never", top_k=1))

    return folder / "data", asyncio.run(make())


@pytest.fixture
def again(recorded: tuple[Path, Any], tmp_path: Path) -> Again:
    """Replays the run, or `result` in its place, over a copy of the data folder after `change` was done to it."""
    own = Settings(data_dir=Path(shutil.copytree(recorded[0], tmp_path / "data")), run=RunContext(top_k=1))

    async def run(change: Callable[[Library], Awaitable[Any]] | None = None, *, result: Any = None) -> Replay:
        async with open_library(own) as library:
            if change is not None:
                await change(library)
            return await replay(read_record(json.dumps(result or recorded[1])), library)

    return run


def of(found: Replay, file_name: str) -> set[str]:
    """The kinds of difference of this file."""
    return {difference.kind for difference in found.differences if difference.file_name == file_name}


async def test_a_hop_is_made_again_as_it_was(again: Again, recorded: tuple[Path, Any]) -> None:
    """The record holds the names and the passage they are from; the second passage is found by them again, and the
    joint reading gives it the place that it had."""
    first, second = recorded[1]["record"]["passes"]
    assert (first["query"], second["query"], second["hops"]) == (QUESTION, "Dana Fox", ["Dana Fox"])
    rows = {row["file_name"]: row for row in recorded[1]["context"]}
    assert second["hops_from"] == rows["film.md"]["chunk_id"]
    assert (rows["fox.md"]["led_by"], rows["fox.md"]["rank"]) == ("Dana Fox", 1)
    assert {found["in_pass"] for found in rows["fox.md"]["found_by"].values()} == {2}
    found = await again()
    assert (found.differences, found.candidates) == ((), len(rows))


async def test_the_end_of_a_hop_is_gone(again: Again) -> None:
    """What was removed is named, and what the names lead to instead, if anything, is no hop."""

    async def remove(library: Library) -> None:
        base = await library.collection()
        await base.delete((await base.find_sources("fox.md"))[0].doc_id)

    found = await again(remove)
    assert of(found, "fox.md") == {"gone"}
    assert of(found, "film.md") == set()


async def test_without_its_hop_the_second_passage_is_not_found(again: Again, recorded: tuple[Path, Any]) -> None:
    """It is the names that find it: a record of the first search alone has it nowhere."""
    result = copy.deepcopy(recorded[1])
    result["record"]["passes"].pop()
    assert of(await again(result=sealed(result)), "fox.md") == {"not_found"}
