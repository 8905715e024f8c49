"""What a person must know before relying on an answer: flags, lost parts, limits, what is still being read in."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.api.conftest import running_server
from tests.page.conftest import LLM, Site, ask, opened
from tests.servers.chat_server import LITELLM_WARNINGS, says

from leadline import load_settings

pytestmark = LITELLM_WARNINGS

QUESTION = "How deep is the fairway dredged?"
TRUE = "The fairway is dredged to 7.2 metres below chart datum from Gull Rock to Ferry Quay. [1]"


@pytest.fixture(scope="module")
def hurried(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose reranker never has the time to answer."""
    folder = shutil.copytree(filled, tmp_path_factory.mktemp("hurried") / "data")
    settings = load_settings(data_dir=folder, rerank_timeout_s=0.0001, run={"max_retries": 0})
    with running_server(settings) as url:
        yield url


def test_a_lost_part_is_named(context: BrowserContext, hurried: str) -> None:
    """Without the reranker the answer says that nothing was weighed, and the table shows no scores."""
    page = opened(context, hurried)
    ask(page, QUESTION)
    notes = page.locator(".note")
    expect(notes.filter(has_text="Not judged")).to_be_visible()
    expect(notes.filter(has_text=re.compile("Without judging the passages: .*"))).to_be_visible()
    page.get_by_role("button", name=re.compile("^Evidence")).click()
    expect(page.locator("table.evidence tbody .judged").first).to_have_text("not judged")


def test_a_shortened_answer_says_so(page: Page, site: Site) -> None:
    """What an LLM wrote without support is gone from the answer, and a note says that something is."""
    page.get_by_label("Written by").select_option(LLM)
    site.chat.script(says(f"{TRUE} The harbour master is called Zebedee Quill and lives in Paris. [1]"))
    ask(page, QUESTION)
    expect(page.locator(".answer")).to_contain_text("7.2 metres")
    expect(page.locator(".answer")).not_to_contain_text("Zebedee")
    expect(page.locator(".note")).to_contain_text("Shortened")


def test_every_doubt_has_words(page: Page, site: Site) -> None:
    """Whatever flags, limits, lost parts and unread files a result names, each is told in a sentence, and read out."""
    body = {"question": QUESTION, "stream": False}
    result = httpx.post(f"{site.url}/chat", json=body, timeout=60, trust_env=False).json()
    result.update(
        flags=["weak_evidence", "unverified", "unranked", "shortened"],
        limits=["llm_calls", "seconds"],
        degraded=["graph", "something-new"],
        indexing=["<i>late</i>.pdf"],
    )
    result["context"][0]["sentences"] = {"shown": 1, "no_room": 3, "orders": 0}
    event = {"type": "degraded", "part": "graph", "reason": "it is being built"}
    frames = [event, {"type": "final", "result": result}]
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in frames)

    def answer(route: Route) -> None:
        route.fulfill(status=200, content_type="text/event-stream", body=f": heartbeat\n\n{stream}")

    page.route("**/chat", answer)
    ask(page, QUESTION)
    notes = page.locator(".note").all_inner_texts()
    for words in (
        "Weak evidence:",
        "Not verified:",
        "Not judged:",
        "Shortened:",
        "Still being read in, and not searched yet: <i>late</i>.pdf.",
        "Without the search by names: it is being built",
        "Without something-new.",
        "Not all was read: 3 sentences of 1 passage had no room.",
        "Held back by the budget of a question: llm calls, seconds.",
    ):
        assert sum(note.startswith(words) for note in notes) == 1, (words, notes)
    expect(page.locator("#live")).to_contain_text("Weak evidence:")


def test_what_is_still_being_read_in_is_told(page: Page, site: Site) -> None:
    """A question asked right after an upload says which file is not searched yet."""
    text = "\n\n".join(f"Line {n}: the buoy of berth {n} was painted in week {n % 52}." for n in range(1500))
    files = [("files", ("buoy-log.txt", text.encode()))]
    uploaded = httpx.post(f"{site.url}/documents?collection=default", files=files, trust_env=False)
    assert uploaded.status_code == 202
    ask(page, QUESTION)
    expect(page.locator(".note", has_text="Still being read in")).to_contain_text("buoy-log.txt")
    page.reload()
    line = page.locator("#documents li", has_text="buoy-log.txt")
    expect(line).to_contain_text(re.compile(r"\d passages"))
    line.get_by_role("button", name=re.compile("^Delete")).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(line).to_have_count(0)
