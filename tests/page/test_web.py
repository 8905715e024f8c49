"""The web in the page: what would be sent is shown before it is, and what came from there is told apart."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.api.conftest import running_server
from tests.page.conftest import ask, ended, opened
from tests.servers.search_server import SearchServer

from leadline import load_settings

QUESTION = "How tall is the lighthouse of Farpoint?"
FACT = "The lighthouse of Farpoint is 31 metres tall."
HOSTILE = f"{FACT} <img src=x onerror=alert(1)>"


@pytest.fixture
def searching(filled: Path, tmp_path: Path, search_server: SearchServer) -> Iterator[str]:
    """The address of a server whose web is a search engine on loopback."""
    search_server.json_results = {
        "results": [
            {"title": "Farpoint <b>light</b>", "url": "https://lights.test/farpoint", "content": HOSTILE},
            {"title": "Farpoint shop", "url": "javascript:alert(2)", "content": f"{FACT} Buy a model of it."},
        ]
    }
    folder = shutil.copytree(filled, tmp_path / "data")
    settings = load_settings(
        data_dir=folder,
        web_provider="searxng",
        web_url=search_server.origin,
        web_pages=0,
        run={"max_retries": 0, "web": "always"},
    )
    with running_server(settings) as url:
        yield url


@pytest.fixture
def page(context: BrowserContext, searching: str) -> Page:
    """The page of that server."""
    return opened(context, searching)


def test_nothing_is_sent_before_a_yes(page: Page, search_server: SearchServer) -> None:
    """A run that wanted the web shows its query and sends nothing; the button sends it, and the answer names the web.

    The source says that it is of the web, which host, and when; its link opens the page there without a way back.
    """
    ask(page, QUESTION)
    card = page.locator(".card.consent")
    outgoing = card.locator(".outgoing").inner_text()
    assert "Farpoint" in outgoing
    assert not search_server.queries
    card.get_by_role("button", name="Search the web").click()
    page.locator(".turn:nth-child(2)").wait_for()
    ended(page)
    assert search_server.queries == [outgoing]
    turn = page.locator(".turn:nth-child(2)")
    expect(turn.locator(".answer")).to_contain_text("31 metres")
    expect(turn.locator(".card.consent")).to_have_count(0)
    source = turn.locator(".sources li", has_text="lights.test").first
    expect(source.locator(".badge")).to_have_text("Web")
    expect(source).to_contain_text(re.compile(r"read \d"))
    link = source.get_by_role("link")
    assert link.get_attribute("href") == "https://lights.test/farpoint"
    assert "noopener" in str(link.get_attribute("rel"))
    turn.locator("summary").click()
    expect(turn.locator(".steps")).to_contain_text(f"“{outgoing}”")
    turn.locator(".answer button.cite").first.click()
    expect(page.locator("#panel mark.chosen")).to_contain_text("31 metres")
    expect(page.locator("#panel header .badge")).to_have_text("Web")
    page.get_by_role("button", name=re.compile("^Evidence")).last.click()
    expect(page.locator("table.evidence .badge").first).to_have_text("Web")
    expect(page.locator("table.evidence .legs").first).to_contain_text("web")
    hrefs = page.locator("#app a").evaluate_all("all => all.map((each) => each.getAttribute('href'))")
    assert not [href for href in hrefs if "javascript" in href]


def test_never_is_never(page: Page, search_server: SearchServer) -> None:
    """With the web switched off nothing is sent, and nothing is offered."""
    page.get_by_label("Web search").select_option("never")
    ask(page, QUESTION)
    expect(page.locator(".card.consent")).to_have_count(0)
    assert not search_server.queries
