"""Who is let in, over a real connection: with a token, without, with a wrong one, and after it was ended."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from tests.servers.guarded_server import Guarded

from leadline import Settings, load_settings
from leadline.api.gate import WRONG_PER_MINUTE
from leadline.api.tokens import FILE, add_token, remove_token

Serving = Callable[[Settings], AbstractContextManager[str]]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/openapi.json"),
        ("GET", "/collections"),
        ("GET", "/nothing"),
        ("GET", "/static"),
        ("GET", "/about/"),
        ("GET", "/health/x"),
        ("POST", "/chat"),
        ("POST", "/"),
        ("DELETE", "/about"),
        ("OPTIONS", "/collections"),
    ],
)
def test_every_route_but_the_page_needs_a_token(guarded: Guarded, method: str, path: str) -> None:
    """Also those that don't exist, and the schema: 401 and how to come in; whether a route is there isn't told."""
    with guarded.client(None) as stranger:
        answer = stranger.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_no_path_leads_around_the_gate(guarded: Guarded) -> None:
    """What begins like the page's files and climbs out of them is no file of the page."""
    with guarded.client(None) as stranger:
        for path in ("/static/%2e%2e/collections", "/static/..%2fopenapi.json", "/static//etc/passwd"):
            assert stranger.get(path).status_code == 404


def test_what_a_browser_needs_first_is_open(guarded: Guarded) -> None:
    """The page, its files, whether the server lives, and that a token is needed; not its version or settings."""
    with guarded.client(None) as stranger:
        assert stranger.get("/health").json() == {"status": "ok"}
        assert stranger.get("/about").json() == {"name": "Leadline", "token_needed": True}
        assert stranger.get("/").headers["content-type"].startswith("text/html")
        assert stranger.get("/static/style.css").status_code == 200


def test_a_token_is_known_by_its_name_and_rights(guarded: Guarded) -> None:
    """`/about` says who one is; the scheme may be written in any letters."""
    with guarded.client("reader") as reader:
        about = reader.get("/about").json()
    assert about["caller"] == {"name": "reader", "may_write": False, "collections": ["ana"]}
    assert (about["collection"], about["token_needed"]) == ("ana", True)
    headers = {"Authorization": f"bearer   {guarded.tokens['admin']}"}
    about = httpx.get(f"{guarded.url}/about", headers=headers, trust_env=False).json()
    assert about["caller"] == {"name": "admin", "may_write": True, "collections": None}


@pytest.mark.parametrize("made", ["Bearer", "Bearer x", "Basic {}", "{}", "Bearer {}x", "Token {}"])
def test_a_wrong_token_is_no_token(guarded: Guarded, made: str) -> None:
    """Even for what is open: a client that sends a wrong one is told so."""
    headers = {"Authorization": made.format(guarded.tokens["admin"])}
    answer = httpx.get(f"{guarded.url}/about", headers=headers, trust_env=False)
    assert answer.status_code in (401, 429)
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_read_only_is_read_only(guarded: Guarded) -> None:
    """Uploading and deleting are refused with 403; what is there stays."""
    with guarded.client("reader") as reader:
        (document,) = reader.get("/documents", params={"collection": "ana"}).json()["documents"]
        upload = reader.post("/documents", params={"collection": "ana"}, files={"files": ("x.txt", "y")})
        deletion = reader.delete(f"/documents/{document['doc_id']}")
        assert [a.json()["error"]["code"] for a in (upload, deletion)] == ["forbidden", "forbidden"]
        assert (upload.status_code, deletion.status_code) == (403, 403)
        assert [d["doc_id"] for d in reader.get("/documents", params={"collection": "ana"}).json()["documents"]] == [
            document["doc_id"]
        ]


def test_metrics_are_for_those_who_see_all(guarded: Guarded) -> None:
    """They count what everybody does."""
    for name, status in {"admin": 200, "ana": 403}.items():
        with guarded.client(name) as client:
            assert client.get("/metrics").status_code == status


def test_guessing_is_slowed_and_those_with_a_token_are_not(tmp_path: Path, serving: Serving) -> None:
    """After some wrong tokens an address gets 429 and a time to wait; a right one from there is let in all the same."""
    token = add_token(tmp_path / "data", "ana", None, may_write=True)
    with (
        serving(load_settings(data_dir=tmp_path / "data")) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        answers = [client.get("/jobs", headers={"Authorization": f"Bearer {n}"}) for n in range(2 * WRONG_PER_MINUTE)]
        assert {answer.status_code for answer in answers[:WRONG_PER_MINUTE]} == {401}
        assert answers[-1].status_code == 429
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert client.get("/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/health").status_code == 200


def test_tokens_come_and_go_while_the_server_runs(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """The first closes the server, an ended one is out at once, a damaged file lets nobody in, and says only that."""
    folder = shutil.copytree(copied, tmp_path / "data")
    with serving(load_settings(data_dir=folder)) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/collections", headers={"Authorization": "Bearer of-an-openai-client"}).status_code == 200
        token = add_token(folder, "ana", None, may_write=True)
        known = {"Authorization": f"Bearer {token}"}
        assert client.get("/collections").status_code == 401
        assert client.get("/collections", headers=known).status_code == 200
        kept = (folder / FILE).read_text()
        (folder / FILE).write_text("{")
        broken = client.get("/collections", headers=known)
        assert (broken.status_code, broken.json()["error"]["code"]) == (503, "tokens")
        assert str(folder) not in broken.text
        (folder / FILE).write_text(kept)
        assert client.get("/collections", headers=known).status_code == 200
        remove_token(folder, "ana")
        assert client.get("/collections", headers=known).status_code == 401
        (folder / FILE).unlink()
        assert client.get("/collections").status_code == 401
