"""Backends whose package isn't installed: who asks for one is told what to install, and nobody else is held up."""

import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.analysis import Analyzer
from leadline.config import load_settings
from leadline.errors import MissingExtra
from leadline.knowledge import open_library
from leadline.stores import open_joint_store, open_vector_store

NOWHERE = "http://127.0.0.1:1"
OPTIONAL = ("faiss", "opensearchpy", "pymilvus", "milvus_lite", "qdrant_edge", "qdrant_client", "pinecone", "obstore")


@pytest.mark.parametrize(
    ("backend", "package", "extra", "options"),
    [
        ("faiss", "faiss", "faiss-cpu", {}),
        ("faiss", "faiss", "faiss-cpu", {"index_type": "hnsw"}),
        ("opensearch", "opensearchpy", "opensearch", {"url": NOWHERE}),
        ("pinecone", "pinecone", "pinecone", {"host": NOWHERE, "api_key": "key"}),
    ],
)
async def test_the_extra_is_named(
    backend: str, package: str, extra: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On opening, with the command that installs it; nothing is made in the folder."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'leadline\[{extra}\]'"):
        async with open_vector_store(backend, path=tmp_path / "index", options=options):
            pass
    assert not (tmp_path / "index").exists()


async def test_one_index_for_both_legs_names_the_extra_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of vectors and words is opened another way, and says the same."""
    monkeypatch.setitem(sys.modules, "opensearchpy", None)
    with pytest.raises(MissingExtra, match=r"leadline\[opensearch\]"):
        async with open_joint_store("opensearch", path=tmp_path, analyzer=Analyzer(), options={"url": NOWHERE}):
            pass


async def test_the_default_backends_need_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no optional package a library opens, takes a text in and finds it."""
    for package in OPTIONAL:
        monkeypatch.setitem(sys.modules, package, None)
    async with open_library(load_settings(data_dir=tmp_path / "data")) as library:
        kb = await library.collection()
        await kb.add_documents(["The vault code is 7719."])
        assert [d["content"] for d in await kb.search("vault code")] == ["The vault code is 7719."]
