"""A process killed while it writes leaves indexes that open, hold what was acknowledged, and can be written."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.stores.engines import ENGINES, HERE, opened, record

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("LEADLINE_CRASH_ROUNDS") or 10) // 10
WRITER = """
import asyncio, json, sys
from pathlib import Path
import numpy as np
from leadline.stores.base import ChunkRecord
from tests.stores.engines import DIMENSION, ENGINES, opened

async def main(name, folder, options):
    async with opened(ENGINES[name], Path(folder), json.loads(options)) as backend:
        for start in range(0, 100_000, 100):
            vectors = np.random.default_rng(start).normal(size=(100, DIMENSION)).astype(np.float32)
            await backend.store.upsert(
                [ChunkRecord(f"c{start + n}", "d", f"rain {start + n}", (vectors[n],)) for n in range(100)]
            )
            print(start + 100, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
# A stand-in lives in the process of the tests, a server's words are in the engine that has its vectors, and PostgreSQL
# is killed with a whole catalog in it, elsewhere.
KILLED = [
    name
    for name, engine in HERE.items()
    if not engine.joined and not name.endswith("-standin") and not (engine.server and engine.kind != "vector")
]


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("name", KILLED)
async def test_killed_writer_loses_nothing_acknowledged(
    name: str, number: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """After kill -9 the store opens, knows every acknowledged chunk and takes new ones: no lock is left behind."""
    engine = ENGINES[name]
    options = {**engine.options, **(request.getfixturevalue(engine.server) if engine.server else {})}
    arguments = [sys.executable, "-c", WRITER, name, str(tmp_path), json.dumps(options)]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:  # noqa: ASYNC220 - alone
        assert writer.stdout is not None
        chance = random.Random(f"{name} {number}")
        enough, acknowledged = chance.randrange(100, 3000), 0
        while acknowledged < enough:
            acknowledged = int(writer.stdout.readline())
        time.sleep(chance.random() * 0.05)  # noqa: ASYNC251 - alone
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    async with opened(engine, tmp_path, options) as backend:
        assert {f"c{n}" for n in range(acknowledged)} <= await backend.store.all_ids()
        await backend.store.upsert([record("new", "Wombat")])
        assert await backend.find_ids("Wombat") == ["new"]
