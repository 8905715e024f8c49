"""Each backend, chosen by a setting, carries the whole product: put, search, delete, verify, and again reopened."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stores.engines import ENGINES, HERE

from leadline import Settings, load_settings, open_library
from leadline.drafts import ChunkDraft, SourceDraft

LEGS = {"vector": "vector", "lexical": "bm25"}
# Not Pinecone: the tests' index is made beforehand, narrower than the embedder's vectors.
CHOSEN = [name for name, e in HERE.items() if e.kind in LEGS and e.backend != "pinecone" and not e.joined]


def source(name: str, *texts: str) -> SourceDraft:
    """A source of a few chunks."""
    return SourceDraft(name, name, f"{name:0>64}", tuple(ChunkDraft(text, 0, len(text)) for text in texts))


@pytest.fixture(params=CHOSEN)
def chosen(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Settings, str]:
    """Settings that name one backend, and the leg that it carries."""
    engine = ENGINES[request.param]
    served: dict[str, Any] = request.getfixturevalue(engine.server) if engine.server else {}
    choice = {f"{engine.kind}_backend": engine.backend, f"{engine.kind}_options": {**engine.options, **served}}
    return load_settings(data_dir=tmp_path / "data", **choice), LEGS[engine.kind]


async def test_a_backend_carries_the_product(chosen: tuple[Settings, str]) -> None:
    """What is put is found with its text, what is deleted is not, and catalog and indexes agree, also reopened."""
    settings, leg = chosen
    vault = source("vault.md", "The code of the vault is 7719.", "The vault is on the second floor.")
    boats = source("boats.md", "The ferry to the island leaves at nine.")
    async with open_library(settings) as library:
        base = await library.collection()
        assert [report.status for report in await base.put([vault, boats])] == ["added", "added"]
        found = await base.retrievers()[leg].search("code of the vault", k=3)
        assert found[0]["content"] == "The code of the vault is 7719."
        assert found[0]["source"] == leg
        assert (await base.verify()).ok
        (doomed,) = await base.find_sources("vault.md")
        assert (await base.delete(doomed.doc_id)).chunks == 2
        assert (await base.verify()).ok
    async with open_library(settings) as library:
        base = await library.collection()
        assert (await base.verify()).ok
        found = await base.retrievers()[leg].search("the ferry or the code of the vault", k=3)
        assert [document["metadata"]["file_name"] for document in found] == ["boats.md"]


@pytest.fixture(params=sorted({"milvus-lite", "opensearch-standin", "milvus", "opensearch"} & HERE.keys()))
def joint(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings that name one backend for both legs."""
    engine = ENGINES[request.param]
    options = {**engine.options, **request.getfixturevalue(str(engine.server))}
    both = {
        f"{kind}_{what}": value for kind in LEGS for what, value in (("backend", engine.backend), ("options", options))
    }
    return load_settings(data_dir=tmp_path / "data", **both)


async def test_one_index_carries_both_legs(joint: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built from two indexes in the data folder: it finds by vectors and by words, a chunk that the model gave no
    vector by its words, and follows deletions; catalog and index agree, also after it was built anew."""
    vault = source("vault.md", "The code of the vault is 7719.", "Nothing that the model knows.")
    boats = source("boats.md", "The ferry to the island leaves at nine.")
    async with open_library(load_settings(data_dir=joint.data_dir)) as library:
        real = library.embedder.embed_passages
        silent = lambda texts: real(texts) * np.array([["model" not in text] for text in texts], dtype=np.float32)  # noqa: E731
        with monkeypatch.context() as patch:
            patch.setattr(library.embedder, "embed_passages", silent)
            await (await library.collection()).put([vault, boats])
    async with open_library(joint) as library:
        assert (await library.reindex(recut=lambda draft: draft)).legs == ("vector", "bm25")
        base = await library.collection()
        assert (await base.verify()).ok
        legs = base.retrievers()
        for leg in LEGS.values():
            found = await legs[leg].search("code of the vault", k=1)
            assert [document["content"] for document in found] == ["The code of the vault is 7719."], leg
        found = await legs["bm25"].search("what the model knows", k=1)
        assert [document["content"] for document in found] == ["Nothing that the model knows."]
        assert len(await legs["vector"].search("what the model knows", k=5)) == 2
        assert [report.status for report in await base.put([vault, boats])] == ["unchanged", "unchanged"]
        (doomed,) = await base.find_sources("vault.md")
        assert (await base.delete(doomed.doc_id)).legs["bm25"] == 2
        assert (await base.verify()).ok
        assert (await library.reindex(recut=lambda draft: draft, everything=True)).left == ()
    async with open_library(joint) as library:
        base = await library.collection()
        assert (await base.verify()).ok
        assert len(await base.search("when does the ferry leave")) == 1
