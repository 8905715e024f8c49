"""The files of the page: served with their types, kept by a browser while they are the same, and only they."""

import hashlib
from importlib.resources import files

import httpx
import pytest
from tests.page.conftest import Site

from leadline.api.page import page_files

STATIC = files("leadline.api") / "static"


@pytest.fixture
def client(site: Site) -> httpx.Client:
    """A client of the server."""
    return httpx.Client(base_url=site.url, timeout=60, trust_env=False)


def test_every_file_is_served_with_its_type(client: httpx.Client) -> None:
    """The page and all it names come with the type that a browser asks for, and with a policy of its own only."""
    with client:
        page = client.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for name, file in page_files().items():
            response = client.get(f"/static/{name}")
            assert response.status_code == 200, name
            assert response.headers["content-type"] == file.media_type
            assert response.headers["x-content-type-options"] == "nosniff"
        assert {name.rpartition(".")[2] for name in page_files()} >= {"html", "css", "js", "mjs", "svg"}


def test_an_unchanged_file_is_not_sent_again(client: httpx.Client) -> None:
    """A browser that has the file asks with its tag and gets 304; HEAD says the same without the bytes."""
    with client:
        first = client.get("/static/main.js")
        again = client.get("/static/main.js", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == "no-cache"
        head = client.head("/static/main.js")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    "name",
    [
        "../page.py",
        "..%2fpage.py",
        "%2e%2e/page.py",
        "vendor",
        "vendor/",
        "vendor/VENDORED",
        "",
        "/etc/passwd",
        "main.js/",
    ],
)
def test_nothing_else_is_served(client: httpx.Client, name: str) -> None:
    """Names outside the page are not found, in the one shape of errors."""
    with client:
        response = client.get(f"/static/{name}")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "not_found"


def test_what_is_of_others_is_what_was_published() -> None:
    """Each vendored file has the hash that stands beside its name and version, and its licence is there."""
    named = [line.split() for line in (STATIC / "vendor" / "VENDORED").read_text().splitlines() if line[:1] not in "#"]
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    for name, package, _path, digest in named:
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
        assert f"======== {package.replace('@', ' ')}" in licences
    code = {each.name for each in (STATIC / "vendor").iterdir() if each.name.endswith(("js", "css"))}
    assert code == {name for name, *_ in named}


def test_the_page_needs_nobody_else() -> None:
    """No file of ours names another host, and the page has no script or style of its own inside."""
    ours = {name: file.body.decode() for name, file in page_files().items() if not name.startswith("vendor/")}
    for name, text in ours.items():
        addresses = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in addresses, name
        assert "https://" not in addresses, name
    page = ours["index.html"]
    assert " style=" not in page
    assert "<style" not in page
    assert " on" not in page.replace(" on ", " ")
    assert page.count("<script") == page.count('<script src="static/') + page.count(
        '<script type="module" src="static/'
    )
    for name, text in ours.items():
        assert ".innerHTML" not in text, name
        assert "insertAdjacentHTML" not in text, name
