"""Files of an index that somebody crafted: opening one never runs code from it."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stores.engines import DIMENSION, ENGINES, Engine, opened

from leadline.errors import StoreDamaged
from leadline.stores.base import ChunkRecord

# Chroma and the graph of FAISS save files of their own from some number of vectors on.
COUNTS = {"chroma": 1100, "faiss-hnsw": 2100}
# Not Qdrant's: its files are many and large, and nothing but its engine, which has no Python in it, reads them.
EMBEDDED = ("chroma", "faiss", "faiss-hnsw", "tantivy", "rank-bm25")


class Crafted:
    """What touches a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return Path.touch, (self._target,)


async def filled(engine: Engine, folder: Path, count: int) -> None:
    """An index of so many chunks."""
    vectors = np.random.default_rng(2).normal(size=(count, DIMENSION)).astype(np.float32)
    records = [ChunkRecord(f"c{n}", "d", f"rain {n}", (vector,)) for n, vector in enumerate(vectors)]
    async with opened(engine, folder, engine.options) as backend:
        await backend.store.upsert(records)
        await backend.find("rain")


def test_the_crafted_bytes_do_run() -> None:
    """What the next test is worth: whoever unpickles them has run them."""
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(Crafted(Path("/nowhere/at/all"))))


@pytest.mark.parametrize("name", EMBEDDED)
async def test_no_file_of_an_index_is_run(name: str, tmp_path: Path) -> None:
    """Each file in turn is replaced by a pickle: the index is refused, or works without it, and nothing is run."""
    engine, folder, ran = ENGINES[name], tmp_path / "index", tmp_path / "ran"
    await filled(engine, folder, COUNTS.get(name, 50))
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        path.write_bytes(pickle.dumps(Crafted(ran)))
        try:
            async with opened(engine, folder, engine.options) as backend:
                await backend.find("rain")
        except StoreDamaged:
            pass
        assert not ran.exists(), path.name
        path.write_bytes(content)
