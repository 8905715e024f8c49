"""How much all callers together may have going on, over real connections."""

import shutil
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from leadline import Settings, load_settings
from leadline.api.tokens import add_token

Serving = Callable[[Settings], AbstractContextManager[str]]
GREETING = {"question": "Hello!", "stream": False, "web": "never"}


def ask(url: str, token: str) -> httpx.Response:
    """Small talk, which takes no time."""
    known = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{url}/chat", json=GREETING, headers=known, timeout=60, trust_env=False)


def half_of_a_question(url: str, token: str) -> socket.socket:
    """A request that goes on for as long as the connection is held."""
    place = urlsplit(url)
    wire = socket.create_connection((place.hostname, place.port), timeout=20)
    head = ("POST /chat HTTP/1.1", f"Host: {place.netloc}", f"Authorization: Bearer {token}")
    wire.sendall("\r\n".join((*head, "Content-Type: application/json", "Content-Length: 90", "", '{"que')).encode())
    return wire


def status_once_it_is(wanted: int, url: str, token: str) -> httpx.Response:
    """The answer, as soon as the server has seen what another connection did."""
    limit = time.monotonic() + 20
    while (answer := ask(url, token)).status_code != wanted:
        assert time.monotonic() < limit, answer.text
        time.sleep(0.05)
    return answer


def test_what_all_callers_have_going_on_is_bounded(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """With as many requests as the server takes, another caller gets 503 and a time to wait, which costs none of their
    minute; whoever has too many themselves gets their own 429; afterwards there is room again."""
    folder = shutil.copytree(copied, tmp_path / "data")
    ana, ben = (add_token(folder, name, None, may_write=True) for name in ("ana", "ben"))
    settings = load_settings(data_dir=folder, max_running=1, max_running_all=1, rate_per_minute=3)
    with serving(settings) as url:
        with half_of_a_question(url, ana):
            refused = status_once_it_is(503, url, ben)
            assert refused.json()["error"]["code"] == "busy"
            assert refused.headers["retry-after"] == "1"
            assert [ask(url, ben).status_code for _ in range(4)] == [503] * 4
            assert ask(url, ana).json()["error"]["code"] == "too_many_at_once"
        assert status_once_it_is(200, url, ana).json()["status"]
        assert ask(url, ben).status_code == 200
