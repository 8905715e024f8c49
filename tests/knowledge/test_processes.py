"""Several processes use one data folder at once: they put in, replace, delete and ask, and none hinders another.

Each change is looked for by another process as soon as it is acknowledged.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from leadline.config import Settings, load_settings
from leadline.knowledge import KnowledgeBase, open_library
from leadline.stores.shared_host import host_file

# Puts documents in, replaces every second, deletes every third; tells of each change once it is acknowledged, and goes
# on when it is told to.
WRITER = """
import asyncio, pathlib, sys
from leadline.config import load_settings
from leadline.knowledge import open_library

async def tell(*words):
    print(*words, flush=True)
    await asyncio.to_thread(sys.stdin.readline)

async def main(folder, backend, name, count):
    async with open_library(load_settings(data_dir=pathlib.Path(folder), vector_backend=backend)) as library:
        kb = await library.collection()
        await tell("open")
        for n in range(int(count)):
            doc = f"{name}{n}"
            await kb.add_documents([f"The berth of {doc} is first."], ids=[doc])
            await tell("has", doc, "first")
            if n % 2:
                await kb.add_documents([f"The berth of {doc} is second."], ids=[doc])
                await tell("has", doc, "second")
            if n % 3 == 2:
                await kb.delete(doc)
                await tell("lost", doc)

asyncio.run(main(*sys.argv[1:]))
"""
# Asks until it is told to end; says how often it was answered.
ASKER = """
import asyncio, pathlib, sys
from leadline.config import load_settings
from leadline.graph.run import open_app

async def main(folder, backend):
    settings = load_settings(data_dir=pathlib.Path(folder), vector_backend=backend)
    told = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    answers = 0
    async with open_app(settings) as app:
        while not told.done() or not answers:
            result = await app.ask("Which town has the tide bell?")
            assert result["status"] == "answered" and "Numbatville" in result["answer"], result
            assert result["degraded"] == [], result
            answers += 1
            await asyncio.sleep(0.05)  # leaves the cores to the writers
    print(answers, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
DOCUMENTS = 4


@asynccontextmanager
async def process(script: str, *arguments: object) -> AsyncIterator[Process]:
    """Another process that runs the script."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *map(str, arguments), stdin=PIPE, stdout=PIPE
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def line(other: Process) -> list[str]:
    """What the process says next; empty when it has ended."""
    assert other.stdout is not None
    return (await other.stdout.readline()).decode().split()


def go_on(other: Process) -> None:
    """Lets the process take its next step."""
    assert other.stdin is not None
    other.stdin.write(b"\n")


async def follow(other: Process, kb: KnowledgeBase) -> dict[str, str]:
    """Looks here for what the other process says it did; what it left in the end."""
    has: dict[str, str] = {}
    go_on(other)
    while words := await line(other):
        match words:
            case ["has", doc, berth]:
                has[doc] = berth
                await expect(kb, doc, {f"The berth of {doc} is {berth}."})
            case ["lost", doc]:
                del has[doc]
                await expect(kb, doc, set())
        go_on(other)
    return has


async def expect(kb: KnowledgeBase, doc: str, texts: set[str]) -> None:
    """Every leg that knows words or vectors finds exactly these of the document, at once."""
    legs = kb.retrievers()
    for name in ("vector", "bm25"):
        found = await legs[name].search(f"The berth of {doc}", k=5, where={"doc_id": doc})
        assert {document["content"] for document in found} == texts, (name, doc)


@pytest.mark.parametrize("backend", ["chroma", "faiss"])
async def test_nothing_is_lost_and_nothing_is_stale(tmp_path: Path, backend: str) -> None:
    """Two write, one asks, this one looks: each change is found or gone as soon as it is acknowledged, no answer is
    degraded, and in the end catalog and indexes agree."""
    settings = load_settings(data_dir=tmp_path / "data", vector_backend=backend)
    await prepare(settings)
    place = (settings.data_dir, backend)
    async with (
        process(WRITER, *place, "a", DOCUMENTS) as first,
        process(WRITER, *place, "b", DOCUMENTS) as second,
        process(ASKER, *place) as asker,
        open_library(settings) as library,
    ):
        kb = await library.collection()
        assert [await line(first), await line(second)] == [["open"], ["open"]]
        left = await asyncio.gather(follow(first, kb), follow(second, kb))
        assert [await first.wait(), await second.wait()] == [0, 0]
        go_on(asker)
        assert int((await line(asker))[0]) > 0
        assert await asker.wait() == 0
        report = await kb.verify()
        assert report.ok, report.problems
        names = {source.doc_id for source in await kb.list_sources()}
        assert names == {"bell", *left[0], *left[1]}


async def prepare(settings: Settings) -> None:
    """One document that the questions are about."""
    async with open_library(settings) as library:
        kb = await library.collection()
        await kb.add_documents(["The tide bell hangs in Numbatville, above the old lock."], ids=["bell"])


async def test_a_killed_writer_leaves_the_others_at_work(tmp_path: Path) -> None:
    """Whoever is killed, also the one that has the index open for all: the others go on at once, and what it had
    acknowledged is there."""
    settings = load_settings(data_dir=tmp_path / "data")
    index = settings.data_dir / "indexes" / "default" / "vector"
    async with process(WRITER, settings.data_dir, "chroma", "a", 50) as victim:
        assert await line(victim) == ["open"]
        async with process(WRITER, settings.data_dir, "chroma", "b", 3) as other, open_library(settings) as library:
            kb = await library.collection()
            assert await line(other) == ["open"]
            assert f'"pid": {victim.pid}' in host_file(index).read_text()
            go_on(victim)
            last: list[str] = []
            for _ in range(8):
                last = await line(victim)
                go_on(victim)
            await asyncio.sleep(0.02)  # into its next change
            os.kill(victim.pid, signal.SIGKILL)
            left = await follow(other, kb)
            assert await other.wait() == 0
            assert last[0] == "has"
            names = {source.doc_id for source in await kb.list_sources()}
            assert {last[1], *left} <= names
            report = await kb.verify()
            assert report.ok, report.problems
