"""The comparison of catalog and indexes names every difference; the repair follows the catalog."""

from collections.abc import Callable

import numpy as np
import pytest

from leadline.drafts import SourceDraft
from leadline.knowledge import KnowledgeBase, Library
from leadline.stores.base import ChunkRecord

MakeDraft = Callable[..., SourceDraft]
PASSAGES = [f"Acme Corp fact {number}." for number in range(30)]


def stray() -> ChunkRecord:
    """A chunk the catalog knows nothing of."""
    return ChunkRecord("stray", "d", "Stray Corp text", (np.eye(1, 384, dtype=np.float32)[0],))


async def test_a_healthy_collection_has_no_difference_and_nothing_to_repair(
    kb: KnowledgeBase, draft: MakeDraft
) -> None:
    """Repairing it changes nothing."""
    await kb.put([draft("a.md", *PASSAGES)])
    generation = await kb.generation()
    done = await kb.repair()
    assert done.before == done.after
    assert done.after.ok
    assert set(done.added.values()) == set(done.removed.values()) == {0}
    assert await kb.generation() == generation


@pytest.mark.parametrize("leg", ["vector", "bm25", "graph"])
async def test_what_an_index_lacks_or_has_too_much_is_named_and_repaired(
    library: Library, kb: KnowledgeBase, draft: MakeDraft, leg: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten chunks taken out and one put in behind the catalog's back: exactly those, by a dry run first, then for real,
    without embedding anything again."""
    (put,) = await kb.put(
        [
            draft("a.md", *PASSAGES),
        ]
    )
    async with kb._current.use() as opened, opened.writing:
        await opened.stores[leg].delete(put.chunk_ids[:10])
        await opened.stores[leg].upsert([stray()])
    report = await kb.verify()
    assert set(report.legs[leg].missing) == set(put.chunk_ids[:10])
    assert report.legs[leg].extra == ("stray",)
    assert report.problems == (
        f"the {leg} index lacks 10 of 30 chunks",
        f"the {leg} index holds 1 chunks that the catalog doesn't have",
    )
    rehearsal = await kb.repair(dry_run=True)
    assert (rehearsal.added[leg], rehearsal.removed[leg]) == (10, 1)
    assert await kb.verify() == report
    given: list[str] = []
    async with kb._current.use() as opened:
        real = type(opened.stores[leg]).upsert
    with monkeypatch.context() as patch:
        patch.setattr(library.embedder, "embed_passages", None)
        patch.setattr(
            type(opened.stores[leg]), "upsert", lambda self, rs: given.extend(r.chunk_id for r in rs) or real(self, rs)
        )
        done = await kb.repair()
    assert done.after.ok
    assert sorted(given) == sorted(put.chunk_ids[:10])
    assert sum(done.added.values()) == 10
    assert len(await kb.retrievers()[leg].search("acme corp", k=50)) == 30


async def test_lost_vectors_are_made_again(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """If even the cache lost them, the repair embeds the text once more."""
    from sqlalchemy import delete

    from leadline.stores.catalog_schema import vectors

    (put,) = await kb.put([draft("a.md", *PASSAGES[:3])])
    async with kb._current.use() as opened, opened.writing:
        with library.catalog.write() as connection:
            connection.execute(delete(vectors))
        await opened.stores["vector"].delete(put.chunk_ids)
    assert (await kb.repair()).after.ok
    assert len(await kb.retrievers()["vector"].search("acme corp", k=5)) == 3


async def test_the_catalogs_own_faults_are_named(library: Library, kb: KnowledgeBase, draft: MakeDraft) -> None:
    """A row that points nowhere is a difference too."""
    await kb.put([draft("a.md", "One.")])
    raw = library.catalog.engine.raw_connection()
    raw.cursor().execute("PRAGMA foreign_keys=OFF")
    raw.cursor().execute("INSERT INTO manifests VALUES ('nowhere', 'vector', '{}', 0)")
    raw.invalidate()
    report = await kb.verify()
    assert report.problems == ("manifests refers to a missing row of collections",)
