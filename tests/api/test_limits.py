"""How much one caller may ask for, over real connections: each limit has its own message."""

import asyncio
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.api.uploading import answer, client_of, finished, until, upload

from leadline import Settings, load_settings
from leadline.api import limits
from leadline.api.tokens import add_token

Serving = Callable[[Settings], AbstractContextManager[str]]
QUESTION: dict[str, Any] = {"question": "What does error E-217 mean?", "stream": False, "web": "never"}


def blocks(number: int) -> Iterator[bytes]:
    """A body of so many megabytes, without a length."""
    return (b" " * 1_000_000 for _ in range(number))


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_has_an_end(client: httpx.Client, declared: bool) -> None:
    """Over 4 MB is refused by its length, or as it comes where it names none; the server goes on."""
    content: bytes | Iterator[bytes] = b" " * 9_000_000 if declared else blocks(9)
    answer = client.post("/chat", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert "4 MB" in answer.json()["error"]["message"]
    assert client.get("/health").status_code == 200


def test_an_upload_without_end_is_cut_off(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """However much is sent and whether a length is told or not, no more than the limit is read, and nothing is kept."""
    folder = shutil.copytree(copied, tmp_path / "data")
    with serving(load_settings(data_dir=folder, max_upload_mb=2)) as url:
        head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
        sent = 0

        def endless() -> Iterator[bytes]:
            nonlocal sent
            yield head
            while sent < 5_000:
                sent += 1
                yield b"a" * 1_000_000

        headers = {"content-type": "multipart/form-data; boundary=x"}
        try:
            answer = httpx.post(f"{url}/documents", content=endless(), headers=headers, timeout=60, trust_env=False)
            assert answer.status_code == 413
            assert "2 MB" in answer.json()["error"]["message"]
        except httpx.TransportError:
            pass  # the connection was closed before all was sent: the answer may be lost with it
        assert sent < 100
        assert httpx.get(f"{url}/documents", trust_env=False).json()["documents"]
    kept = [path for path in (folder / "uploads").rglob("*") if path.is_file()] if (folder / "uploads").exists() else []
    assert kept == []


def _sent_before_it_ended(url: str, path: str, headers: dict[str, str]) -> tuple[bytes, int]:
    """The first line of the answer, and how many of 100 MB without an announced length the server let in."""
    place = urlsplit(url)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\n{lines}Transfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection((place.hostname, place.port), timeout=10) as wire:
        wire.sendall(head)
        answer = wire.recv(100).split(b"\r\n")[0]
        for sent in range(100):
            try:
                wire.sendall(b"f4240\r\n" + b"a" * 1_000_000 + b"\r\n")
            except OSError:
                return answer, sent
    return answer, 100


def test_a_file_made_to_hold_up_its_parser_costs_its_seconds_only(
    copied: Path, tmp_path: Path, serving: Serving
) -> None:
    """The job says so of it and takes the next file in; the server answers meanwhile, a later upload goes in."""
    folder = shutil.copytree(copied, tmp_path / "data")
    attributes = " ".join(f"a{n}=x" for n in range(400_000))  # each is compared with all before it
    files: dict[str, bytes | str] = {"a.html": f"<p {attributes}>x", "b.md": "# Otters\n\nOtters eat at noon.\n"}
    settings = load_settings(data_dir=folder, max_file_seconds=2)
    with serving(settings) as url, client_of(url) as client:
        accepted = upload(client, files)
        until(client, accepted.json()["id"], "running")
        assert answer(client, QUESTION["question"])["status"] == "answered"
        held_up, taken = finished(client, accepted)["items"]
        assert (held_up["status"], held_up["file_name"]) == ("failed", "a.html")
        assert held_up["error"] == "It could not be read within 2 s. Split it, or raise LEADLINE_MAX_FILE_SECONDS."
        assert (taken["status"], taken["file_name"]) == ("done", "b.md")
        assert finished(client, upload(client, {"c.md": "# Cats\n\nCats eat at dusk.\n"}))["status"] == "done"


def test_what_a_stranger_sends_is_not_read(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """Who is refused before the body was read (no token, a wrong host, guessed too often) can't send on."""
    folder = shutil.copytree(copied, tmp_path / "data")
    add_token(folder, "ana", None, may_write=True)
    with serving(load_settings(data_dir=folder)) as url:
        ours, foreign = {"Host": "127.0.0.1"}, {"Host": "evil.example"}
        for headers, path, status in ((ours, "/documents", 401), (ours, "/nix", 401), (foreign, "/documents", 403)):
            answer, sent = _sent_before_it_ended(url, path, headers)
            assert answer.split()[1] == str(status).encode()
            assert sent < 20
        with httpx.Client(base_url=url, trust_env=False) as client:
            while client.get("/collections").status_code == 401:
                pass
        answer, sent = _sent_before_it_ended(url, "/documents", ours)
        assert answer.split()[1] == b"429"
        assert sent < 20


def test_a_body_that_stops_coming_is_given_up(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends half of it and waits gets 408, and its connection is closed."""
    monkeypatch.setattr(limits, "BODY_PAUSE_S", 0.3)
    place = urlsplit(str(client.base_url))
    with socket.create_connection((place.hostname, place.port), timeout=20) as half:
        head = ("POST /chat HTTP/1.1", f"Host: {place.netloc}", "Content-Type: application/json", "Content-Length: 90")
        half.sendall("\r\n".join((*head, "", '{"question": ')).encode())
        answer = b""
        while piece := half.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"too_slow" in answer


def test_questions_a_minute_are_counted_for_each_caller(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """One more than allowed gets 429 and a time to wait; uploads count too, reading doesn't, others aren't touched."""
    folder = shutil.copytree(copied, tmp_path / "data")
    ana, ben = (add_token(folder, name, None, may_write=True) for name in ("ana", "ben"))
    with serving(load_settings(data_dir=folder, rate_per_minute=3)) as url:
        with httpx.Client(
            base_url=url, trust_env=False, timeout=60, headers={"Authorization": f"Bearer {ana}"}
        ) as client:
            # Small talk takes no time: what is allowed again meanwhile would be let through.
            answers = [client.post("/chat", json={**QUESTION, "question": "Hello!"}) for _ in range(2)]
            answers += [client.post("/documents", files={"files": ("x.txt", "Word.")})]
            assert [answer.status_code for answer in answers] == [200, 200, 202]
            refused = client.post("/chat", json=QUESTION)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert "3 times a minute" in refused.json()["error"]["message"]
            assert client.get("/threads").status_code == 200
        known = {"Authorization": f"Bearer {ben}"}
        assert httpx.post(f"{url}/chat", json=QUESTION, headers=known, timeout=60, trust_env=False).status_code == 200


async def test_what_one_caller_has_going_on_is_bounded(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """Of many questions at once those over the limit get 429; when they have ended, there is room again."""
    folder = shutil.copytree(copied, tmp_path / "data")
    with serving(load_settings(data_dir=folder, max_running=2)) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            await client.post("/chat", json=QUESTION)
            answers = await asyncio.gather(*(client.post("/chat", json=QUESTION) for _ in range(12)))
            codes = [answer.status_code for answer in answers]
            assert set(codes) == {200, 429}
            refused = next(answer for answer in answers if answer.status_code == 429)
            assert refused.json()["error"]["code"] == "too_many_at_once"
            assert refused.headers["retry-after"] == "1"
            for _ in range(4):  # also after a client that left in the middle
                async with client.stream("POST", "/chat", json={**QUESTION, "stream": True}) as begun:
                    assert begun.status_code == 200
                await asyncio.sleep(0.5)
            assert (await client.post("/chat", json=QUESTION)).status_code == 200
