"""Asking in the page: steps, answer, sources, evidence, and the way back to all of it."""

import re

from playwright.sync_api import Page, Route, expect
from tests.page.conftest import Site, ask, opened

DEPTH = "How deep is the fairway dredged?"
GAUGE = "What is the first thing to check on the tide gauge?"
NOWHERE = "Who won the 2022 world cup?"


def test_a_question_is_answered_with_its_steps(page: Page) -> None:
    """Enter asks; the steps stand there with their times, the answer with marks of its sources, and the box is free."""
    ask(page, DEPTH)
    turn = page.locator(".turn")
    expect(turn.locator(".answer")).to_contain_text("7.2 metres")
    expect(turn.locator("summary")).to_have_text(re.compile(r"\d+ steps · .*\d s$"))
    turn.locator("summary").click()
    for step in ("Plan", "Search the documents", "Judge the passages", "Write", "Check"):
        expect(turn.locator(".steps .what", has_text=re.compile(f"^{step}$")).first).to_be_visible()
    expect(turn.locator(".steps .time").first).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    expect(turn.locator(".steps")).to_contain_text(re.compile(r"\d+ of \d+ judged relevant"))
    expect(page.get_by_label("Your question")).to_have_value("")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_a_mark_shows_its_quote_in_the_document(page: Page) -> None:
    """A click opens the passage with file and neighbours; what is highlighted is the quote, word for word."""
    ask(page, DEPTH)
    mark = page.locator(".answer button.cite").first
    expect(mark).to_have_accessible_name(re.compile(r"Source \d+: harbour-handbook\.md"))
    sentence = page.locator(".answer p").first.evaluate("p => p.firstChild.data").strip()
    mark.click()
    panel = page.locator("#panel")
    chosen = panel.locator("mark.chosen")
    expect(chosen).to_be_in_viewport()
    assert chosen.inner_text() == sentence
    expect(panel).to_contain_text("harbour-handbook.md")
    expect(panel.locator(".passage.beside").first).to_be_attached()
    more = panel.get_by_role("button", name="Show what follows")
    before = panel.locator(".passage").count()
    more.click()
    expect(panel.locator(".passage")).to_have_count(before + 1)


def test_a_quote_from_a_page_names_the_page(page: Page) -> None:
    """A source with pages is named with its page, in the answer's list and where it is read."""
    ask(page, GAUGE)
    source = page.locator(".sources button", has_text="page").first
    named = re.search(r"page (\d+)", source.inner_text())
    assert named
    source.click()
    expect(page.locator("#panel header")).to_contain_text(f"Page {named[1]}")


def test_a_mark_shows_its_quote_beside_it(page: Page) -> None:
    """Hovering, or coming there by keyboard, shows file and quote; Escape hides it."""
    ask(page, DEPTH)
    peek = page.locator("#peek")
    mark = page.locator(".answer button.cite").first
    mark.hover()
    expect(peek).to_contain_text("7.2 metres")
    expect(peek).to_contain_text("harbour-handbook.md")
    expect(mark).to_have_accessible_description(re.compile("7.2 metres"))
    page.keyboard.press("Escape")
    expect(peek).to_be_hidden()
    expect(mark).to_have_accessible_description("")


def test_the_evidence_of_an_answer(page: Page) -> None:
    """The table has every candidate: what found it and where, its score as a bar around zero, its end and why.

    From a passage that is opened one comes back to its line.
    """
    ask(page, DEPTH)
    button = page.get_by_role("button", name=re.compile(r"^Evidence: \d+ passages"))
    number = int(re.findall(r"\d+", button.inner_text())[0])
    button.click()
    if (more := page.get_by_role("button", name=re.compile("more passage"))).count():
        more.click()
    rows = page.locator("table.evidence tbody tr")
    expect(rows).to_have_count(number)
    first = rows.first
    expect(first.locator(".legs")).to_contain_text(re.compile(r"(meaning|words|names) \d"))
    expect(first.locator(".fate")).to_contain_text(re.compile(r"^Kept: .*cited as \[\d\]"))
    signs = rows.locator(".judgement").evaluate_all(
        "all => all.map((each) => [each.innerText, each.querySelector('rect').getAttribute('class'), "
        "Number(each.querySelector('rect').getAttribute('x'))])"
    )
    assert {kind for _, kind, _ in signs} == {"for", "against"}
    for text, kind, x in signs:
        assert (kind == "for") == text.startswith("+") == (x == 30)
    first.get_by_role("button").click()
    expect(page.locator("#panel-title")).to_have_text("Source")
    page.get_by_role("button", name="Back to the evidence").click()
    expect(rows).to_have_count(number)
    expect(first.get_by_role("button")).to_be_focused()


def test_no_answer_is_a_state_of_its_own(page: Page) -> None:
    """Where the documents hold nothing it says so, with the nearest passages, each opened by a click."""
    ask(page, NOWHERE)
    card = page.locator(".card.calm")
    expect(card.get_by_role("heading", name="No answer found")).to_be_visible()
    nearest = card.locator(".nearest button")
    expect(nearest.first.locator(".excerpt")).to_have_text(re.compile(r"\w{3}"))
    expect(page.locator(".turn .broken")).to_have_count(0)
    nearest.first.click()
    expect(page.locator("#panel .passage").first).to_be_visible()


def test_a_reload_keeps_the_conversation(page: Page, site: Site) -> None:
    """After a reload the questions and answers are there, the last one with its sources; the list leads back to it."""
    ask(page, DEPTH)
    ask(page, GAUGE)
    answers = page.locator(".turn .answer")
    before = answers.all_inner_texts()
    page.reload()
    expect(page.locator(".turn h2")).to_have_text([DEPTH, GAUGE])
    assert answers.nth(1).inner_text() == before[1]
    expect(answers.nth(0).locator("span.cite")).not_to_have_count(0)  # marks still, of sources that aren't kept
    page.locator(".turn:last-child .answer button.cite").first.click()
    expect(page.locator("#panel mark.chosen")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#empty")).to_be_visible()
    page.locator("#threads .open", has_text=DEPTH).first.click()
    expect(page.locator(".turn h2")).to_have_text([DEPTH, GAUGE])
    page.go_back()
    expect(page.locator(".turn")).to_have_count(0)


def test_a_conversation_is_deleted_after_a_question(page: Page) -> None:
    """Cancel leaves it, Delete takes it out of the list and off the page, and stays until that is done."""
    ask(page, "What may visitors bring to the harbour?")
    line = page.locator("#threads li", has_text="visitors bring")
    line.get_by_role("button", name=re.compile("^Delete the conversation")).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(line).to_have_count(1)
    line.get_by_role("button", name=re.compile("^Delete the conversation")).click()
    held: list[Route] = []
    page.route("**/threads/*", lambda route: held.extend([route]))
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete")
    delete.click()
    expect(delete).to_be_disabled()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_visible()
    held[0].continue_()
    expect(line).to_have_count(0)
    expect(page.locator(".turn")).to_have_count(0)


def test_two_tabs_have_two_conversations(page: Page, site: Site) -> None:
    """A second tab begins anew, and the first one's address opens the same conversation in a third."""
    ask(page, DEPTH)
    other = opened(page.context, site.url)
    expect(other.locator(".turn")).to_have_count(0)
    third = opened(page.context, page.url)
    expect(third.locator(".turn h2")).to_have_text([DEPTH])


def test_a_too_long_question_is_kept_and_not_asked(page: Page) -> None:
    """No part of it is lost in silence: it stands whole, the count is told, and it is asked when it is short enough."""
    box, send = page.get_by_label("Your question"), page.get_by_role("button", name="Ask", exact=True)
    long = f"{'Tide. ' * 3400}{DEPTH}"
    box.fill(long)
    note = page.locator("#too-long")
    expect(note).to_contain_text(f"{len(long):,} characters, 20,000 at most. Shorten it by {len(long) - 20_000:,}.")
    expect(page.locator("#live")).to_have_text(note.inner_text())
    expect(box).to_have_accessible_description(note.inner_text())
    expect(send).to_be_disabled()
    box.press("Enter")
    expect(box).to_have_value(long)
    expect(page.locator(".turn")).to_have_count(0)
    box.fill("🌊" * 20_000)  # characters as the server counts them
    expect(note).to_be_hidden()
    expect(send).to_be_enabled()
    ask(page, DEPTH)
    expect(page.locator(".answer")).to_contain_text("7.2 metres")


def test_the_end_of_an_answer_is_in_view(page: Page) -> None:
    """What is added last is seen without scrolling, however much came at once; who scrolls up is left there."""
    page.set_viewport_size({"width": 800, "height": 500})
    ask(page, NOWHERE)
    expect(page.locator(".excerpt").last).to_have_text(re.compile(r"\w"))
    expect(page.locator(".foot")).to_be_in_viewport()
    page.locator("#scroll").evaluate("e => { e.scrollTop = 0; }")
    expect(page.locator(".foot")).not_to_be_in_viewport()
    page.locator("#turns").dispatch_event("grown")
    expect(page.locator(".foot")).not_to_be_in_viewport()


def test_the_web_is_offered_where_the_documents_hold_nothing(page: Page) -> None:
    """Under "if needed" an abstention shows what would be sent and a button; under "never" it offers nothing."""
    for policy, offered in (("auto", 1), ("never", 0)):
        page.get_by_label("Web search").select_option(policy)
        ask(page, NOWHERE)
        card = page.locator(".turn:last-child .card.consent")
        expect(card).to_have_count(offered)
        if offered:
            expect(card.locator(".outgoing")).to_have_text(NOWHERE)
            expect(card.get_by_role("button", name="Search the web")).to_be_in_viewport()
