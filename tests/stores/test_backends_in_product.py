"""Each backend, chosen by a setting, carries the whole product: put, search, delete, verify, and again reopened."""

from pathlib import Path
from typing import Any

import pytest
from tests.stores.engines import ENGINES

from leadline import Settings, load_settings, open_library
from leadline.drafts import ChunkDraft, SourceDraft

LEGS = {"vector": "vector", "lexical": "bm25"}
# Not Pinecone: the tests' index is made beforehand, narrower than the embedder's vectors.
CHOSEN = [name for name, e in ENGINES.items() if e.kind in LEGS and e.backend != "pinecone" and not e.joined]


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
