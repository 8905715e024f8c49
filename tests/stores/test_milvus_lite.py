"""Milvus Lite over a file of this machine: started, shared and ended by the stores that use it."""

import asyncio
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.stores.test_milvus import Options, ids, unit

from leadline.errors import ConfigError, MissingExtra, StoreError
from leadline.stores import milvus_lite
from leadline.stores.base import ChunkRecord
from leadline.stores.milvus import MilvusVectorStore


def engines() -> list[Path]:
    """The sockets of the Milvus Lite engines that this process uses."""
    return [engine.socket for engine in milvus_lite._engines.values()]


class TestLocalFile:
    """Milvus Lite over a file of this machine, started and ended by the stores that use it."""

    @pytest.fixture(autouse=True)
    def installed(self, milvus_lite: Options) -> None:
        """Skips where milvus-lite isn't installed."""

    async def test_file_or_folder(self, tmp_path: Path) -> None:
        """A path instead of a URL is a file, `path` a folder for one; what was stored is there the next time."""
        for place, file in (({"url": f"{tmp_path}/x.db"}, "x.db"), ({"path": tmp_path / "f"}, "f/milvus.db")):
            async with MilvusVectorStore(**place) as store:
                await store.upsert([ChunkRecord("a", "d", vectors=(unit(1, 0),))])
            assert (tmp_path / file).is_file()
            async with MilvusVectorStore(**place) as store:
                assert ids(await store.search(unit(1, 0), k=1)) == ["a"]
                assert (await store.stats())["at"] == str(tmp_path / file)
        assert engines() == []

    async def test_stores_of_one_file_share_its_engine(self, tmp_path: Path) -> None:
        """The engine ends with the last of them."""
        async with MilvusVectorStore(path=tmp_path, collection="v") as vectors:
            async with MilvusVectorStore(path=tmp_path, collection="w", enable_bm25=True, dense=False) as words:
                await words.ensure_ready()
                await words.upsert([ChunkRecord("w", "d", "wombat")])
                assert len(engines()) == 1
            await vectors.upsert([ChunkRecord("v", "d", vectors=(unit(1, 0),))])
            assert len(engines()) == 1
            socket_folder = engines()[0].parent
            assert socket_folder.stat().st_mode & 0o077 == 0
        assert engines() == []
        assert not socket_folder.exists()

    async def test_processes_share_a_file(self, tmp_path: Path) -> None:
        """Several processes write into one file at once; nothing is lost, and the one that started it may go first."""
        async with MilvusVectorStore(path=tmp_path) as store:
            await store.ensure_ready(2)
            other = await start_writer(tmp_path, "p")
            await other.stdout.readline()
            for n in range(5):
                names = [f"q{n}-{i}" for i in range(40)]
                await store.upsert([ChunkRecord(name, "d", vectors=(unit(1, n),)) for name in names])
        async with MilvusVectorStore(path=tmp_path) as store:
            assert await other.wait() == 0
            assert await store.count() == 2 * 5 * 40
        assert engines() == []

    async def test_killed_process_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """Its engine ends by itself, and the next one opens the file with all that was acknowledged."""
        wait = "print(*(one.socket for one in milvus_lite._engines.values()), flush=True); time.sleep(60)"
        process = await start_writer(tmp_path, "p", wait)
        await process.stdout.readline()
        place = (await process.stdout.readline()).decode().strip()
        process.kill()
        await process.wait()
        async with MilvusVectorStore(path=tmp_path) as store:
            assert await store.count() == 5 * 40
        assert not Path(place).parent.exists()

    async def test_copied_folder_is_a_store_of_its_own(self, tmp_path: Path) -> None:
        """Also when the copy is made while the original is open."""
        async with MilvusVectorStore(path=tmp_path / "a") as store:
            await store.upsert([ChunkRecord("a", "d", vectors=(unit(1, 0),))])
            copying = await asyncio.create_subprocess_exec("cp", "-r", str(tmp_path / "a"), str(tmp_path / "b"))
            assert await copying.wait() == 0
            async with MilvusVectorStore(path=tmp_path / "b") as copy:
                await copy.upsert([ChunkRecord("b", "d", vectors=(unit(1, 0),))])
                assert await copy.all_ids() == {"a", "b"}
            assert await store.all_ids() == {"a"}

    async def test_dead_engine_is_started_again(self, tmp_path: Path) -> None:
        """A store that is opened after the engine died has a new one."""
        first = MilvusVectorStore(path=tmp_path, timeout=2)
        async with first:
            await first.upsert([ChunkRecord("a", "d", vectors=(unit(1, 0),))])
            milvus_lite._started[-1].kill()
            milvus_lite._started[-1].wait()
            with pytest.raises(StoreError, match=re.escape(str(tmp_path))):
                await first.count()
            async with MilvusVectorStore(path=tmp_path) as second:
                assert await second.all_ids() == {"a"}
        assert engines() == []

    @pytest.mark.parametrize("content", [b"no database at all" * 500, b"SQLite format 3\x00" + b"\xff" * 4096])
    async def test_damaged_file_is_named_and_kept(self, tmp_path: Path, content: bytes) -> None:
        """A file that isn't Milvus Lite's is an error that names it, and is left as it is."""
        (tmp_path / "milvus.db").write_bytes(content)
        with pytest.raises(StoreError, match=r"milvus\.db"):
            async with MilvusVectorStore(path=tmp_path, timeout=3) as store:
                await store.ensure_ready(2)
        assert (tmp_path / "milvus.db").read_bytes() == content

    async def test_package_that_is_not_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The extra is named, also where milvus-lite is of a version that has no engine to run."""
        for found in (None, importlib.machinery.ModuleSpec("milvus_lite", None, origin=str(tmp_path / "__init__.py"))):
            monkeypatch.setattr(importlib.util, "find_spec", lambda name, found=found: found)
            with pytest.raises(MissingExtra, match=r"leadline\[milvus-lite\]"):
                async with MilvusVectorStore(path=tmp_path):
                    pass

    async def test_bad_places_are_named(self, tmp_path: Path) -> None:
        """A name it doesn't take, and a folder that can't be made."""
        with pytest.raises(ConfigError, match=r"file called 'ä\.db'"):
            async with MilvusVectorStore(url=str(tmp_path / "ä.db")):
                pass
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="can't keep its data"):
            async with MilvusVectorStore(path=tmp_path / "file" / "x"):
                pass


async def start_writer(path: Path, name: str, after: str = "") -> Any:
    """Another process that writes 200 chunks into the file of a folder."""
    code = WRITER.format(path=str(path), after=after)
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, name, stdout=asyncio.subprocess.PIPE)


WRITER = """
import asyncio, sys, time
import numpy as np
from leadline.stores import milvus_lite
from leadline.stores.base import ChunkRecord
from leadline.stores.milvus import MilvusVectorStore

async def write(name):
    async with MilvusVectorStore(path={path!r}) as store:
        for n in range(5):
            vectors = np.random.default_rng(n).normal(size=(40, 2)).astype(np.float32)
            await store.upsert([ChunkRecord(f"{{name}}{{n}}-{{i}}", "d", vectors=(v,)) for i, v in enumerate(vectors)])
            if n == 0:
                print("begun", flush=True)
        {after}

if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
"""
