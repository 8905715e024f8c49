"""The page for everybody: by keyboard, by screen reader, on a narrow screen, in light and dark."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.page.conftest import WAIT_MS, Site, ask, opened

QUESTION = "How deep is the fairway dredged?"
NOWHERE = "Who won the 2022 world cup?"
AXE = Axe()


def no_barriers(page: Page) -> None:
    """Raises where axe finds something serious or critical."""
    found = AXE.run(page).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not grave, [(each["id"], [node["html"] for node in each["nodes"]]) for each in grave]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers_in_any_state(browser: Browser, context: BrowserContext, site: Site, scheme: str) -> None:
    """axe finds nothing serious: empty, answered, abstained, with source, evidence, document and dialog open."""
    page = opened(context, site.url)
    page.emulate_media(color_scheme=scheme)
    no_barriers(page)
    ask(page, QUESTION)
    ask(page, NOWHERE)
    page.locator(".turn summary").first.click()
    no_barriers(page)
    page.locator(".answer button.cite").first.click()
    expect(page.locator("#panel mark.chosen")).to_be_visible()
    no_barriers(page)
    page.get_by_role("button", name=re.compile("^Evidence")).first.click()
    no_barriers(page)
    page.locator("#documents .open").first.click()
    expect(page.locator("#panel .passage").first).to_be_visible()
    no_barriers(page)
    page.locator("#documents").get_by_role("button", name=re.compile("^Delete")).first.click()
    no_barriers(page)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 360, "height": 740})
    no_barriers(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Documents and conversations", exact=True).click()
    no_barriers(page)


def test_all_by_keyboard(page: Page) -> None:
    """Without a pointer: asked, a mark reached with Tab and opened, closed with Escape, the focus back where it was."""
    address = page.url
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the question")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your question")).to_be_focused()
    assert page.url == address
    page.keyboard.type("How deep is")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("the fairway dredged?")
    expect(page.get_by_label("Your question")).to_have_value("How deep is\nthe fairway dredged?")
    page.keyboard.press("Enter")
    page.locator(".answer button.cite").first.wait_for()
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.matches('.answer button.cite')"):
            break
    focused = page.locator(".answer button.cite:focus")
    expect(focused).to_have_count(1)
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    expect(page.locator("#peek")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#panel mark.chosen")).to_be_visible()
    expect(page.locator("#panel-title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    expect(focused).to_have_count(1)


def test_a_word_that_is_being_composed_is_not_sent(page: Page) -> None:
    """The Enter that ends a composed word, as in Japanese, is not the one that asks."""
    box = page.get_by_label("Your question")
    box.fill("にほん")
    box.evaluate("e => e.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true}))")
    expect(page.locator(".turn")).to_have_count(0)
    expect(box).to_have_value("にほん")


@pytest.mark.parametrize("width", [360, 1024])
def test_a_narrow_screen(context: BrowserContext, site: Site, width: int) -> None:
    """Nothing is wider than the screen; sources lie over the conversation and give it back, documents too."""
    page = opened(context, site.url)
    page.set_viewport_size({"width": width, "height": 740})
    ask(page, QUESTION)
    ask(page, NOWHERE)
    within = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(within)
    mark = page.locator(".answer button.cite").first
    mark.click()
    expect(page.locator("#panel mark.chosen")).to_be_in_viewport()
    assert page.locator("#main").evaluate("e => e.inert")
    assert page.evaluate(within)
    page.locator("#backdrop").click(position={"x": 2, "y": 300}) if width > 480 else page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    page.get_by_role("button", name=re.compile("^Evidence")).first.click()
    overflow = page.locator("#panel-body").evaluate("e => e.scrollWidth - e.clientWidth")
    assert overflow <= 0
    page.get_by_role("button", name="Close", exact=True).click()
    assert not page.locator("#main").evaluate("e => e.inert")
    if width > 820:
        return
    menu = page.get_by_role("button", name="Documents and conversations", exact=True)
    expect(page.locator("#documents .open").first).not_to_be_in_viewport()
    menu.click()
    expect(page.locator("#documents .open").first).to_be_in_viewport()
    expect(menu).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()


def test_light_and_dark(context: BrowserContext, site: Site) -> None:
    """The page follows the system until the switch says otherwise, which lasts."""
    page = opened(context, site.url)
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark
    switch = page.get_by_role("button", name=re.compile("^Colours"))
    switch.click()
    expect(switch).to_have_accessible_name("Colours: light")
    assert page.evaluate(ground) == light
    page.reload()
    page.locator("#app:not([hidden])").wait_for(timeout=WAIT_MS)
    assert page.evaluate(ground) == light
    switch.click()
    assert page.evaluate(ground) == dark
    switch.click()
    expect(switch).to_have_accessible_name("Colours: as the system has them")
