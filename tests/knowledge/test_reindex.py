"""New indexes are built beside the old ones and take their place at one moment, for whatever setting has changed."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.errors import ManifestMismatch, StoreError
from leadline.ingest.layout import recut
from leadline.ingest.prepare import prepare
from leadline.knowledge import KnowledgeBase, Library, ReindexReport, open_library, reindex
from leadline.models.minilm import MiniLM

TEXT = "\n\n".join(f"Crane {number} of the north quay lifts {number * 7} tonnes at most." for number in range(30))
CHANGES: dict[str, dict[str, Any]] = {
    "vector backend": {"vector_backend": "faiss"},
    "lexical backend": {"lexical_backend": "rank-bm25"},
    "analyser": {"stemmer": "none"},
    "chunk size": {"chunk_tokens": 64},
}


def sources(library: Library) -> list[SourceDraft]:
    """Two files as ingest prepares them, and one in chunks of the caller's own."""
    size = library.settings.chunk_tokens
    files = {"cranes.md": f"# Cranes\n\n{TEXT}", "gate.md": "The gate of the harbour opens at six."}
    return [prepare(text.encode(), name, library.embedder, chunk_tokens=size) for name, text in files.items()]


async def built(library: Library, **options: Any) -> ReindexReport:
    """The default collection, built anew as the library's settings say."""
    cut = partial(recut, tokenizer=library.embedder, chunk_tokens=library.settings.chunk_tokens)
    return await library.reindex(recut=cut, **options)


async def answers(kb: KnowledgeBase) -> dict[str, set[str]]:
    """What each leg finds."""
    legs = kb.retrievers()
    return {name: {d["content"] for d in await leg.search("gate of the Harbour", k=1)} for name, leg in legs.items()}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
async def test_a_changed_setting_is_followed(settings: Settings, changed: dict[str, Any]) -> None:
    """Before, the collection can't be opened with it; afterwards it is as if everything had been put in with it."""
    async with open_library(settings) as library:
        await (await library.collection()).put(sources(library))
    new = settings.model_copy(update=changed)
    async with open_library(new) as library:
        with pytest.raises(ManifestMismatch, match="leadline reindex"):
            await library.collection()
        rehearsal = await built(library, dry_run=True)
        assert rehearsal.dry_run
        with pytest.raises(ManifestMismatch):
            await library.collection()
        report = await built(library)
        assert report.legs == rehearsal.legs != ()
        kb = await library.collection()
        assert (await kb.verify()).ok
        assert [r.status for r in await kb.put(sources(library))] == ["unchanged", "unchanged"]
        assert (await answers(kb))["bm25"] == {"The gate of the harbour opens at six."}
    async with open_library(new) as library:
        assert (await (await library.collection()).verify()).ok
    async with open_library(settings) as library:
        with pytest.raises(ManifestMismatch):
            await library.collection()


async def test_another_backend_needs_no_embedding(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors come from the cache."""
    async with open_library(settings) as library:
        await (await library.collection()).put(sources(library))
    async with open_library(settings.model_copy(update=CHANGES["vector backend"])) as library:
        monkeypatch.setattr(library.embedder, "embed_passages", None)
        report = await built(library)
        assert report.legs == ("vector",)
        assert (await (await library.collection()).verify()).ok


async def test_another_model_embeds_each_text_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index follows, since chunks are measured by the model's tokenizer."""
    async with open_library(settings) as library:
        await (await library.collection()).put(sources(library))
    monkeypatch.setattr(MiniLM, "name", "another model")
    given: list[str] = []
    real = MiniLM.embed_passages
    monkeypatch.setattr(MiniLM, "embed_passages", lambda self, texts: given.extend(texts) or real(self, texts))
    async with open_library(settings) as library:
        assert (await built(library)).legs == ("vector", "bm25", "graph")
        kb = await library.collection()
        assert (await kb.get_stats())["embedding_model"] == "another model"
        assert (await kb.verify()).ok
        assert len(given) == len(set(given)) == await kb.count()


async def test_nothing_changed_is_nothing_to_do(settings: Settings) -> None:
    """Unless everything is asked for; then the indexes are built anew as they were."""
    async with open_library(settings) as library:
        assert (await built(library)).legs == ()
        kb = await library.collection()
        await kb.put(sources(library))
        before, generation = await answers(kb), await kb.generation()
        assert (await built(library)).legs == ()
        assert await kb.generation() == generation
        assert (await built(library, everything=True)).legs == ("vector", "bm25", "graph")
        assert await kb.generation() > generation
        assert await answers(kb) == before
        assert (await kb.verify()).ok


async def test_questions_are_answered_all_the_while(settings: Settings) -> None:
    """By a library of the old settings too, which then goes on with the new indexes; never from half-built ones."""
    async with open_library(settings) as old, open_library(settings.model_copy(update={"chunk_tokens": 64})) as new:
        kb = await old.collection()
        await kb.put(sources(old))
        expected = await answers(kb)
        done = asyncio.Event()
        seen = []

        async def ask() -> None:
            while not done.is_set():
                seen.append(await answers(kb))

        asking = asyncio.create_task(ask())
        assert (await built(new)).recut
        for _ in range(3):
            seen.append(await answers(kb))
        done.set()
        await asking
        assert [found for found in seen if found != expected] == []
        assert await kb.count() == await (await new.collection()).count() > 3
        await kb.put([prepare(b"A new note of the old library.", "note.md", old.embedder)])
        assert (await (await new.collection()).verify()).ok


async def test_the_old_indexes_are_gone_afterwards(settings: Settings, tmp_path: Path) -> None:
    """Folders and rows; only the ones in use are left."""
    async with open_library(settings) as library:
        await (await library.collection()).put(sources(library))
        await built(library, everything=True)
        await built(library, everything=True)
        kb = await library.collection()
        assert (await kb.verify()).ok
        folders = {path.name for path in (settings.data_dir / "indexes" / "default").iterdir() if path.is_dir()}
        assert folders == {"vector-2", "bm25-2"}
        assert (await kb.get_stats())["indexes"]["graph"]["count"] == await kb.count()


async def test_one_that_fails_leaves_everything_as_it_was(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old indexes stay in use, nothing of the new ones is left, and the next try succeeds."""
    async with open_library(settings) as library:
        kb = await library.collection()
        await kb.put(sources(library))
        before = await answers(kb)
    async with open_library(settings.model_copy(update={"chunk_tokens": 64})) as library:
        with monkeypatch.context() as patch:
            patch.setattr(reindex, "switch_builds", _refuse)
            with pytest.raises(StoreError, match="no room"):
                await built(library)
        async with open_library(settings) as unchanged:
            kb = await unchanged.collection()
            assert await answers(kb) == before
            assert (await kb.verify()).ok
            folders = {path.name for path in (settings.data_dir / "indexes" / "default").iterdir() if path.is_dir()}
            assert folders == {"vector", "bm25"}
        assert (await built(library)).recut
        assert (await (await library.collection()).verify()).ok


def _refuse(*_: object) -> None:
    raise StoreError("no room")


@pytest.mark.parametrize("backend", ["qdrant", "milvus", "chroma"])
async def test_who_was_using_an_index_that_was_replaced_loses_no_leg(settings: Settings, backend: str) -> None:
    """Whatever closing it takes, with its files gone: the next question is answered by every leg."""
    former = settings.model_copy(update={"vector_backend": backend})
    async with (
        open_library(former) as old,
        open_library(settings.model_copy(update={"vector_backend": "faiss"})) as new,
    ):
        kb = await old.collection()
        await kb.put(sources(old))
        expected = await answers(kb)
        assert (await built(new)).legs == ("vector",)
        assert await answers(kb) == expected


async def test_moving_to_a_server_is_a_change(settings: Settings, chroma_server: dict[str, Any]) -> None:
    """The same backend elsewhere: it is built there, and back; what is left behind is emptied or named."""
    there = settings.model_copy(update={"vector_options": chroma_server})
    async with open_library(settings) as library:
        await (await library.collection()).put(sources(library))
    for moved in (there, settings):
        async with open_library(moved) as library:
            with pytest.raises(ManifestMismatch, match="LEADLINE_VECTOR_OPTIONS"):
                await library.collection()
            report = await built(library)
            assert report.legs == ("vector",)
            assert (await (await library.collection()).verify()).ok
    assert len(report.left) == 1
    assert not [*settings.data_dir.glob("*.lock")]


async def test_what_could_not_be_opened_pins_no_settings(settings: Settings) -> None:
    """A first try with a server that isn't there leaves the choice free."""
    nowhere = settings.model_copy(update={"vector_options": {"url": "http://127.0.0.1:9"}})
    async with open_library(nowhere) as library:
        with pytest.raises(StoreError):
            await library.collection()
    async with open_library(settings.model_copy(update={"vector_backend": "faiss"})) as library:
        await (await library.collection()).put(sources(library))


async def test_sources_in_chunks_of_their_own_are_named(settings: Settings) -> None:
    """They are indexed anew as they are."""
    async with open_library(settings) as library:
        await (await library.collection()).add_documents(["A text."], [{"file_name": "own.txt"}])
    async with open_library(settings.model_copy(update={"chunk_tokens": 64})) as library:
        assert (await built(library)).uncut == ("own.txt",)
        assert await (await library.collection()).count() == 1


def test_a_collection_name_on_a_server_is_its_own() -> None:
    """Short, of letters every server takes, and never the same for two collections or two catalogs."""
    from leadline.knowledge.places import index_name

    make: Callable[[str], str] = partial(index_name, "0123456789abcdef", leg="vector", build=0)
    names = [make(name) for name in ("a-b", "a_b", "A_b", "a" * 60, "a" * 61, "default")]
    assert len({*names}) == len(names)
    assert all(len(name) <= 60 and name.replace("_", "").isalnum() and name == name.lower() for name in names)
    assert make("default") == "leadline_01234567_default_vector_0"
