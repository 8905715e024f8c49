"""Each index says in which format it is kept: one of another version is refused, and stays as it is."""

import json
from pathlib import Path

import pytest
from sqlalchemy import select, update
from tests.stores.engines import ENGINES, opened, record

from leadline.config import load_settings
from leadline.errors import ManifestMismatch
from leadline.knowledge import open_library
from leadline.stores.catalog_schema import manifests


@pytest.mark.parametrize("name", ["faiss", "faiss-hnsw", "qdrant", "tantivy", "rank-bm25"])
async def test_an_index_of_another_format_is_refused(name: str, tmp_path: Path) -> None:
    """The error names the format found and the one that this version reads; put back, the index is as it was."""
    engine = ENGINES[name]
    async with opened(engine, tmp_path, engine.options) as backend:
        await backend.store.upsert([record("a")])
    (path,) = tmp_path.rglob("leadline.json")  # noqa: ASYNC240 - a test
    written = path.read_bytes()
    manifest = json.loads(written)
    path.write_text(json.dumps(manifest | {"format": 99}), encoding="ascii")
    with pytest.raises(ManifestMismatch, match=rf"'format': 99.*'format': {manifest['format']}"):
        async with opened(engine, tmp_path, engine.options):
            pass
    assert json.loads(path.read_bytes())["format"] == 99
    path.write_bytes(written)
    async with opened(engine, tmp_path, engine.options) as backend:
        assert await backend.find_ids("Quokka") == ["a"]


@pytest.mark.parametrize("leg", ["vector", "bm25", "graph"])
async def test_a_collection_with_an_index_of_another_format_is_refused(leg: str, tmp_path: Path) -> None:
    """For every leg the catalog notes the format too, whatever its engine writes down."""
    settings = load_settings(data_dir=tmp_path / "data")
    async with open_library(settings) as library:
        await (await library.collection()).add_documents(["One fact."])
        mine = (manifests.c.collection == "default") & (manifests.c.leg == leg)
        async with library.gate.hold():
            with library.catalog.write() as connection:
                found = connection.execute(select(manifests.c.manifest).where(mine)).scalar_one()
                connection.execute(update(manifests).where(mine).values(manifest=found | {"format": 99}))
    async with open_library(settings) as library:
        with pytest.raises(ManifestMismatch, match=f"{leg}.*format.*99"):
            await library.collection()
