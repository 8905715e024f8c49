"""A collection whose catalog is in PostgreSQL, whose texts are on object storage, or both: as good as in a folder."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server

from leadline.config import Settings, load_settings
from leadline.drafts import SourceDraft
from leadline.errors import ConfigError, StoreDamaged, StoreError
from leadline.knowledge import KnowledgeBase, open_library

MakeDraft = Callable[..., SourceDraft]
SECRET = "Project Quokka has a budget of 42 million."


@pytest.fixture(params=["postgres", "s3", "postgres and s3"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Each place in turn."""
    options: dict[str, Any] = {"data_dir": tmp_path / "data", "lock_timeout_s": 20}
    if "postgres" in request.param:
        postgres: PostgresServer = request.getfixturevalue("postgres")
        options["catalog_url"] = postgres.database()
    if "s3" in request.param:
        s3: S3Server = request.getfixturevalue("s3")
        options |= {"content_backend": "s3", "content_options": s3.options()}
    return load_settings(**options)


async def found(kb: KnowledgeBase, query: str) -> dict[str, list[str]]:
    """Leg → the texts it finds."""
    return {name: [d["content"] for d in await leg.search(query, k=5)] for name, leg in kb.retrievers().items()}


async def test_documents_come_change_and_go(settings: Settings, draft: MakeDraft) -> None:
    """Put in, replaced, found, deleted, and the same after a restart, always in step."""
    async with open_library(settings) as library:
        kb = await library.collection()
        plan, zoo = await kb.put([draft("plan.md", SECRET, "More."), draft("zoo.md", "Dana Fox feeds Numbats.")])
        assert (plan.status, zoo.status) == ("added", "added")
        assert {texts[0] for texts in (await found(kb, "dana fox")).values()} == {"Dana Fox feeds Numbats."}
        (again,) = await kb.put([draft("zoo.md", "Dana Fox feeds Quolls.")])
        assert again.status == "replaced"
        assert [r.status for r in await kb.put([draft("zoo.md", "Dana Fox feeds Quolls.")])] == ["unchanged"]
        assert {texts[0] for texts in (await found(kb, "dana fox")).values()} == {"Dana Fox feeds Quolls."}
        report = await kb.delete(plan.doc_id)
        assert report.legs == dict.fromkeys(["vector", "bm25", "graph", "content"], 2)
        assert (await kb.verify()).ok
    async with open_library(settings) as library:
        kb = await library.collection()
        assert kb.problems == ()
        assert [d["content"] for d in await kb.search("dana fox quokka budget")] == ["Dana Fox feeds Quolls."]
        assert (await kb.verify()).ok
        await kb.clear()
        assert await kb.count() == 0
        assert (await kb.verify()).ok


async def test_what_is_kept_elsewhere_is_not_in_the_folder(settings: Settings, draft: MakeDraft) -> None:
    """No catalog file where there is a database, and no text in the file where texts are on object storage."""
    async with open_library(settings) as library:
        await (await library.collection()).put([draft("plan.md", SECRET)])
    assert (settings.data_dir / "catalog.db").exists() == (settings.catalog_url is None)
    if settings.content_backend == "s3":
        for path in settings.data_dir.glob("catalog*"):
            assert b"budget of 42" not in path.read_bytes(), path.name


async def test_two_writers_lose_nothing(settings: Settings, draft: MakeDraft) -> None:
    """Two that have it open put and delete beside each other; both see all of it, and it agrees."""

    async def write(name: str) -> None:
        async with open_library(settings) as library:
            kb = await library.collection()
            for number in range(4):
                (put,) = await kb.put([draft(f"{name}{number}.md", f"Acme Corp {name} fact {number}.")])
                if number == 1:
                    await kb.delete(put.doc_id)

    await asyncio.gather(write("a"), write("b"))
    async with open_library(settings) as library:
        kb = await library.collection()
        names = [source.file_name for source in await kb.list_sources()]
        assert names == ["a0.md", "a2.md", "a3.md", "b0.md", "b2.md", "b3.md"]
        assert (await kb.verify()).ok
        assert len((await found(kb, "acme corp"))["graph"]) == 5


async def test_collections_of_two_catalogs_share_a_bucket(tmp_path: Path, s3: S3Server, draft: MakeDraft) -> None:
    """Under the same url and name neither sees, removes or repairs away what is the other's."""
    shared = {"content_backend": "s3", "content_options": s3.options()}
    one, two = (load_settings(data_dir=tmp_path / name, **shared) for name in ("one", "two"))
    async with open_library(one) as first, open_library(two) as second:
        ours, theirs = await first.collection(), await second.collection()
        await ours.put([draft("a.md", SECRET)])
        await theirs.put([draft("a.md", SECRET)])
        await theirs.clear()
        assert (await theirs.repair()).after.ok
        assert (await ours.verify()).ok
        assert [d["content"] for d in await ours.search("quokka")] == [SECRET]


async def test_a_content_store_that_is_away_is_no_empty_answer(
    tmp_path: Path, own_s3: S3Server, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search, a put and an opening say so; nothing was lost when it is back."""
    options = {**own_s3.options(), "timeout": 0.5}
    settings = load_settings(data_dir=tmp_path / "data", content_backend="s3", content_options=options)
    async with open_library(settings) as library:
        kb = await library.collection()
        keep, gone = await kb.put([draft("keep.md", "Numbat Corp."), draft("gone.md", "Quokka Corp.")])
        own_s3.kill()
        for leg in kb.retrievers().values():
            with pytest.raises(StoreError, match="can't be reached"):
                await leg.search("corp", k=5)
        for failed in await kb.put([draft("new.md", "Quoll Corp."), draft("keep.md", "Numbat Inc.")]):
            assert failed.status == "failed"
            assert "can't be reached" in (failed.error or "")
        content = kb._current._opened.content
        fetch, fetched = content.fetch, []

        async def counted(ids: Sequence[str]) -> dict[str, str]:
            fetched.append(ids)
            return await fetch(ids)

        with monkeypatch.context() as patch:
            patch.setattr(content, "fetch", counted)
            assert "can't be reached" in (await kb.delete(gone.doc_id)).owed["content"]
        assert len(fetched) == 2  # before the deletion and after it, not for each index
    with pytest.raises(StoreError, match="can't be reached"):
        async with open_library(settings) as library:
            await library.collection()
    own_s3.start()
    async with open_library(settings) as library:
        kb = await library.collection()
        assert kb.problems == ()
        assert (await kb.verify()).ok
        assert [d["content"] for d in await kb.search("corp")] == ["Numbat Corp."]
        assert await kb._current._opened.content.all_ids() == set(keep.chunk_ids)


async def test_indexes_without_their_catalog_are_refused(
    tmp_path: Path, postgres: PostgresServer, draft: MakeDraft
) -> None:
    """A database that isn't there, or has no catalog, is not filled anew beside the indexes of another."""
    async with open_library(load_settings(data_dir=tmp_path, catalog_url=postgres.database())) as library:
        await (await library.collection()).put([draft("a.md", SECRET)])
    for url, error in ((postgres.address("nowhere"), StoreError), (postgres.database(), StoreDamaged)):
        with pytest.raises(error, match=r"catalog postgresql://127\.0\.0\.1"):
            async with open_library(load_settings(data_dir=tmp_path, catalog_url=url)):
                pass


def test_secrets_are_not_shown_with_the_settings(settings: Settings) -> None:
    """Neither the password of the database nor the key of the object storage."""
    secret = (settings.content_options or {}).get("secret_key", "no secret")
    assert secret not in repr(settings)
    if settings.catalog_url is not None:
        assert settings.catalog_url.get_secret_value() not in repr(settings)


async def test_an_unknown_content_backend_is_refused(tmp_path: Path) -> None:
    """Naming those there are."""
    with pytest.raises(ConfigError, match="catalog, s3"):
        async with open_library(load_settings(data_dir=tmp_path, content_backend="garage")):
            pass
