"""What tests of the knowledge base share: an open library over real stores, and drafts made from texts."""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.knowledge import crash_client

from leadline.config import Settings, load_settings
from leadline.drafts import ChunkDraft, FieldValue, SourceDraft
from leadline.knowledge import KnowledgeBase, Library, open_library

MakeDraft = Callable[..., SourceDraft]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Defaults, in a data folder that isn't there yet; nobody waits long for the lease."""
    return load_settings(data_dir=tmp_path / "data", lock_timeout_s=0.2)


@pytest.fixture
async def library(settings: Settings) -> AsyncIterator[Library]:
    """An open library."""
    async with open_library(settings) as library:
        yield library


@pytest.fixture
async def kb(library: Library) -> KnowledgeBase:
    """The default collection, empty."""
    return await library.collection()


@pytest.fixture
def draft() -> MakeDraft:
    """Makes a draft of a file from its name, its passages and its metadata."""

    def make(name: str, *passages: str, pages: bool = False, **metadata: FieldValue) -> SourceDraft:
        chunks, start = [], 0
        for number, passage in enumerate(passages, 1):
            chunks.append(ChunkDraft(passage, start, start + len(passage), page=number if pages else None))
            start += len(passage) + 1
        digest = hashlib.sha256("\n".join(passages).encode()).hexdigest()
        return SourceDraft(name, name.rpartition("/")[2], digest, tuple(chunks), metadata=metadata)

    return make


@pytest.fixture(scope="session")
def crasher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[crash_client.Crasher]:
    """The program that has processes killed."""
    with crash_client.crasher(tmp_path_factory.mktemp("crash")) as crasher:
        yield crasher
