"""What the web said before: when it stands in for a new search, and when it doesn't."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.drafts import WebPassage
from leadline.knowledge.web_cache import KEPT_AFTER_S, WebCache
from leadline.stores.catalog import Catalog

PAGE = WebPassage("https://a.example/", "A", "Orla Quist is a singer.", "2026-01-01T00:00:00+00:00", 0, 23)


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """An open catalog that nobody may write but with what anybody may."""
    catalog = Catalog(tmp_path)
    catalog.open()
    yield catalog
    catalog.close()


async def test_a_search_is_fresh_until_it_expires(catalog: Catalog) -> None:
    """Then it is still there, but not fresh; long after, it is gone with the next search."""
    clock = Clock()
    cache = WebCache(catalog, "ddgs", 24, clock)
    assert await cache.find("capital of France") is None
    await cache.keep("capital of France", [PAGE])
    found = await cache.find("capital of France")
    assert found is not None
    assert (tuple(found.passages), found.fresh) == ((PAGE,), True)
    clock.now += 24 * 3600 + 1
    found = await cache.find("capital of France")
    assert found is not None
    assert (tuple(found.passages), found.fresh) == ((PAGE,), False)
    clock.now += KEPT_AFTER_S
    await cache.keep("something else", [])
    assert await cache.find("capital of France") is None


@pytest.mark.parametrize("same", ["  Capital OF\n France ?", "capital of france", "ｃapital of France"])
async def test_spelling_makes_no_other_query(catalog: Catalog, same: str) -> None:
    """Case, blanks, a question mark, widths of letters."""
    cache = WebCache(catalog, "ddgs", 1)
    await cache.keep("capital of France?", [PAGE])
    assert await cache.find(same) is not None


@pytest.mark.parametrize("other", ["capital of Spain", "capital of", ""])
async def test_another_query_is_another(catalog: Catalog, other: str) -> None:
    """Nothing alike is taken for it; nor is another engine's search."""
    await WebCache(catalog, "ddgs", 1).keep("capital of France", [PAGE])
    assert await WebCache(catalog, "ddgs", 1).find(other) is None
    assert await WebCache(catalog, "searxng", 1).find("capital of France") is None


async def test_with_no_hours_nothing_is_kept(catalog: Catalog, tmp_path: Path) -> None:
    """Neither found nor written; and what was kept before is gone, from the file too."""
    await WebCache(catalog, "ddgs", 1).keep("capital of France", [PAGE])
    off = WebCache(catalog, "ddgs", 0)
    assert await off.find("capital of France") is None
    await off.keep("private question", [PAGE])
    assert await WebCache(catalog, "ddgs", 1).find("private question") is None
    assert await WebCache(catalog, "ddgs", 1).find("capital of France") is None
    assert b"is a singer" not in (tmp_path / "catalog.db").read_bytes()


async def test_no_query_is_written_down(catalog: Catalog, tmp_path: Path) -> None:
    """Of what was asked only a hash is in the file."""
    await WebCache(catalog, "ddgs", 1).keep("who is patient eightyeight", [PAGE])
    catalog.forget_deleted()  # the log goes into the file
    assert b"eightyeight" not in (tmp_path / "catalog.db").read_bytes()
