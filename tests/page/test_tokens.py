"""A server that asks who one is: the page asks for the token, keeps it in the tab, and shows what it may see."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.api.conftest import running_server
from tests.page.conftest import ask

from leadline import load_settings

RUN = "from leadline.cli import main; main()"


def token(folder: Path, *options: str) -> str:
    """A new token, made as its owner does."""
    made = subprocess.run(
        [sys.executable, "-c", RUN, "tokens", "add", *options, "--data-dir", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.split()[-1]


@pytest.fixture(scope="module")
def guarded(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server with a token that may only read one collection, and the token."""
    folder = shutil.copytree(filled, tmp_path_factory.mktemp("guarded") / "data")
    secret = token(folder, "reader", "--collection", "default", "--read-only")
    with running_server(load_settings(data_dir=folder)) as url:
        yield url, secret


@pytest.fixture
def door(context: BrowserContext, guarded: tuple[str, str]) -> Page:
    """The page as a stranger sees it."""
    page = context.new_page()
    page.goto(guarded[0])
    page.get_by_label("Token").wait_for()
    return page


def test_a_stranger_sees_nothing_but_the_question_for_a_token(door: Page) -> None:
    """The page itself is not shown, takes no files, and a wrong token is told to be one."""
    expect(door.locator("#app")).to_be_hidden()
    door.evaluate(
        "() => { const dataTransfer = new DataTransfer(); dataTransfer.items.add(new File(['x'], 'x.txt')); "
        "for (const type of ['dragenter', 'drop']) document.body.dispatchEvent("
        "new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true })); }"
    )
    expect(door.locator("#drop")).to_be_hidden()
    expect(door.locator("#jobs li")).to_have_count(0)
    door.get_by_label("Token").fill("not-a-token")
    door.keyboard.press("Enter")
    expect(door.get_by_role("alert")).to_contain_text("does not know this token")
    expect(door.locator("#app")).to_be_hidden()


def test_a_token_opens_what_it_may_see(door: Page, guarded: tuple[str, str]) -> None:
    """It asks, reads sources, changes nothing; the token lasts for the tab only, and until one signs out."""
    door.get_by_label("Token").fill(guarded[1])
    door.get_by_role("button", name="Continue").click()
    expect(door.locator("#documents li").first).to_be_visible()
    expect(door.get_by_role("button", name="Add", exact=True)).to_have_count(0)
    expect(door.get_by_role("button", name="New collection")).to_have_count(0)
    expect(door.locator("#documents").get_by_role("button", name="Delete")).to_have_count(0)
    ask(door, "How deep is the fairway dredged?")
    door.locator(".answer button.cite").first.click()
    expect(door.locator("#panel mark.chosen")).to_be_visible()
    door.reload()
    expect(door.locator(".turn .answer")).to_contain_text("7.2 metres")
    assert guarded[1] not in door.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
    other = door.context.new_page()
    other.goto(guarded[0])
    expect(other.get_by_label("Token")).to_be_visible()
    door.get_by_role("button", name="Sign out").click()
    expect(door.get_by_label("Token")).to_be_visible()
    assert door.evaluate("sessionStorage.length") == 0
