"""Run as a program: does jobs in which processes are killed, and looks what they left behind.

A line of standard input is a list of jobs, as JSON; `done` is answered when all have written their results. What is
slow is imported and loaded once: every process is a fork from before any thread was started. The embedding model is
the real one; a text it was given once, it isn't given again.
"""

import asyncio
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.knowledge import crash_actions
from tests.knowledge.crash_actions import ACTIONS, GONE, NAMES, Changes, change_at_random, look
from tests.knowledge.crash_steps import Steps

from leadline.config import Settings, load_settings
from leadline.errors import ManifestMismatch
from leadline.knowledge import open_library
from leadline.models import minilm
from leadline.models.base import Vectors

Job = dict[str, Any]
Say = Callable[[str, Any], None]


def warm() -> None:
    """Loads the model and embeds every text of the sources, so that the forks have it all."""
    loaded = minilm.load(minilm.WEIGHTS)
    minilm.load = lambda folder: loaded
    embed = minilm.MiniLM.embed_passages
    known: dict[str, Vectors] = {}

    def remembered(self: minilm.MiniLM, texts: Sequence[str]) -> Vectors:
        if new := [each for each in dict.fromkeys(texts) if each not in known]:
            known.update(zip(new, embed(self, new), strict=True))
        return np.stack([known[each] for each in texts]) if texts else embed(self, texts)

    minilm.MiniLM.embed_passages = remembered  # type: ignore[method-assign]  # in this program only
    every = [crash_actions.draft(name, version) for name in NAMES for version in range(1, crash_actions.VERSIONS + 1)]
    texts = {chunk.embedded_text for draft in every for chunk in draft.chunks}
    remembered(crash_actions.TOKENIZER, [crash_actions.TOWN, *sorted(texts)])
    for name, version in crash_actions.STORED.items():
        crash_actions.draft(name, version, 200)
    for name in _imported_by_use():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # the forks share this memory as long as nobody touches it


def _imported_by_use() -> list[str]:
    """What a first use of a collection imports, found out by a child that must not leave its threads here."""
    known = set(sys.modules)

    def use(say: Say) -> None:
        others = {"vector_backend": "faiss", "lexical_backend": "rank-bm25"}
        for settings in ({}, others, {"vector_backend": "qdrant"}):
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(_again({"folder": folder, "action": "fill", "settings": settings}))
        say(
            "modules",
            [name for name, one in sys.modules.items() if name not in known and getattr(one, "__spec__", None)],
        )

    (modules,) = ended(*child(use))["modules"]
    return [str(name) for name in modules]


def settings_of(job: Job, which: str = "settings") -> Settings:
    """Those that the job names, over its folder."""
    given = {"chunk_tokens": crash_actions.TOKENS, "lock_timeout_s": 10} | job.get(which, {})
    return load_settings(data_dir=Path(job["folder"]), **given)


def child(work: Callable[[Say], None]) -> tuple[int, int]:
    """A process that does `work`; its id and where what it says can be read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    code = 1

    def say(kind: str, value: Any) -> None:
        os.write(writing, json.dumps([kind, value]).encode() + b"\n")

    try:
        work(say)
        code = 0
    except BaseException:  # noqa: BLE001 - told to the job
        say("error", traceback.format_exc())
    os._exit(code)


def ended(pid: int, reading: int) -> dict[str, list[Any]]:
    """Waits for a child; kind → what it said, and `status`."""
    with os.fdopen(reading, "rb") as file:
        lines = [json.loads(line) for line in file if line.endswith(b"\n")]
    _, status = os.waitpid(pid, 0)
    said: dict[str, list[Any]] = {"status": ["killed" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)]}
    for kind, value in lines:
        said.setdefault(kind, []).append(value)
    return said


def at_a_step(job: Job) -> Job:
    """Does the action in a process that is killed at the step named; without one its steps are counted."""
    said = ended(*child(partial(_awaited, partial(_act, job))))
    done = said.get("done", [])
    result: Job = {"status": said["status"][0], "error": said.get("error"), "steps": said.get("step", [])}
    result |= {"done": bool(done), "acknowledged": {name: v for state in done for name, v in state.items()}}
    if job.get("look", True):
        result["found"] = asyncio.run(_look(job))
    if job.get("again"):
        result["again"] = asyncio.run(_again(job))
    return result


async def _act(job: Job, say: Say) -> None:
    steps = Steps(Path(job["folder"]), job.get("kill"))
    steps.install()
    if job.get("from_start"):
        steps.arm()
    async with open_library(settings_of(job)) as library:
        if not job.get("from_start"):
            await library.collection()
            steps.arm()
        await ACTIONS[job["action"]](library, lambda state: say("done", state))
        steps.step("acknowledged", always=True)
    steps.step("closed", always=True)
    for name in steps.names:
        say("step", name)


async def _look(job: Job) -> dict[str, Any]:
    """With the settings that the indexes have: the new ones, unless the change was not made."""
    try:
        return await look(settings_of(job))
    except ManifestMismatch:
        return {**await look(settings_of(job, "settings_before")), "before": True}


async def _again(job: Job) -> dict[str, Any]:
    """The action made once more, and to its end."""
    async with open_library(settings_of(job)) as library:
        await ACTIONS[job["action"]](library, lambda _: None)
    return await look(settings_of(job))


def at_times(job: Job) -> Job:
    """Lives of processes that change sources at random, each its own; then the folder is looked at."""
    allowed = {name: {version} for name, version in job["before"].items()}
    lives = [_life(job, number, seconds) for number, seconds in enumerate(job["seconds"])]
    for said in (each for life in lives for each in life):
        done = said.get("done", [])
        for state in done:
            allowed |= {name: {version} for name, version in state.items()}
        for state in said.get("begun", [])[len(done) :]:
            allowed |= {name: {version, *allowed.get(name, {GONE})} for name, version in state.items()}
    return {
        "status": [[each["status"][0] for each in life] for life in lives],
        "errors": [error for life in lives for each in life for error in each.get("error", [])],
        "changes": sum(len(each.get("done", [])) for life in lives for each in life),
        "allowed": {name: sorted(versions) for name, versions in allowed.items()},
        "found": asyncio.run(look(settings_of(job))),
    }


def _life(job: Job, life: int, seconds: float) -> list[dict[str, list[Any]]]:
    """Processes at work together, of which the first is killed after so many seconds. What each said."""
    gates = [os.pipe() for _ in job["names"]]
    children = []
    for number in range(len(gates)):  # the first to open it is the host of a shared index
        seed = job["seed"] + 100 * life + number
        children.append(child(partial(_awaited, partial(_change, job, number, seed, gates[number][0]))))
        while os.read(children[-1][1], 1) not in (b"\n", b""):
            pass
    for reading, writing in gates:
        os.write(writing, b".")
        os.close(reading)
        os.close(writing)
    time.sleep(seconds)
    os.kill(children[0][0], signal.SIGKILL)
    return [ended(*each) for each in children]


def _awaited(work: Callable[[Say], Coroutine[Any, Any, None]], say: Say) -> None:
    asyncio.run(work(say))


async def _change(job: Job, number: int, seed: int, gate: int, say: Say) -> None:
    """Changes the sources of the process `number`: the first one for ever, the others so many times."""
    async with open_library(settings_of(job)) as library:
        await library.collection()
        say("open", number)
        await asyncio.to_thread(os.read, gate, 1)
        plan = Changes(job["names"][number], job["kinds"], seed, job["others"] if number else None)
        await change_at_random(library, plan, lambda state: say("begun", state), lambda state: say("done", state))


def do(job: Job) -> None:
    """Does a job in this process and writes its result."""
    folder = Path(job["folder"])
    if job.get("template"):
        shutil.copytree(job["template"], folder)
    try:
        result = at_times(job) if "seconds" in job else at_a_step(job)
    except BaseException:  # noqa: BLE001 - told to the test
        result = {"failed": traceback.format_exc()}
    if not job.get("keep") and "failed" not in result:
        shutil.rmtree(folder)
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


def main() -> None:
    """One process a job, as many at once as there are cores."""
    warm()
    for line in sys.stdin:
        running = 0
        for job in json.loads(line):
            if running == minilm.usable_cores():
                os.wait()
                running -= 1
            if os.fork() == 0:
                do(job)
                os._exit(0)
            running += 1
        for _ in range(running):
            os.wait()
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
