"""The page in a real browser, in front of a real server over a few documents."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.api.conftest import EXAMPLES, running_server
from tests.servers.chat_server import ChatServer, running_chat_server

from leadline import Settings, ingest_paths, load_settings, open_library

LLM = "openai/scripted"
DOCUMENTS = ("harbour-handbook.md", "tide-gauge-manual.pdf", "visitor-faq.html", "emergency-plan.pdf")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 60_000  # on a busy machine; nothing waits longer than it must


@dataclass(frozen=True)
class Site:
    """A running server, its data folder, and the LLM that writes where one is chosen."""

    url: str
    settings: Settings
    chat: ChatServer


@dataclass
class Watch:
    """What a page must never do: show a dialog, ask another host, break its policy, raise."""

    dialogs: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        """Watches the page from now on."""
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console", lambda said: self.errors.append(said.text) if "Content Security Policy" in said.text else None
        )

    def fine(self) -> None:
        """Raises where something of it happened."""
        assert not self.dialogs
        assert not self.errors
        assert self.hosts <= {"127.0.0.1"}


def in_a_thread(work: Callable[[], object]) -> None:
    """Runs it where no event loop is: the browser's has this thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


async def fill(settings: Settings, folder: Path, collection: str = "default") -> None:
    """Takes the folder's files in."""
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(collection, create=True), [folder], settings)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with documents in it, for copies."""
    folder, documents = tmp_path_factory.mktemp("page"), tmp_path_factory.mktemp("documents")
    for name in DOCUMENTS:
        shutil.copy(EXAMPLES / name, documents / name)
    settings = load_settings(data_dir=folder / "data")
    in_a_thread(lambda: asyncio.run(fill(settings, documents)))
    return settings.data_dir


@pytest.fixture(scope="session")
def writer() -> Iterator[ChatServer]:
    """The LLM, on loopback; it says what a test tells it to."""
    with running_chat_server() as chat:
        yield chat


@pytest.fixture(scope="session")
def site(filled: Path, writer: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server of most tests. It quotes, unless the LLM it offers is chosen."""
    folder = shutil.copytree(filled, tmp_path_factory.mktemp("site") / "data")
    run = {"max_retries": 0}
    settings = load_settings(
        data_dir=folder, llm_api_base=writer.url, llm_retries=0, llms=[LLM], run=run, rate_per_minute=10_000
    )
    with running_server(settings) as url:
        yield Site(url, settings, writer)


@pytest.fixture(scope="session")
def chromium(site: Site) -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """Chromium, and the event loop it is driven by, which counts as running for as long as the browser is there."""
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("There is no Chromium on this machine: apt-get install chromium")
    expect.set_options(timeout=WAIT_MS / 2)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture
def browser(chromium: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The one browser of all tests. Its loop is hidden between them: tests of other kinds run loops of their own."""
    browser, loop = chromium
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What happened that must not; checked at the end of every test."""
    watch = Watch()
    yield watch
    watch.fine()


@pytest.fixture
def context(browser: Browser, watch: Watch) -> Iterator[BrowserContext]:
    """A browser nobody has used yet."""
    context = browser.new_context(viewport={"width": 1360, "height": 840}, reduced_motion="reduce")
    context.set_default_timeout(WAIT_MS)
    context.on("request", lambda request: watch.hosts.add(urlsplit(request.url).hostname or "127.0.0.1"))
    context.on("page", watch.over)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Page:
    """The page, open and ready for a question."""
    return opened(context, site.url)


def opened(context: BrowserContext, url: str) -> Page:
    """The page at that address, when it is ready."""
    page = context.new_page()
    page.goto(url)
    page.locator("#app:not([hidden])").wait_for()
    page.locator("#empty:not([hidden]), .turn").first.wait_for()
    return page


def ask(page: Page, question: str, *, wait: bool = True) -> None:
    """Asks as a person does; waits for the end of the run."""
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    page.locator(".turn h2", has_text=question).last.wait_for()
    if wait:
        ended(page)


def ended(page: Page) -> None:
    """Waits until no run is on."""
    page.locator("#turns:not([data-running])").wait_for()
