"""Answers as they come: word by word, withdrawn, stopped, broken off, and the question that stays."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.page.conftest import LLM, WAIT_MS, Site, ask, ended, opened
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, says

pytestmark = LITELLM_WARNINGS

QUESTION = "How deep is the fairway dredged?"
TRUE = "The fairway is dredged to 7.2 metres below chart datum from Gull Rock to Ferry Quay. [1]"


@pytest.fixture
def written(page: Page, site: Site) -> Page:
    """The page with the LLM chosen."""
    page.get_by_label("Written by").select_option(LLM)
    return page


def test_an_answer_streams(written: Page, site: Site) -> None:
    """It grows while it is written, without being read out word by word; then it is read out once."""
    site.chat.script(says(TRUE, pause_s=0.08))
    ask(written, QUESTION, wait=False)
    answer = written.locator(".answer")
    expect(answer).to_have_text(re.compile(r"^The fairway"))
    expect(answer).to_have_attribute("aria-busy", "true")
    assert "Ferry Quay" not in answer.inner_text()
    expect(written.get_by_role("button", name="Stop")).to_be_visible()
    ended(written)
    expect(answer.locator("button.cite")).to_have_count(1)
    expect(written.locator("#live")).to_have_text(re.compile(r"^The fairway is dredged to 7\.2 .*Ferry Quay\.(?! 1)"))
    assert answer.evaluate("e => e.closest('[aria-live]')") is None
    expect(written.locator(".foot")).to_contain_text(f"Written by {LLM}")


def test_a_rejected_draft_is_withdrawn(written: Page, site: Site) -> None:
    """A draft that its sources don't support is streamed, then gone; the steps say why."""
    site.chat.script(says("The fairway is 99 metres deep and made of chocolate. [1]"))
    ask(written, QUESTION)
    turn = written.locator(".turn")
    expect(turn).not_to_contain_text("chocolate")
    turn.locator("summary").click()
    expect(turn.locator(".steps")).to_contain_text("Draft withdrawn")


def answer_with(body: str, route: Route) -> None:
    """Answers a request with this stream, which then ends."""
    route.fulfill(status=200, content_type="text/event-stream", body=body)


def test_a_withdrawn_draft_is_gone_at_once(page: Page) -> None:
    """What was streamed before it is withdrawn is no part of what comes after, also where the stream ends there."""
    said = [
        {"type": "token", "text": "Made of chocolate."},
        {"type": "retract", "reason": "No passage says so."},
        {"type": "token", "text": "Made of"},
        {"type": "token", "text": " sand."},
    ]
    for events, left in ((said, "Made of sand."), (said[:2], "")):
        body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        page.unroute_all()
        page.route("**/chat", partial(answer_with, body))
        ask(page, QUESTION)
        expect(page.locator(".turn:last-child .answer")).to_have_text(left)
        expect(page.locator(".turn:last-child .broken")).to_contain_text("Interrupted")
        expect(page.locator(".turn:last-child")).to_have_attribute("data-status", "interrupted")


def test_a_run_is_stopped(written: Page, site: Site) -> None:
    """Stop ends the run on the server too, keeps the question, and the box is free for the next."""
    site.chat.script(says(TRUE, end="hang", hang_s=20))
    ask(written, QUESTION, wait=False)
    expect(written.locator(".answer")).to_have_text(re.compile("Ferry Quay"))
    written.get_by_role("button", name="Stop").click()
    ended(written)
    expect(written.locator(".broken")).to_contain_text("Stopped")
    expect(written.locator(".turn")).to_have_attribute("data-status", "stopped")
    site.chat.script(says(TRUE))
    written.get_by_role("button", name="Ask again").click()
    ended(written)
    expect(written.locator(".turn:last-child .answer button.cite")).to_have_count(1)
    expect(written.locator(".turn:last-child")).to_have_attribute("data-status", "answered")


def test_a_broken_stream_is_no_answer(written: Page, site: Site) -> None:
    """Where the model's stream breaks off, that is said, and nothing of the draft stands there as an answer."""
    site.chat.script(says(TRUE, end="close"))
    ask(written, QUESTION)
    turn = written.locator(".turn")
    expect(turn.locator(".broken")).to_contain_text("Interrupted")
    expect(turn.locator(".answer")).to_have_text("")
    expect(turn.get_by_role("button", name="Ask again")).to_be_visible()
    expect(turn).to_have_attribute("data-status", "interrupted")


def test_a_refused_question_says_why(page: Page) -> None:
    """A question that the server refuses stays there with the server's own words."""
    page.get_by_role("button", name="New collection").click()
    page.get_by_role("dialog").get_by_label("Name").fill("nothing-in-it")
    page.get_by_role("dialog").get_by_role("button", name="Use it").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    ask(page, QUESTION)
    expect(page.locator(".broken")).to_contain_text("There is no collection nothing-in-it")
    expect(page.locator(".turn h2")).to_have_text(QUESTION)


RUN = "from leadline.cli import main; main()"


class OwnServer:
    """`leadline serve` as a process of its own, which can be killed."""

    def __init__(self, folder: Path, chat: ChatServer) -> None:
        self._folder, self._chat = folder, chat
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Returns its address when it listens: the same one each time."""
        told = {
            "LEADLINE_DATA_DIR": str(self._folder),
            "LEADLINE_LLM_API_BASE": self._chat.url,
            "LEADLINE_RUN__LLM": LLM,
            "LEADLINE_RUN__MAX_RETRIES": "0",
        }
        command = [sys.executable, "-c", RUN, "serve", "--port", str(self._port)]
        self._process = subprocess.Popen(command, env={**os.environ, **told}, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"running on (http://127\.0\.0\.1:(\d+))", line):
                self._port = int(found[2])
                return found[1]
        raise AssertionError("the server ended at its start")

    def kill(self) -> None:
        """At once, as when a machine loses power."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(30)
            self._process.stderr.close()
            self._process = None


@pytest.fixture
def own_server(filled: Path, writer: ChatServer, tmp_path: Path) -> Iterator[OwnServer]:
    """One over a copy of the documents."""
    server = OwnServer(shutil.copytree(filled, tmp_path / "data"), writer)
    yield server
    server.kill()


def test_a_server_lost_in_mid_stream(own_server: OwnServer, context: BrowserContext, writer: ChatServer) -> None:
    """The server is killed while it answers: interrupted, the question stays, and asking again says who is missing;
    when a server is there again, the same conversation goes on."""
    page = opened(context, own_server.start())
    writer.script(Reply(tuple(TRUE.split()[0:1]) + tuple(f" {w}" for w in TRUE.split()[1:6]), end="hang", hang_s=300))
    ask(page, QUESTION, wait=False)
    expect(page.locator(".answer")).to_have_text(
        re.compile("dredged"), timeout=4 * WAIT_MS
    )  # it reads its models first
    own_server.kill()
    ended(page)
    expect(page.locator(".turn")).to_have_attribute("data-status", "interrupted")
    expect(page.locator(".broken")).to_contain_text("Interrupted")
    expect(page.locator("#live")).to_contain_text("Interrupted")
    expect(page.locator(".answer.incomplete")).to_contain_text("The fairway")
    expect(page.locator(".turn h2")).to_have_text(QUESTION)
    page.get_by_role("button", name="Ask again").click()
    ended(page)
    again = page.locator(".turn:last-child")
    expect(again.locator(".broken")).to_contain_text("can't be reached")
    expect(again.locator("h2")).to_have_text(QUESTION)
    expect(again).to_have_attribute("data-status", "refused")
    own_server.start()
    writer.script(says(TRUE))
    again.get_by_role("button", name="Ask again").click()
    ended(page)
    expect(page.locator(".turn:last-child .answer button.cite")).to_have_count(1)
    page.reload()
    expect(page.locator(".turn h2")).to_have_text([QUESTION])  # the one that was answered is kept
