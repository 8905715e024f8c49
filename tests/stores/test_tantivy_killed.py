"""A commit of tantivy that was cut short is in no later one's way."""

import asyncio
from pathlib import Path

from leadline.analysis import Analyzer
from leadline.stores import open_lexical_store
from leadline.stores.base import ChunkRecord


async def changed(folder: Path) -> tuple[int, set[str]]:
    """Puts five chunks into an empty index, else deletes one: how many there were, and which there are."""
    async with open_lexical_store("tantivy", path=folder, analyzer=Analyzer()) as store:
        if not (count := await store.count()):
            await store.upsert([ChunkRecord(f"c{n}", "d", f"rain {n}") for n in range(5)])
            return count, await store.all_ids()
        await store.delete(["c1"])
        return count, await store.all_ids()


def test_a_deletion_cut_short_can_be_made_again(tmp_path: Path) -> None:
    """Killed when its files were written and the list of files was not: they are not of the index."""
    asyncio.run(changed(tmp_path))
    listed = tmp_path / "meta.json"
    before = listed.read_bytes()
    others = {"c0", "c2", "c3", "c4"}
    assert asyncio.run(changed(tmp_path)) == (5, others)
    assert [*tmp_path.glob("*.del")] != []
    listed.write_bytes(before)
    assert asyncio.run(changed(tmp_path)) == (5, others)
