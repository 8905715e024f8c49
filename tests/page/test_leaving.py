"""Leaving and coming back in mid-answer: what runs is given up, what is shown is what the address names."""

import json
from typing import Any

from playwright.sync_api import Page, Route, expect
from tests.page.conftest import Site, ask

DEPTH = "How deep is the fairway dredged?"
UNHEARD = "What is asked and never answered?"
UPDATED = "2026-03-02T08:00:00+00:00"


def never_answered(page: Page, question: str) -> None:
    """Asks where no answer ever comes."""
    page.route("**/chat", lambda _: None)
    ask(page, question, wait=False)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()


def idle(page: Page) -> None:
    """The box is free for a question."""
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def stored(page: Page, **changes: Any) -> None:
    """Lets the server have a conversation `kept`, of one question without an answer."""
    said = {"role": "user", "text": UNHEARD}
    thread = {"thread_id": "kept", "collection": "default", "turns": 1, "question": UNHEARD, "updated_at": UPDATED}
    body = json.dumps({**thread, "messages": [said], "result": None, **changes})
    page.route("**/threads/kept", lambda route: route.fulfill(content_type="application/json", body=body))


def test_back_in_mid_answer(page: Page) -> None:
    """The way back leads to no conversation and a free box; the way forward to one that was never there says so."""
    never_answered(page, UNHEARD)
    page.go_back()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#empty")).to_be_visible()
    idle(page)
    page.go_forward()
    expect(page.locator("#empty")).to_contain_text("not there any more")
    idle(page)


def test_another_conversation_in_mid_answer(page: Page) -> None:
    """What is opened is shown alone, and nothing of the run that was given up comes into it."""
    ask(page, DEPTH)
    page.locator(".answer button.cite").first.click()
    expect(page.locator("#panel")).to_be_visible()
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator("#panel")).to_be_hidden()
    never_answered(page, UNHEARD)
    page.locator("#threads .open", has_text=DEPTH).first.click()
    expect(page.locator(".turn h2")).to_have_text([DEPTH])
    idle(page)
    expect(page.locator(".turn .broken")).to_have_count(0)


def test_a_question_before_the_conversation_is_there(page: Page) -> None:
    """What was said before comes above a question asked meanwhile."""
    ask(page, DEPTH)
    page.get_by_role("button", name="New conversation").click()
    held: list[Route] = []
    page.route("**/threads/*", lambda route: held.extend([route]))
    page.locator("#threads .open", has_text=DEPTH).first.click()
    never_answered(page, UNHEARD)
    held[0].continue_()
    expect(page.locator(".turn h2")).to_have_text([DEPTH, UNHEARD])


def test_a_question_without_an_answer_can_be_asked_again(page: Page) -> None:
    """One that was stopped says so when it is seen again, with a button that asks it."""
    stored(page)
    page.evaluate("location.hash = '#collection=default&conversation=kept'")
    turn = page.locator(".turn")
    expect(turn).to_contain_text("No answer is kept")
    page.route("**/chat", lambda _: None)
    turn.get_by_role("button", name="Ask again").click()
    expect(page.locator(".turn h2")).to_have_text([UNHEARD, UNHEARD])


def test_a_conversation_of_another_collection(page: Page, site: Site) -> None:
    """An address that names the wrong collection, or none, leads to that of the conversation."""
    stored(page, collection="elsewhere")
    page.evaluate("location.hash = '#conversation=kept'")
    expect(page.get_by_label("Collection", exact=True)).to_have_value("elsewhere")
    expect(page.locator(".turn h2")).to_have_text(UNHEARD)
    assert "collection=elsewhere" in page.url


def test_many_conversations(page: Page) -> None:
    """A hundred are drawn, the others when they are asked for, and the first of them has the focus."""
    each = {"collection": "default", "turns": 1, "question": UNHEARD, "updated_at": UPDATED}
    body = json.dumps({"threads": [{**each, "thread_id": f"t{n}"} for n in range(130)]})
    page.route("**/threads?*", lambda route: route.fulfill(content_type="application/json", body=body))
    page.reload()
    lines = page.locator("#threads li")
    expect(lines).to_have_count(100)
    page.get_by_role("button", name="Show 30 more conversations").click()
    expect(lines).to_have_count(130)
    expect(lines.nth(100).locator(".open")).to_be_focused()
