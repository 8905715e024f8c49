"""What the web gave, in the catalog: in a file and in PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.servers.postgres import PostgresServer
from tests.stores.catalogs import writable

from leadline.drafts import WebPassage
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import collection_names
from leadline.stores.catalog_schema import web_passages, web_searches
from leadline.stores.catalog_web import drop_web, find_web_passages, find_web_search, save_web_search

NOW = "2026-01-01T00:00:00+00:00"
PAGE = WebPassage("https://a.example/ü?x=1", "Títle", "Text – 東京\n", NOW, 7, 16, ("A", "B"), 3, 9, "en", "ab" * 32)
EXCERPT = WebPassage("https://b.example/", "b", "An excerpt", NOW, 0, 10, excerpt=True)


@pytest.fixture(params=["sqlite", "postgres"])
async def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Catalog]:
    """An open catalog."""
    url = None
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    async with writable(tmp_path / "data", url) as catalog:
        yield catalog


async def test_a_search_comes_back_whole_and_in_order(catalog: Catalog) -> None:
    """Every field of every passage, best first, each once; another search's are not among them."""
    save_web_search(catalog, "one", [EXCERPT, PAGE, EXCERPT], expires=10.5, forget_before=0)
    save_web_search(catalog, "two", [], expires=11, forget_before=0)
    found = find_web_search(catalog, "one")
    assert found is not None
    assert (found.passages, found.expires) == ((EXCERPT, PAGE), 10.5)
    nothing = find_web_search(catalog, "two")
    assert nothing is not None
    assert nothing.passages == ()
    assert find_web_search(catalog, "three") is None
    assert find_web_passages(catalog, [PAGE.chunk_id, "none"]) == {PAGE.chunk_id: PAGE}


async def test_a_passage_that_two_searches_found_lives_as_long_as_the_later(catalog: Catalog) -> None:
    """One row, the later retrieval's; the same text at another address is another passage."""
    later = replace(PAGE, retrieved_at="2026-01-02T00:00:00+00:00")
    elsewhere = replace(PAGE, url="https://c.example/")
    save_web_search(catalog, "one", [PAGE], expires=10, forget_before=0)
    save_web_search(catalog, "two", [later, elsewhere], expires=20, forget_before=0)
    save_web_search(catalog, "three", [EXCERPT], expires=30, forget_before=15)
    assert find_web_search(catalog, "one") is None
    found = find_web_search(catalog, "two")
    assert found is not None
    assert found.passages == (later, elsewhere)


async def test_what_expired_long_ago_is_forgotten(catalog: Catalog) -> None:
    """By the next search that is kept, passages and all."""
    save_web_search(catalog, "old", [PAGE], expires=10, forget_before=0)
    save_web_search(catalog, "new", [EXCERPT], expires=99, forget_before=10.1)
    assert find_web_search(catalog, "old") is None
    assert find_web_passages(catalog, [PAGE.chunk_id, EXCERPT.chunk_id]).keys() == {EXCERPT.chunk_id}


async def test_everything_can_be_forgotten(catalog: Catalog) -> None:
    """At once, with the count of passages."""
    save_web_search(catalog, "one", [EXCERPT, PAGE], expires=10, forget_before=0)
    assert drop_web(catalog) == 2
    assert drop_web(catalog) == 0
    assert find_web_search(catalog, "one") is None
    assert find_web_passages(catalog, [PAGE.chunk_id]) == {}


async def test_no_lease_is_needed(tmp_path: Path) -> None:
    """A question never waits for another process that is taking documents in."""
    catalog = Catalog(tmp_path)
    catalog.open()
    try:
        save_web_search(catalog, "one", [PAGE], expires=10, forget_before=0)
        assert find_web_search(catalog, "one") is not None
    finally:
        catalog.close()


async def test_a_catalog_from_before_there_was_a_web_gets_the_tables(tmp_path: Path) -> None:
    """Opening it is enough; what it holds stays."""
    async with writable(tmp_path) as catalog:
        with catalog.write() as connection:
            web_searches.drop(connection)
            web_passages.drop(connection)
    async with writable(tmp_path) as catalog:
        save_web_search(catalog, "one", [PAGE], expires=10, forget_before=0)
        assert find_web_search(catalog, "one") is not None
        assert collection_names(catalog) == ["c"]
