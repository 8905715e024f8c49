"""A data folder is opened with the settings its indexes were built with, by many at once, and closed whole."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from leadline.config import Settings, load_settings
from leadline.drafts import SourceDraft
from leadline.errors import (
    CollectionUnknown,
    ConfigError,
    LeaseHeld,
    LeaseLost,
    ManifestMismatch,
    StoreDamaged,
)
from leadline.knowledge import open_library
from leadline.models.minilm import MiniLM
from leadline.stores.catalog import begin_immediate
from leadline.stores.catalog_schema import lease

MakeDraft = Callable[..., SourceDraft]


async def put_one(settings: Settings, draft: SourceDraft) -> None:
    """A collection with one source, closed again."""
    async with open_library(settings) as library:
        await (await library.collection()).put([draft])


async def test_the_default_collection_is_always_there(settings: Settings) -> None:
    """A question to a fresh folder finds an empty collection."""
    async with open_library(settings) as library:
        assert await library.collections() == ["default"]
        legs = await library.retrievers()
        assert list(legs) == ["vector", "bm25", "graph"]
        assert await legs["bm25"].search("hi", k=3) == []
        assert await library.generation() == 0


async def test_an_unknown_collection_is_an_error_that_lists_the_known(settings: Settings) -> None:
    """Unless it is asked to be made; a name that could be a path is refused."""
    async with open_library(settings) as library:
        await library.collection("letters", create=True)
        with pytest.raises(CollectionUnknown, match="default, letters"):
            await library.collection("lettres")
        for name in ("../outside", "", "a/b", "a" * 64):
            with pytest.raises(ConfigError):
                await library.collection(name, create=True)
        with pytest.raises(CollectionUnknown):
            await library.sources("lettres")


async def test_one_collection_is_opened_once(settings: Settings) -> None:
    """However many ask for it at the same time."""
    async with open_library(settings) as library:
        first, second = await asyncio.gather(library.collection(), library.collection())
        assert first is second


async def test_two_libraries_on_one_folder_see_each_others_changes(settings: Settings, draft: MakeDraft) -> None:
    """At the next search, in every leg, whichever was opened first; and one goes on when the other is closed."""
    async with open_library(settings) as second:
        async with open_library(settings) as first:
            one, two = await first.collection(), await second.collection()
            await one.put([draft("a.md", "Dana Fox feeds the otters.")])
            for leg in two.retrievers().values():
                assert len(await leg.search("dana fox", k=3)) == 1, leg.name
            await two.delete((await two.list_sources())[0].doc_id)
            await two.put([draft("b.md", "Dana Fox feeds the seals.")])
            for leg in one.retrievers().values():
                found = await leg.search("dana fox", k=3)
                assert [document["content"] for document in found] == ["Dana Fox feeds the seals."], leg.name
        await two.put([draft("c.md", "Dana Fox feeds the terns.")])
        assert (await two.verify()).ok


async def test_a_change_waits_for_another_library_and_then_names_it(settings: Settings, draft: MakeDraft) -> None:
    """While one changes the folder the other can search it, but not change it."""
    async with open_library(settings) as first, open_library(settings) as second:
        one, two = await first.collection(), await second.collection()
        await one.put([draft("a.md", "Dana Fox feeds the otters.")])
        async with first.gate.hold():
            assert len(await two.search("otters")) == 1
            with pytest.raises(LeaseHeld, match="this process itself"):
                await two.put([draft("b.md", "Two.")])
        await two.put([draft("b.md", "Two.")])
        assert await one.count() == 2


async def test_two_folders_live_side_by_side(settings: Settings, tmp_path: Path, draft: MakeDraft) -> None:
    """Nothing is shared between two open libraries."""
    other = load_settings(data_dir=tmp_path / "other", lexical_backend="rank-bm25", stemmer="none")
    async with open_library(settings) as one, open_library(other) as two:
        await (await one.collection()).put([draft("a.md", "Of the first.")])
        await (await two.collection()).put([draft("a.md", "Of the second.")])
        assert [d["content"] for d in await (await one.collection()).search("first second")] == ["Of the first."]
        assert [d["content"] for d in await (await two.collection()).search("first second")] == ["Of the second."]


async def test_what_was_put_is_there_after_a_restart(settings: Settings, draft: MakeDraft) -> None:
    """In every leg, and the collections keep what they agreed on."""
    await put_one(settings, draft("a.md", "Dana Fox feeds the otters."))
    async with open_library(settings) as library:
        kb = await library.collection()
        assert kb.problems == ()
        for leg in kb.retrievers().values():
            assert [d["content"] for d in await leg.search("dana fox", k=3)] == ["Dana Fox feeds the otters."]


async def test_a_copied_folder_works(settings: Settings, tmp_path: Path, draft: MakeDraft) -> None:
    """No file knows where it lies."""
    await put_one(settings, draft("a.md", "Dana Fox feeds the otters."))
    shutil.move(settings.data_dir, tmp_path / "moved")
    async with open_library(load_settings(data_dir=tmp_path / "moved")) as library:
        kb = await library.collection()
        assert (await kb.verify()).ok
        assert len(await kb.search("otters")) == 1


@pytest.mark.parametrize(
    ("changed", "setting"),
    [
        ({"stemmer": "none"}, "LEADLINE_STEMMER"),
        ({"chunk_tokens": 100}, "LEADLINE_CHUNK_TOKENS"),
        ({"lexical_backend": "rank-bm25"}, "LEADLINE_LEXICAL_BACKEND"),
    ],
)
async def test_indexes_built_with_other_settings_are_refused(
    settings: Settings, draft: MakeDraft, changed: dict[str, Any], setting: str
) -> None:
    """The error names what differs, the setting and what to do; with the former setting all is as it was."""
    await put_one(settings, draft("a.md", "One fact."))
    async with open_library(settings.model_copy(update=changed)) as library:
        with pytest.raises(ManifestMismatch, match=setting):
            await library.collection()
        await library.collection("another", create=True)
    async with open_library(settings) as library:
        assert len(await (await library.collection()).search("fact")) == 1


@pytest.mark.parametrize("kind", ["vector", "lexical", "content"])
async def test_an_unknown_backend_is_refused_before_anything_is_made(settings: Settings, kind: str) -> None:
    """The error names those there are."""
    with pytest.raises(ConfigError, match=r"pinboard.*Allowed: (chroma|tantivy|catalog)"):
        async with open_library(settings.model_copy(update={f"{kind}_backend": "pinboard"})):
            pass
    assert not settings.data_dir.exists()


async def test_texts_kept_elsewhere_are_refused(settings: Settings, draft: MakeDraft) -> None:
    """They would seem to be lost; a reindex could not bring them either."""
    await put_one(settings, draft("a.md", "One fact."))
    elsewhere = settings.model_copy(update={"content_backend": "s3", "content_options": {"url": "s3://bucket"}})
    async with open_library(elsewhere) as library:
        with pytest.raises(ManifestMismatch, match="LEADLINE_CONTENT_BACKEND"):
            await library.collection()
        with pytest.raises(ManifestMismatch, match="LEADLINE_CONTENT_BACKEND"):
            await library.reindex(recut=lambda source: source)


async def test_another_model_of_the_same_width_is_refused(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors would mean something else without any error."""
    await put_one(settings, draft("a.md", "One fact."))
    monkeypatch.setattr(MiniLM, "name", "another model of 384 dimensions")
    async with open_library(settings) as library:
        with pytest.raises(ManifestMismatch, match="LEADLINE_EMBEDDING_MODEL"):
            await library.collection()


async def test_indexes_without_their_catalog_are_refused(settings: Settings, draft: MakeDraft) -> None:
    """A lost catalog is not an empty one, and nothing of the indexes is overwritten."""
    await put_one(settings, draft("a.md", "One fact."))
    (settings.data_dir / "catalog.db").unlink()
    with pytest.raises(StoreDamaged, match="missing"):
        async with open_library(settings):
            pass
    assert not (settings.data_dir / "catalog.db").exists()


@pytest.mark.parametrize(("leg", "file"), [("vector", "chroma.sqlite3"), ("bm25", "meta.json")])
async def test_a_damaged_index_is_refused_kept_and_built_again_as_told(
    settings: Settings, draft: MakeDraft, leg: str, file: str
) -> None:
    """The error names the folder and what to do; after that all is found again, without the documents."""
    await put_one(settings, draft("a.md", "Dana Fox feeds the otters."))
    folder = settings.data_dir / "indexes" / "default" / leg
    (folder / file).write_bytes(b"not what it was")
    async with open_library(settings) as library:
        with pytest.raises(StoreDamaged, match=f"Move {folder} away.*verify --repair"):
            await library.collection()
        assert [source.file_name for source in await library.sources()] == ["a.md"]
    assert (folder / file).read_bytes() == b"not what it was"
    folder.rename(settings.data_dir / "moved-away")
    async with open_library(settings) as library:
        kb = await library.collection()
        assert (await kb.repair()).added == {"vector": 0, "bm25": 0, "graph": 0} | {leg: 1}
        assert len(await kb.retrievers()[leg].search("otters", k=3)) == 1


async def test_nothing_reaches_an_index_after_the_lease_was_lost(
    settings: Settings, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder whose lease was taken over writes neither catalog nor indexes."""
    async with open_library(settings) as library:
        kb = await library.collection()
        real = library.gate.hold

        @asynccontextmanager
        async def taken_over() -> AsyncIterator[None]:
            async with real():
                with begin_immediate(library.catalog.engine) as connection:
                    connection.execute(update(lease).values(fence=lease.c.fence + 1))
                try:
                    yield
                finally:
                    with begin_immediate(library.catalog.engine) as connection:
                        connection.execute(update(lease).values(pid=None))

        monkeypatch.setattr(library.gate, "hold", taken_over)
        with pytest.raises(LeaseLost):
            await kb.put([draft("a.md", "One.")])
        with pytest.raises(LeaseLost):
            await kb.clear()


def test_importing_the_package_of_it_touches_nothing(tmp_path: Path) -> None:
    """No folder is made, no engine imported, before a library is opened."""
    heavy = {"chromadb", "tantivy", "onnxruntime", "torch", "networkx"}
    script = f"import sys, leadline.knowledge; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []


async def test_processes_at_once_all_get_their_document_in(tmp_path: Path) -> None:
    """Each waits for the lease: none overwrites another, and every index agrees."""
    script = """
import asyncio, pathlib, sys
from leadline.config import load_settings
from leadline.knowledge import open_library

async def main():
    async with open_library(load_settings(data_dir=pathlib.Path(sys.argv[1]), lock_timeout_s=120)) as library:
        kb = await library.collection()
        await kb.add_documents([f"Fact number {sys.argv[2]}."], ids=[f"doc{sys.argv[2]}"])

asyncio.run(main())
"""
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(tmp_path / "data"), str(number))
        for number in range(2)
    ]
    assert await asyncio.gather(*(process.wait() for process in processes)) == [0, 0]
    async with open_library(load_settings(data_dir=tmp_path / "data")) as library:
        kb = await library.collection()
        assert [source.doc_id for source in await kb.list_sources()] == ["doc0", "doc1"]
        assert (await kb.verify()).ok


async def test_an_id_of_another_collection_is_refused(settings: Settings) -> None:
    """A document id belongs to one collection: given again in another it fails, whether or not the text is the same,
    and says so. The first collection keeps what it has."""
    async with open_library(settings) as library:
        first, second = [await library.collection(name, create=True) for name in ("first", "second")]
        assert (await first.add_documents(["Rain falls in spring."], ids=["one"]))[0].status == "added"
        for text in ("Rain falls in spring.", "Snow falls in winter."):
            (report,) = await second.add_documents([text], ids=["one"])
            assert report.status == "failed"
            assert "already used in the collection first" in str(report.error)
        assert (await first.count(), await second.count()) == (1, 0)
        assert (await first.verify()).ok
