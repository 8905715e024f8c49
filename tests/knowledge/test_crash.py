"""A process killed before any of its write steps leaves a collection that opens, agrees, and holds whole sources.

What had reached the catalog is finished by the next opening; what had not never was. `make crash` kills at every step
of every change; `make test` at every step of a replacement and a deletion, and at some of the others.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.knowledge.crash_client import THOROUGH, Crasher

STORED = {"plan": 1, "tide": 1, "crane": 1}
SOME = 4  # steps of the less frequent changes


@dataclass(frozen=True)
class Case:
    """A change: what it starts from, how it is made, and which versions of the sources there are before and after."""

    action: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    start: str = "stored"
    at_once: bool = False  # nobody ever sees some sources before it and some after it
    every: bool = False
    job: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "put": Case("put", STORED, STORED | {"ferry": 2}),
    "replacement": Case("replace", STORED, STORED | {"plan": 2}, every=True),
    "deletion": Case("delete", STORED, {"tide": 1, "crane": 1}, every=True),
    "sync": Case("sync", STORED, {"plan": 2, "tide": 1, "ferry": 2}),
    "clear": Case("clear", STORED, {}, at_once=True),
    "repair": Case("repair", STORED, STORED, start="damaged"),
    "reindex with other chunks": Case(
        "reindex",
        STORED,
        STORED,
        at_once=True,
        job={"settings": {"chunk_tokens": 200}, "settings_before": {}, "from_start": True},
    ),
    "reindex with another backend": Case(
        "reindex",
        STORED,
        STORED,
        at_once=True,
        job={"settings": {"vector_backend": "faiss"}, "settings_before": {}, "from_start": True},
    ),
    "first opening": Case("open", {}, {}, start="nothing", job={"from_start": True}),
    "opening after a killed replacement": Case(
        "open", STORED | {"plan": 2}, STORED | {"plan": 2}, start="replacing", job={"from_start": True}
    ),
    "opening after a killed deletion": Case(
        "open", {"tide": 1, "crane": 1}, {"tide": 1, "crane": 1}, start="deleting", job={"from_start": True}
    ),
}


def start(crasher: Crasher, name: str) -> dict[str, Any]:
    """What a job needs to begin with a copy of the folder of this name."""
    if name == "nothing":
        return {}
    stored = crasher.template("stored", action="fill")
    make = {
        "damaged": {"action": "damage", "from_start": True, "look": False},
        "replacing": {"action": "replace", "kill": "before ChromaVectorStore.upsert 1", "look": False},
        "deleting": {"action": "delete", "kill": "before ChromaVectorStore.delete 1", "look": False},
    }
    if name in make:
        stored = crasher.template(name, template=str(stored), **make[name])
    return {"template": str(stored)}


def chosen(case: Case, steps: list[str]) -> list[str]:
    """The steps to kill at."""
    if case.every or THOROUGH:
        return steps
    return random.Random(len(steps)).sample(steps, min(SOME, len(steps)))


def wrongs(case: Case, result: Mapping[str, Any]) -> list[str]:
    """What is not as it must be after a kill."""
    wrong = [] if result["status"] == "killed" else [f"it was not killed: {result['error']}"]
    if case.action != "repair" or result["done"]:  # before, the damage was there
        wrong += wrongs_found(case, result["found"], result["acknowledged"])
    if result.get("again", expected := {"versions": dict(case.after), "problems": []}) != expected:
        wrong.append(f"made again, it comes to {result['again']}")
    return wrong


def wrongs_found(case: Case, found: Mapping[str, Any], acknowledged: Mapping[str, int]) -> list[str]:
    """What the next opening should not have found."""
    versions = found["versions"]
    wrong = [f"problems: {found['problems']}"] if found["problems"] else []
    for name in {*case.before, *case.after, *versions}:
        if versions.get(name) not in (case.before.get(name), case.after.get(name)):
            wrong.append(f"{name} has the version {versions.get(name)}")
    for name, version in acknowledged.items():
        if versions.get(name, 0) != version:
            wrong.append(f"{name} was acknowledged as {version} and is {versions.get(name)}")
    if case.at_once and versions not in (case.before, case.after):
        wrong.append(f"half done: {versions}")
    return wrong


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_killed_before_a_write_step(crasher: Crasher, case: Case) -> None:
    """Each source is whole, old or new, in every index and every answer; the acknowledged ones are new; no repair."""
    job = {**start(crasher, case.start), "action": case.action, **case.job}
    (counted,) = crasher.run([job])
    assert counted["error"] is None, counted["error"][0]
    assert counted["found"] == {"versions": case.after, "problems": []}
    steps = chosen(case, counted["steps"])
    again = THOROUGH or not case.every
    results = crasher.run([{**job, "kill": step, "again": again} for step in steps])
    wrong = {step: wrongs(case, result) for step, result in zip(steps, results, strict=True)}
    assert {step: what for step, what in wrong.items() if what} == {}
