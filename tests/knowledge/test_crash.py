"""A process killed at any point of a put or a deletion leaves a collection that opens, agrees, and holds whole sources.

What had reached the catalog with its text is finished by the next opening; what had not never was.
"""

import asyncio
import hashlib
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.config import load_settings
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.knowledge import KnowledgeBase, VerifyReport, open_library

OLD = ["The harbour fee in Quokkaville is 10.", "The harbour opens at nine."]
NEW = ["The harbour fee in Numbatville is 20.", "The harbour opens at nine.", "Dogs are welcome."]


@pytest.fixture(scope="module")
def crasher() -> Iterator["subprocess.Popen[str]"]:
    """The program that dies on demand, warmed up."""
    command = [sys.executable, str(Path(__file__).parent / "crashing.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the old version of one source and another source beside it."""
    folder = tmp_path_factory.mktemp("crash") / "data"
    asyncio.run(fill(folder))
    return folder


async def fill(folder: Path) -> None:
    """Puts the two sources in."""
    async with open_library(load_settings(data_dir=folder)) as library:
        kb = await library.collection()
        await kb.put([source("plan.md", OLD), source("other.md", ["Gulls may not be fed."])])


def source(name: str, passages: list[str]) -> SourceDraft:
    """A draft."""
    chunks = tuple(ChunkDraft(text, 0, len(text)) for text in passages)
    return SourceDraft(name, name, hashlib.sha256("\n".join(passages).encode()).hexdigest(), chunks)


def crash(process: "subprocess.Popen[str]", folder: Path, action: str, point: str) -> str:
    """Does the action in a process that dies at the point; whether it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{folder}\t{action}\t{point}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


async def reopened(folder: Path) -> tuple[VerifyReport, dict[str, list[str]], list[str]]:
    """Opens the folder again: the comparison, what each leg finds, and the file names."""
    async with open_library(load_settings(data_dir=folder, lock_timeout_s=5)) as library:
        kb = await library.collection()
        assert kb.problems == ()
        return await kb.verify(), await found(kb), [s.file_name for s in await kb.list_sources()]


async def found(kb: KnowledgeBase) -> dict[str, list[str]]:
    """Leg → the texts that name one of the two towns."""
    legs = kb.retrievers().items()
    texts = {name: [d["content"] for d in await leg.search("Quokkaville Numbatville", k=20)] for name, leg in legs}
    return {name: [text for text in found if "ville" in text] for name, found in texts.items()}


def copied(stored: Path, tmp_path: Path) -> Path:
    """A copy of the data folder to do harm to."""
    return Path(shutil.copytree(stored, tmp_path / "data"))


@pytest.mark.parametrize(
    ("point", "survivor"),
    [
        ("before embedding", OLD),
        ("after embedding", OLD),
        ("before the catalog", OLD),
        ("after the catalog", OLD),
        ("before the texts", OLD),
        ("after the texts", NEW),
        ("before the vector index", NEW),
        ("after the vector index", NEW),
        ("after the lexical index", NEW),
        ("after the graph", NEW),
        ("before the switch", NEW),
        ("after the switch", NEW),
        ("before removing vectors", NEW),
        ("before removing the texts", NEW),
        ("after removing the texts", NEW),
        ("before the sweep", NEW),
        ("after the sweep", NEW),
    ],
)
async def test_a_killed_replacement_is_whole_or_not_there(
    crasher: "subprocess.Popen[str]", stored: Path, tmp_path: Path, point: str, survivor: list[str]
) -> None:
    """All legs answer with one version, the old one or the new one, and with nothing of the other."""
    folder = copied(stored, tmp_path)
    action = tmp_path / "new.txt"
    action.write_text("\n".join(NEW), encoding="utf-8")
    assert crash(crasher, folder, str(action), point) == "killed"
    report, texts, names = await reopened(folder)
    assert report.ok, report.problems
    assert texts == {leg: [survivor[0]] for leg in ("vector", "bm25", "graph")}
    assert report.chunks == len(survivor) + 1
    assert names == ["other.md", "plan.md"]


@pytest.mark.parametrize(
    "point",
    [
        "after the retirement",
        "before removing vectors",
        "after removing vectors",
        "before removing terms",
        "after removing entities",
        "before removing the texts",
        "after removing the texts",
        "before the sweep",
        "after the sweep",
    ],
)
async def test_a_killed_deletion_is_finished(
    crasher: "subprocess.Popen[str]", stored: Path, tmp_path: Path, point: str
) -> None:
    """Once begun it is done, in every leg, and no byte of the text stays in the catalog."""
    folder = copied(stored, tmp_path)
    assert crash(crasher, folder, "delete", point) == "killed"
    report, texts, names = await reopened(folder)
    assert report.ok, report.problems
    assert texts == {"vector": [], "bm25": [], "graph": []}
    assert names == ["other.md"]
    assert all(b"Quokkaville" not in path.read_bytes() for path in folder.glob("catalog.db*"))


async def test_random_kills_of_a_large_put(crasher: "subprocess.Popen[str]", stored: Path, tmp_path: Path) -> None:
    """Killed anywhere in a put of hundreds of chunks: it opens, agrees, and answers from before or after."""
    folder = copied(stored, tmp_path)
    action = tmp_path / "large.txt"
    clock = random.Random(7)
    for turn in range(4):
        passages = [f"Berth {number % 40} of Numbatville in turn {turn}." for number in range(400)]
        action.write_text("\n".join(passages), encoding="utf-8")
        crash(crasher, folder, str(action), f"after seconds {clock.uniform(0, 1.5):.3f}")
        report, _, names = await reopened(folder)
        assert report.ok, report.problems
        assert report.chunks in (len(OLD) + 1, 401)
        assert names == ["other.md", "plan.md"]
