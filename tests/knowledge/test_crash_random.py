"""Processes that change sources without an end are killed at any time: what was acknowledged is there, all is whole.

10 rounds in `make test`, 100 in `make crash`. All texts are embedded beforehand, so that the kills hit the storing.
"""

import random
from typing import Any

import pytest
from tests.knowledge.crash_client import ROUNDS, Crasher

STORED = {"plan": 1, "tide": 1, "crane": 1}
LONGEST_S = 1.2
ONE = [["plan", "tide", "crane", "fees", "gulls", "ferry"]]
TWO = [["plan", "tide", "crane"], ["fees", "gulls", "ferry"]]
EVERY_KIND = ["put", "put", "delete", "sync"]


@pytest.mark.parametrize(
    ("settings", "names", "kinds", "rounds"),
    [
        pytest.param({}, ONE, EVERY_KIND, ROUNDS, id="chroma"),
        pytest.param({}, TWO, ["put", "put", "delete"], ROUNDS // 4, id="the host of chroma beside another process"),
        pytest.param(
            {"vector_backend": "faiss", "lexical_backend": "rank-bm25"}, ONE, EVERY_KIND, ROUNDS // 4, id="faiss"
        ),
        pytest.param({"vector_backend": "qdrant"}, ONE, EVERY_KIND, ROUNDS // 4, id="qdrant"),
        pytest.param({"vector_backend": "qdrant"}, TWO, ["put", "delete"], ROUNDS // 4, id="the host of qdrant"),
    ],
)
def test_killed_at_any_time(
    crasher: Crasher, settings: dict[str, Any], names: list[list[str]], kinds: list[str], rounds: int
) -> None:
    """Twice in a row: every source is as it was acknowledged, or as the change under way was to make it.

    A process beside the killed one makes all of its changes.
    """
    backend = settings.get("vector_backend", "stored")
    job = {"settings": settings, "names": names, "kinds": kinds, "before": {}, "others": 4}
    if backend != "qdrant":  # its folder is large, at first with nothing in it, and slow to copy
        template = crasher.template(backend, action="fill", settings=settings)
        job |= {"template": str(template), "before": STORED}
    dice = random.Random(f"{backend} {len(names)}")
    seconds = [[dice.uniform(0, LONGEST_S), dice.uniform(0, LONGEST_S)] for _ in range(rounds)]
    results = crasher.run([{**job, "seconds": both, "seed": 1000 * turn} for turn, both in enumerate(seconds)])
    for turn, result in enumerate(results):
        assert result["errors"] == [], f"round {turn}: {result['errors'][0]}"
        assert result["status"] == [["killed", *[0] * (len(names) - 1)]] * 2
        assert result["found"]["problems"] == [], f"round {turn}"
        found = result["found"]["versions"]
        wrong = {name: found.get(name, 0) for name, can in result["allowed"].items() if found.get(name, 0) not in can}
        assert wrong == {}, f"round {turn}: it could be {result['allowed']}"
    assert sum(result["changes"] for result in results) > rounds
