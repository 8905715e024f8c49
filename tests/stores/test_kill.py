"""A process killed while it writes leaves indexes that open, hold what was acknowledged, and can be written."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leadline.analysis import Analyzer
from leadline.stores import open_lexical_store, open_vector_store
from leadline.stores.base import ChunkRecord

WRITER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from leadline.analysis import Analyzer
from leadline.stores import open_lexical_store, open_vector_store
from leadline.stores.base import ChunkRecord

async def main(backend, path):
    if backend in ("chroma", "faiss"):
        opened = open_vector_store(backend, path=path)
    else:
        opened = open_lexical_store(backend, path=path, analyzer=Analyzer())
    async with opened as store:
        for start in range(0, 100_000, 100):
            vectors = np.random.default_rng(start).normal(size=(100, 8)).astype(np.float32)
            await store.upsert(
                [ChunkRecord(f"c{start + n}", "d", f"rain {start + n}", (vectors[n],)) for n in range(100)]
            )
            print(start + 100, flush=True)

asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


@pytest.mark.parametrize("backend", ["chroma", "faiss", "tantivy", "rank-bm25"])
async def test_killed_writer_loses_nothing_acknowledged(backend: str, tmp_path: Path) -> None:
    """After kill -9 the store opens, knows every acknowledged chunk and takes new ones: no lock is left behind."""
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs
        [sys.executable, "-c", WRITER, backend, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        while acknowledged < 1500:
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    if backend in ("chroma", "faiss"):
        opened = open_vector_store(backend, path=tmp_path)
    else:
        opened = open_lexical_store(backend, path=tmp_path, analyzer=Analyzer())
    async with opened as store:
        assert {f"c{n}" for n in range(acknowledged)} <= await store.all_ids()
        await store.upsert([ChunkRecord("new", "d", "quokka", (np.ones(8, dtype=np.float32),))])
        assert "new" in await store.all_ids()
