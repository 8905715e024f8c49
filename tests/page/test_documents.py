"""Documents in the page: added by button and by drop, followed until they are in, read, saved, deleted; collections."""

import re
from pathlib import Path

import httpx
from playwright.sync_api import Locator, Page, expect
from tests.page.conftest import WAIT_MS, Site, ask

NOTE = "The blue lantern of Pier Nine is lit at 21:40 every evening. It is put out at sunrise by the night watch."
WATCH = "Who puts out the blue lantern at sunrise?"
LANTERN = "When is the blue lantern of Pier Nine lit?"


def in_list(page: Page, name: str) -> Locator:
    """The line of a document."""
    return page.locator("#documents li", has_text=name)


def add(page: Page, *files: Path) -> None:
    """Chooses files with the button."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add", exact=True).click()
    chooser.value.set_files(list(files))


def drop(page: Page, name: str, text: str) -> None:
    """Drops a file onto the conversation, as a browser does it."""
    transfer = page.evaluate_handle(
        "([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data; }",
        [name, text],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event("#main", event, {"dataTransfer": transfer})


def delete(page: Page, name: str) -> None:
    """Deletes a document, and says so when asked."""
    in_list(page, name).get_by_role("button", name=f"Delete {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()


def test_a_file_is_added_asked_about_and_deleted(page: Page, tmp_path: Path) -> None:
    """It is followed until it is in, answers with its own words, and is gone after a question, answers too."""
    path = tmp_path / "lantern.txt"
    path.write_text(NOTE)
    add(page, path)
    expect(in_list(page, "lantern.txt")).to_contain_text("1 passage", timeout=WAIT_MS)
    expect(page.locator("#jobs li")).to_have_count(0)
    expect(page.locator("#live")).to_have_text("lantern.txt is read in.")
    ask(page, LANTERN)
    expect(page.locator(".answer")).to_contain_text("21:40")
    in_list(page, "lantern.txt").get_by_role("button", name=re.compile("^Delete")).click()
    dialog = page.get_by_role("dialog", name="Delete this document?")
    expect(dialog).to_contain_text("lantern.txt")
    page.keyboard.press("Escape")
    expect(in_list(page, "lantern.txt")).to_have_count(1)
    delete(page, "lantern.txt")
    expect(in_list(page, "lantern.txt")).to_have_count(0)
    expect(page.locator("#turns")).not_to_contain_text("21:40")


def test_a_dropped_file_is_added(page: Page) -> None:
    """A file dropped on the page goes into the collection; nothing is left of the cover over the page."""
    drop(page, "dropped.md", "# Ropes\n\nThe hemp rope of the bell is renewed every spring.")
    expect(in_list(page, "dropped.md")).to_contain_text("1 passage", timeout=WAIT_MS)
    expect(page.locator("#drop")).to_be_hidden()
    delete(page, "dropped.md")
    expect(in_list(page, "dropped.md")).to_have_count(0)


def test_what_can_not_be_read_is_told_beside_its_name(page: Page, tmp_path: Path) -> None:
    """Of two files one fails: the other is in, and the reason stays there until it is dismissed."""
    (tmp_path / "good.txt").write_text("The tug Annie has a crew of four.")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    add(page, tmp_path / "good.txt", tmp_path / "broken.pdf")
    job = page.locator("#jobs > li")
    expect(job.locator(".problem")).to_have_text(re.compile(r"\w{3}"), timeout=WAIT_MS)
    expect(job).to_contain_text("broken.pdf")
    expect(in_list(page, "good.txt")).to_contain_text("1 passage")
    job.get_by_role("button", name="Dismiss").click()
    expect(job).to_have_count(0)
    expect(in_list(page, "broken.pdf")).to_contain_text("failed")
    ready = page.locator("#documents li").count() - 1
    counted = page.locator("#documents-count")
    expect(counted).to_have_text(f"{ready} · 1 failed")
    counted.evaluate("e => { e.textContent = '16 · 1 failed'; }")
    assert counted.evaluate("e => e.scrollWidth <= e.clientWidth && e.offsetHeight < 30"), "it is whole, on one line"
    for name in ("good.txt", "broken.pdf"):
        delete(page, name)
        expect(in_list(page, name)).to_have_count(0)
        expect(page.locator("#documents .icon:focus")).to_have_count(1)  # the next one can be deleted


def test_sending_is_told_and_can_be_stopped(page: Page) -> None:
    """Files on their way out have a line with a bar, and a button that calls them back."""
    page.route("**/documents?*", lambda route: None if route.request.method == "POST" else route.continue_())
    page.locator("#files").set_input_files([{"name": "slow.txt", "mimeType": "text/plain", "buffer": b"x"}])
    line = page.locator("#jobs li")
    expect(line).to_contain_text("Sending 1 file")
    expect(line.get_by_role("progressbar", name="Sending")).to_be_visible()
    line.get_by_role("button", name="Stop sending").click()
    expect(line).to_have_count(0)


def test_a_list_that_fails_is_no_empty_one(page: Page) -> None:
    """Where the server refuses the list, its words stand there with a way to try again, and not that there is none."""
    said = '{"error": {"code": "too_many_requests", "message": "Too many requests.", "hint": ""}}'
    page.route("**/documents?*", lambda route: route.fulfill(status=429, content_type="application/json", body=said))
    page.reload()
    note = page.locator("#documents-note")
    expect(note).to_contain_text("Too many requests.")
    expect(page.locator("#empty")).to_be_hidden()
    page.unroute_all()
    note.get_by_role("button", name="Try again").click()
    expect(in_list(page, "harbour-handbook.md")).to_have_count(1)
    expect(page.locator("#empty")).to_contain_text("Ask about your documents")


def test_too_many_files_are_refused_with_the_reason(page: Page, site: Site) -> None:
    """More files than may be sent at once are refused with the number that may."""
    most = site.settings.max_upload_files
    page.locator("#files").set_input_files(
        [{"name": f"{n}.txt", "mimeType": "text/plain", "buffer": b"x"} for n in range(most + 1)]
    )
    expect(page.locator("#jobs .problem")).to_contain_text(str(most))


def test_an_upload_is_followed_after_a_reload(page: Page, site: Site) -> None:
    """A page that is opened while files are being read in shows it, and the document when it is in."""
    text = "\n\n".join(f"Entry {n}: the ferry left quay {n % 7} at {n % 24}:15 with {n} people." for n in range(900))
    response = httpx.post(
        f"{site.url}/documents",
        params={"collection": "default"},
        files=[("files", ("ferry-log.txt", text.encode()))],
        trust_env=False,
    )
    assert response.status_code == 202
    page.reload()
    expect(page.locator("#jobs")).to_contain_text("ferry-log.txt")
    expect(in_list(page, "ferry-log.txt")).to_contain_text(re.compile(r"\d passages"), timeout=WAIT_MS)
    expect(page.locator("#jobs li")).to_have_count(0)
    delete(page, "ferry-log.txt")
    expect(in_list(page, "ferry-log.txt")).to_have_count(0)


def test_a_document_is_read_and_saved(page: Page, tmp_path: Path) -> None:
    """Its name opens its text; where the file was uploaded here it can be saved, byte for byte."""
    path = tmp_path / "lamp oil.txt"
    path.write_text("Lamp oil is kept in the red shed.")
    add(page, path)
    in_list(page, "lamp oil.txt").get_by_role("button", name=re.compile("^lamp oil.txt")).click()
    panel = page.locator("#panel")
    expect(panel).to_contain_text("Lamp oil is kept in the red shed.")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Save the file").click()
    assert download.value.suggested_filename == "lamp oil.txt"
    assert download.value.path().read_text() == path.read_text()
    in_list(page, "tide-gauge-manual.pdf").get_by_role("button", name=re.compile("^tide")).click()
    expect(panel.locator(".page").first).to_have_text("Page 1")
    expect(panel.get_by_role("button", name="Save the file")).to_have_count(0)
    page.keyboard.press("Escape")
    delete(page, "lamp oil.txt")


def test_collections_stand_apart(page: Page, tmp_path: Path) -> None:
    """A new collection begins empty; what is added to it is asked there and nowhere else; the address remembers it."""
    page.get_by_role("button", name="New collection").click()
    dialog = page.get_by_role("dialog", name="New collection")
    dialog.get_by_label("Name").fill("no spaces please")
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("Name").fill("lanterns")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.get_by_label("Collection", exact=True)).to_have_value("lanterns")
    expect(page.locator("#empty")).to_contain_text("no documents here yet")
    (tmp_path / "lantern.txt").write_text(NOTE)
    add(page, tmp_path / "lantern.txt")
    expect(in_list(page, "lantern.txt")).to_contain_text("1 passage", timeout=WAIT_MS)
    ask(page, WATCH)
    expect(page.locator(".answer")).to_contain_text("night watch")
    page.reload()
    expect(page.get_by_label("Collection", exact=True)).to_have_value("lanterns")
    expect(page.locator(".turn h2")).to_have_text([WATCH])
    page.get_by_label("Collection", exact=True).select_option("default")
    expect(page.locator(".turn")).to_have_count(0)
    expect(in_list(page, "lantern.txt")).to_have_count(0)
    expect(in_list(page, "harbour-handbook.md")).to_have_count(1)
    expect(page.locator("#threads")).not_to_contain_text(WATCH)
